//! The results, for users and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::BenchOptions;
use super::run::Measured;
use super::verify::StoreCheck;

/// The result of a run. Latencies are of requests answered 200, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Seconds of sending.
    pub seconds: f64,
    /// Connections.
    pub connections: u16,
    /// Requests a second of the schedule; none if each connection sent without pause.
    pub rate: Option<f64>,
    /// Requests that were sent.
    pub requests: u64,
    /// Requests of the schedule that were due and not sent: all connections were waiting.
    pub unsent: u64,
    /// Events of requests that were answered 200.
    pub events: u64,
    /// Those a second.
    pub events_per_second: f64,
    /// Requests by status.
    pub answers: BTreeMap<u16, u64>,
    /// The text of the first answer with each status but 200.
    pub said: BTreeMap<u16, String>,
    /// Requests without an answer, by reason.
    pub errors: BTreeMap<String, u64>,
    /// By percentile.
    pub latency_us: Vec<(String, f64)>,
    /// This process's cost of sending and receiving, for each request.
    pub own_cpu_us: f64,
    /// The check of the store: acknowledged, lost, doubled, stored without acknowledgement.
    pub verified: Option<StoreCheck>,
    /// Why the load ended before its time, or why the store says nothing.
    pub failure: Option<String>,
}

/// So many of the requests of a schedule may find no free connection in their last moment: one of as many.
const UNSENT_PART: u64 = 100;

const PERCENTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

impl Report {
    /// The report of a load, without a check of the store.
    pub(super) fn new(measured: &Measured, options: &BenchOptions) -> Self {
        let microseconds = |nanoseconds: u64| (nanoseconds as f64 / 100.0).round() / 10.0;
        let latency = &measured.latency;
        let at = |(name, quantile): (&str, f64)| (name.to_owned(), microseconds(latency.value_at_quantile(quantile)));
        let mut latency_us: Vec<_> = PERCENTILES.into_iter().map(at).collect();
        latency_us.push(("max".to_owned(), microseconds(latency.max())));
        let seconds = measured.elapsed.as_secs_f64();
        let events = measured.acknowledged.iter().filter(|is_acknowledged| **is_acknowledged).count() as u64;
        Self {
            seconds,
            connections: options.connections,
            rate: options.rate,
            requests: measured.sent,
            unsent: measured.unsent,
            events,
            events_per_second: events as f64 / seconds.max(f64::MIN_POSITIVE),
            answers: measured.answers.clone(),
            said: measured.said.clone(),
            errors: measured.errors.clone(),
            latency_us,
            own_cpu_us: measured.cpu.as_secs_f64() * 1e6 / (measured.sent.max(1)) as f64,
            verified: None,
            failure: measured.failure.as_ref().map(ToString::to_string),
        }
    }

    /// Whether every request was sent in time and answered 200, and the store has exactly the acknowledged events.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults().is_empty()
    }

    /// The reason for the exit code, as the last line of the table.
    #[must_use]
    pub fn conclusion(&self) -> String {
        let faults = self.faults();
        let said = if faults.is_empty() { "clean".to_owned() } else { format!("NOT CLEAN: {}", faults.join("; ")) };
        format!("{:<20}{said}\n", "result")
    }

    /// The problems of the run, each as text.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let otherwise: u64 = self.answers.iter().filter(|(status, _)| **status != 200).map(|(_, count)| count).sum();
        let unanswered: u64 = self.errors.values().sum();
        let due = self.requests + self.unsent;
        if otherwise > 0 {
            faults.push(format!(
                "{otherwise} of {} requests got another status than 200: see the reasons above",
                self.requests
            ));
        }
        if unanswered > 0 {
            faults.push(format!(
                "{unanswered} of {} requests got no response: check the server and the network",
                self.requests
            ));
        }
        if self.unsent > due / UNSENT_PART {
            faults.push(format!(
                "{} of {due} requests of the schedule weren't sent in time: give more --connections, or a lower --rate",
                self.unsent
            ));
        }
        if let Some(StoreCheck { lost, doubled, .. }) = self.verified.filter(|check| check.lost + check.doubled > 0) {
            faults.push(format!(
                "the store lacks {}, and has {doubled} twice: check that --verify names the store of this server, \
                 then report this",
                text::counted(lost, "event")
            ));
        }
        if let Some(failure) = &self.failure {
            faults.push(format!("the run ended early: {failure}"));
        }
        faults
    }

    /// As one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be written as JSON")
    }
}

