//! Findings: what slowed the process down in the last minute, as sentences with figures and a remedy.

mod finding;
mod sample;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admin_api::status::FindingJson;
use eventlog::EventLog;
use gateway::GatewayCounters;
use host::ThreadTimes;
use tokio::time::sleep;

use sample::Sample;

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
    /// The oldest first.
    samples: Mutex<VecDeque<Sample>>,
}

impl Findings {
    /// Without samples. A writer has no server's sources.
    pub(crate) fn new(server: Option<ServerSources>) -> Self {
        Self(Arc::new(Inner { server, threads: ThreadTimes::default(), samples: Mutex::default() }))
    }

    /// Takes samples until the future is dropped.
    pub(crate) async fn follow(self) {
        loop {
            let sample = self.sample();
            {
                let mut samples = self.0.samples.lock().unwrap_or_else(PoisonError::into_inner);
                samples.push_back(sample);
                if samples.len() > KEPT {
                    samples.pop_front();
                }
            }
            sleep(INTERVAL).await;
        }
    }

    /// What the last minute shows. Nothing before there are two samples an interval apart.
    pub(crate) fn now(&self) -> Vec<FindingJson> {
        let now = self.sample();
        let samples = self.0.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = samples.front().filter(|before| now.at - before.at >= INTERVAL) else { return Vec::new() };
        finding::findings(before, &now)
    }

    fn sample(&self) -> Sample {
        Sample::take(self.0.server.as_ref(), &self.0.threads)
    }
}
