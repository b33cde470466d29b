//! Findings: what slowed the process down in the last minute, as sentences with figures and a remedy.

mod finding;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use admin_api::health::{FindingJson, HealthJson, HostJson};
use config::ConnectionLimits;
use eventlog::EventLog;
use gateway::GatewayCounters;
use host::ThreadTimes;
use text::rfc3339;
use tokio::time::sleep;

pub(crate) use finding::CODES;
use finding::Finding;
use sample::MinuteSample;

/// The time between two samples.
const INTERVAL: Duration = Duration::from_secs(10);
/// Samples that are kept: findings are about the last minute.
const KEPT: usize = 6;

/// What a gateway or a server has in addition to a writer.
pub(crate) struct ServerSources {
    pub(crate) log: Arc<EventLog>,
    pub(crate) gateway: Arc<GatewayCounters>,
}

/// The samples of the last minute. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Findings(Arc<Inner>);

struct Inner {
    server: Option<ServerSources>,
    threads: ThreadTimes,
    lowered: Mutex<Option<ConnectionLimits>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The oldest first.
    samples: VecDeque<MinuteSample>,
    /// Since when there are the present findings, by code: microseconds since 1970.
    since: BTreeMap<&'static str, i64>,
}

impl Findings {
    /// Without samples. A writer has no server's sources.
    pub(crate) fn new(server: Option<ServerSources>) -> Self {
        Self(Arc::new(Inner {
            server,
            threads: ThreadTimes::default(),
            lowered: Mutex::default(),
            seen: Mutex::default(),
        }))
    }

    /// Sets the limits of connections, if file descriptors allow fewer than are wanted.
    pub(crate) fn show_lowered(&self, limits: Option<ConnectionLimits>) {
        *self.0.lowered.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Takes samples until the future is dropped. The first one precedes the first poll: otherwise, on a busy machine, the
    /// findings would miss what the first clients do.
    pub(crate) fn follow(self) -> impl Future<Output = ()> {
        self.take_sample();
        async move {
            loop {
                sleep(INTERVAL).await;
                self.take_sample();
            }
        }
    }

    fn take_sample(&self) {
        let sample = self.sample();
        let mut seen = self.seen();
        seen.judge(&sample);
        seen.keep(sample);
    }

    /// What the last minute shows. Nothing before there are two samples an interval apart.
    pub(crate) fn now(&self) -> Vec<FindingJson> {
        let now = self.sample();
        self.seen().judge(&now)
    }

    /// The findings of the last minute, and its figures.
    pub(crate) fn health(&self) -> HealthJson {
        let now = self.sample();
        let mut seen = self.seen();
        HealthJson { findings: seen.judge(&now), host: host(seen.before(&now), &now) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sample(&self) -> MinuteSample {
        let lowered = *self.0.lowered.lock().unwrap_or_else(PoisonError::into_inner);
        MinuteSample::take(self.0.server.as_ref(), &self.0.threads, lowered)
    }
}

impl Seen {
    fn keep(&mut self, sample: MinuteSample) {
        self.samples.push_back(sample);
        if self.samples.len() > KEPT {
            self.samples.pop_front();
        }
    }

    /// The sample to compare with.
    fn before(&self, now: &MinuteSample) -> Option<&MinuteSample> {
        self.samples.front().filter(|before| now.at.saturating_duration_since(before.at) >= INTERVAL)
    }

    fn judge(&mut self, now: &MinuteSample) -> Vec<FindingJson> {
        let earlier = self.samples.iter().filter(|_| self.before(now).is_some());
        let found = finding::findings(earlier, now);
        self.since.retain(|code, _| found.iter().any(|finding| finding.code == *code));
        let mut shown = |Finding { code, level, text }: Finding| {
            let since = *self.since.entry(code).or_insert(now.clock);
            let since = rfc3339::format_short(since - since.rem_euclid(1_000_000));
            FindingJson { code: code.to_owned(), level, since, text, page: None }
        };
        found.into_iter().map(&mut shown).collect()
    }
}

/// The figures of the time between two samples.
fn host(before: Option<&MinuteSample>, now: &MinuteSample) -> HostJson {
    let cpu = before.and_then(|before| {
        let used = now.process.cpu_seconds? - before.process.cpu_seconds?;
        Some(used / (now.at - before.at).as_secs_f64())
    });
    HostJson {
        cpu: cpu.map(rounded),
        cpu_limit: now.container.cpu_limit,
        throttled: before.and_then(|before| finding::throttled(before, now)).map(rounded),
        rss_bytes: now.process.resident_bytes,
        memory_limit: now.container.memory_limit_bytes,
        disk_free_bytes: now.disk_free_bytes,
    }
}

/// To thousandths.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