/// The figures of the load. The check of the store is a separate table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(f, "{name:<20}{value}");
        let schedule = self.rate.map_or_else(String::new, |rate| format!(", target {rate} requests/s"));
        row(
            "sent",
            format!(
                "{} in {:.1} s, {}{schedule}",
                text::counted(self.requests, "request"),
                self.seconds,
                text::counted(self.connections, "connection")
            ),
        )?;
        if self.unsent > 0 {
            row("not sent in time", self.unsent.to_string())?;
        }
        row("events answered 200", format!("{}, {:.0}/s", self.events, self.events_per_second))?;
        for (status, count) in self.answers.iter().filter(|(status, _)| **status != 200) {
            let said = self.said.get(status).map_or_else(String::new, |said| format!(", the first: {said}"));
            row(&format!("answered {status}"), format!("{count}{said}"))?;
        }
        for (error, count) in &self.errors {
            row("no response", format!("{count}: {error}"))?;
        }
        for (name, value) in &self.latency_us {
            row(&format!("latency {name}"), format!("{:.3} ms", value / 1000.0))?;
        }
        row("own CPU a request", format!("{:.1} µs", self.own_cpu_us))
    }
}

impl fmt::Display for StoreCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, lost, doubled, unacknowledged_stored } = self;
        writeln!(f, "{:<20}{lost} lost, {doubled} doubled of {acknowledged} acknowledged", "in the store")?;
        writeln!(f, "{:<20}{unacknowledged_stored} stored without a response", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            seconds: 1.0,
            connections: 1,
            rate: Some(100.0),
            requests: 990,
            unsent: 10,
            events: 990,
            events_per_second: 990.0,
            answers: [(200, 990)].into(),
            said: BTreeMap::new(),
            errors: BTreeMap::new(),
            latency_us: Vec::new(),
            own_cpu_us: 1.0,
            verified: None,
            failure: None,
        }
    }

    #[test]
    fn page_shows_the_printed_report() {
        let latencies =
            [("p50", 3_612.0), ("p90", 4_120.0), ("p99", 6_845.0), ("p99.9", 14_910.0), ("p99.99", 21_300.0)];
        let latencies = latencies.into_iter().chain([("max", 24_105.0)]);
        let report = Report {
            seconds: 30.0,
            connections: 64,
            rate: None,
            requests: 510_627,
            unsent: 0,
            events: 510_627,
            events_per_second: 17_020.9,
            latency_us: latencies.map(|(name, value)| (name.to_owned(), value)).collect(),
            own_cpu_us: 11.4,
            ..report()
        };
        let check = StoreCheck { acknowledged: 510_627, lost: 0, doubled: 0, unacknowledged_stored: 0 };
        let text = format!("{report}{check}{}", report.conclusion());
        let page = include_str!("../../../../docs/guides/measure.md");
        assert!(page.contains(&format!("```text\n{text}```\n")), "docs/guides/measure.md lacks:\n{text}");
    }

    #[test]
    fn run_is_clean_when_all_requests_were_measured() {
        assert!(report().is_clean());
        assert_eq!(report().conclusion(), "result              clean\n");
        let check = StoreCheck { acknowledged: 990, lost: 1, doubled: 0, unacknowledged_stored: 0 };
        for (report, fault) in [
            (Report { unsent: 11, ..report() }, "11 of 1001 requests of the schedule weren't sent in time"),
            (Report { requests: 0, unsent: 5, answers: [].into(), ..report() }, "5 of 5 requests of the schedule"),
            (Report { answers: [(200, 1), (503, 989)].into(), ..report() }, "989 of 990 requests got another status"),
            (Report { errors: [("gone".to_owned(), 2)].into(), ..report() }, "2 of 990 requests got no response"),
            (Report { verified: Some(check), ..report() }, "the store lacks 1 event, and has 0 twice"),
            (Report { failure: Some("gone".to_owned()), ..report() }, "the run ended early: gone"),
        ] {
            let said = report.conclusion();
            assert!(!report.is_clean() && said.contains("NOT CLEAN: ") && said.contains(fault), "{said}");
        }
    }
}
