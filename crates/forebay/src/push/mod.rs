//! Sends the process's figures to other servers: metrics to a collector of OpenTelemetry, and to a receiver of StatsD. Events never wait
//! for it.

mod collector;
mod otlp_metrics;
mod otlp_spans;
mod statsd;
mod statsd_lines;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use config::Push;
use spans::SpanQueue;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::metrics::exposition::Exposition;
use crate::metrics::push::PushCounters;
use collector::Collector;
use otlp_metrics::{OtlpMetrics, Times};

/// The time between two requests with spans.
const SPANS_EVERY: Duration = Duration::from_secs(1);

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

/// The queue of spans, if there is a collector.
pub(crate) fn spans(config: &Push) -> Option<&'static SpanQueue> {
    let otlp = config.otlp.as_ref()?;
    let seed = RandomState::new().hash_one("spans");
    Some(Box::leak(Box::new(SpanQueue::new(otlp.sample, seed))))
}

/// Starts what the configuration asks for. It ends with the runtime.
pub(crate) fn start(config: &Push, instance: &Instance, counters: &Arc<PushCounters>, collect: Collect) {
    if let Some(otlp) = &config.otlp {
        let collector = Collector::new(otlp, counters.clone());
        tokio::spawn(push_metrics(collector, otlp.interval, instance.clone(), collect.clone()));
        if let Some(spans) = counters.spans {
            tokio::spawn(push_spans(Collector::new(otlp, counters.clone()), instance.clone(), spans));
        }
    }
    if let Some(statsd) = &config.statsd {
        statsd::start(statsd.clone(), counters.clone(), collect);
    }
}

/// Metrics are sums since the start, so a push that fails loses nothing: the next one has them all.
async fn push_metrics(mut collector: Collector, interval: Duration, instance: Instance, collect: Collect) {
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

/// Spans have a separate task: a collector that takes no traces still gets metrics. Spans of a request that fails are lost.
async fn push_spans(mut collector: Collector, instance: Instance, spans: &'static SpanQueue) {
    loop {
        tokio::time::sleep(SPANS_EVERY).await;
        let waiting = spans.take();
        for part in waiting.chunks(otlp_spans::SPANS_MAX) {
            if !collector.send(otlp::TRACES_PATH, otlp_spans::request(&instance, part)).await {
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
