//! Sends the process's figures to other servers: metrics to a collector of OpenTelemetry, and to a receiver of StatsD. Events never wait
//! for it.

mod collector;
mod otlp_metrics;
mod statsd;
mod statsd_lines;

use std::sync::Arc;

use config::Push;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::metrics::exposition::Exposition;
use crate::metrics::push::PushCounters;
use collector::Collector;
use otlp_metrics::{OtlpMetrics, Times};

/// Collects the metrics of the process.
pub(crate) type Collect = Arc<dyn Fn(&mut Exposition) + Send + Sync>;

/// The process as receivers see it.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// `serve`, `gateway` or `writer`.
    pub(crate) role: &'static str,
    /// What distinguishes it from others, after a restart too.
    pub(crate) id: String,
}

/// Starts what the configuration asks for. It ends with the runtime.
pub(crate) fn start(config: &Push, instance: &Instance, counters: &Arc<PushCounters>, collect: Collect) {
    if let Some(otlp) = &config.otlp {
        let collector = Collector::new(otlp, counters.clone());
        tokio::spawn(push_metrics(collector, otlp.interval, instance.clone(), collect.clone()));
    }
    if let Some(statsd) = &config.statsd {
        statsd::start(statsd.clone(), counters.clone(), collect);
    }
}

/// Metrics are sums since the start, so a push that fails loses nothing: the next one has them all.
async fn push_metrics(mut collector: Collector, interval: std::time::Duration, instance: Instance, collect: Collect) {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let start = nanoseconds();
    loop {
        ticks.tick().await;
        let mut metrics = OtlpMetrics::new(&instance, Times { start, now: nanoseconds() });
        collect(&mut metrics);
        for request in metrics.into_requests() {
            if !collector.send(otlp::METRICS_PATH, request).await {
                break;
            }
        }
        collector.wait().await;
    }
}

/// Nanoseconds since 1970.
fn nanoseconds() -> u64 {
    u64::try_from(clock::since_1970().as_nanos()).unwrap_or(u64::MAX)
}
