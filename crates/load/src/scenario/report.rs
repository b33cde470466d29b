//! The results by step, for users and for programs.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::assertion::{Assertion, Milliseconds, PERCENTILES};
use super::file::Scenario;
use super::run::Measured;

/// The result of a scenario. Latencies are of requests that were answered as expected, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioReport {
    /// Seconds until no further step was begun.
    pub seconds: f64,
    /// Users.
    pub users: usize,
    /// Connections that were opened: more than users if the server closed some.
    pub connections: u64,
    /// This process's cost of sending and receiving, for each request.
    pub own_cpu_us: f64,
    /// The figures of all steps together.
    pub all: Figures,
    /// The steps, in the order of the file.
    pub steps: Vec<StepReport>,
    /// The assertions that don't hold, with the figure.
    pub broken: Vec<String>,
    /// Why the run ended before its time.
    pub failure: Option<String>,
}

/// The result of a step.
#[derive(Clone, Debug, Serialize)]
pub struct StepReport {
    /// Its name, or its path.
    pub name: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Requests by status.
    pub answers: BTreeMap<u16, u64>,
    /// The text of the first answer with each unexpected status.
    pub said: BTreeMap<u16, String>,
    /// Requests without an answer, by reason.
    pub failures: BTreeMap<String, u64>,
}

/// Counts and latencies.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Requests that were sent.
    pub requests: u64,
    /// Those that weren't answered as expected.
    pub errors: u64,
    /// By percentile.
    pub latency_us: Vec<(&'static str, f64)>,
}

impl Figures {
    fn new(requests: u64, errors: u64, latency: &Histogram<u64>) -> Self {
        let at = |(name, quantile)| (name, (latency.value_at_quantile(quantile) as f64 / 100.0).round() / 10.0);
        Self { requests, errors, latency_us: PERCENTILES.into_iter().map(at).collect() }
    }
}

impl ScenarioReport {
    pub(super) fn new(scenario: &Scenario, measured: &Measured) -> Self {
        let (mut steps, mut broken) = (Vec::new(), Vec::new());
        let (mut requests, mut errors, mut latency) = (0, 0, None::<Histogram<u64>>);
        let mut check = |name: &str, assertions: &[Assertion], errors: u64, latency: &Histogram<u64>| {
            let found = assertions.iter().filter_map(|assertion| assertion.broken(errors, latency));
            broken.extend(found.map(|found| format!("{name}: {found}")));
        };
        for (step, figures) in scenario.steps.iter().zip(&measured.steps) {
            requests += figures.sent;
            errors += figures.errors;
            match &mut latency {
                // All have the same bounds.
                Some(all) => drop(all.add(&figures.latency)),
                None => latency = Some(figures.latency.clone()),
            }
            check(&step.name, &step.assertions, figures.errors, &figures.latency);
            steps.push(StepReport {
                name: step.name.clone(),
                figures: Figures::new(figures.sent, figures.errors, &figures.latency),
                answers: figures.answers.clone(),
                said: figures.said.clone(),
                failures: figures.failures.clone(),
            });
        }
        let all = latency.map(|latency| {
            check("all steps", &scenario.assertions, errors, &latency);
            Figures::new(requests, errors, &latency)
        });
        Self {
            seconds: measured.elapsed.as_secs_f64(),
            users: scenario.users,
            connections: measured.connections,
            own_cpu_us: measured.cpu.as_secs_f64() * 1e6 / requests.max(1) as f64,
            all: all.unwrap_or(Figures { requests: 0, errors: 0, latency_us: Vec::new() }),
            steps,
            broken,
            failure: measured.failure.as_ref().map(ToString::to_string),
        }
    }

    /// Whether all assertions hold, and the run had its whole time.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.broken.is_empty() && self.failure.is_none()
    }

    /// As one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be written as JSON")
    }
}

impl fmt::Display for ScenarioReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.all.requests;
        writeln!(
            f,
            "{} users, {requests} requests in {:.1} s, {:.0}/s, {} connections, own CPU a request {:.1} µs\n",
            self.users,
            self.seconds,
            requests as f64 / self.seconds.max(0.001),
            self.connections,
            self.own_cpu_us
        )?;
        let width = self.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0).max("all steps".len());
        write!(f, "{:width$} {:>10} {:>8}", "step", "requests", "errors")?;
        PERCENTILES.iter().try_for_each(|(name, _)| write!(f, " {name:>11}"))?;
        let steps = self.steps.iter().map(|step| (step.name.as_str(), &step.figures));
        for (name, Figures { requests, errors, latency_us }) in steps.chain([("all steps", &self.all)]) {
            write!(f, "\n{name:width$} {requests:>10} {errors:>8}")?;
            latency_us.iter().try_for_each(|(_, us)| write!(f, " {:>11}", Milliseconds(us / 1e3).to_string()))?;
        }
        writeln!(f, "\n")?;
        for StepReport { name, answers, said, failures, .. } in &self.steps {
            for (status, said) in said {
                let count = answers.get(status).unwrap_or(&0);
                writeln!(f, "{name}: {count} answered {status}, the first: {said}")?;
            }
            for (why, count) in failures {
                writeln!(f, "{name}: {count} without a response: {why}")?;
            }
        }
        let failure = self.failure.as_ref().map(|failure| format!("the run ended early: {failure}"));
        let faults: Vec<_> = self.broken.iter().chain(&failure).map(String::as_str).collect();
        match faults[..] {
            [] => writeln!(f, "result: clean"),
            _ => writeln!(f, "result: NOT CLEAN: {}", faults.join("; ")),
        }
    }
}
