//! The metrics of the push: what was sent to collectors and receivers.

use metrics::Counter;
use spans::SpanQueue;

use super::exposition::Exposition;

/// Counts of the process.
#[derive(Debug, Default)]
pub(crate) struct PushCounters {
    /// Requests that the collector has accepted.
    pub(crate) accepted: Counter,
    /// Requests of which the collector has rejected a part.
    pub(crate) rejected: Counter,
    /// Requests that failed.
    pub(crate) failed: Counter,
    /// Datagrams sent, which their receiver may have lost.
    pub(crate) datagrams: Counter,
    /// Datagrams that could not be sent.
    pub(crate) failed_datagrams: Counter,
    /// The spans of sampled requests, if they are sent.
    pub(crate) spans: Option<&'static SpanQueue>,
}

impl PushCounters {
    /// Counts of a process with these spans.
    pub(crate) fn new(spans: Option<&'static SpanQueue>) -> Self {
        Self { spans, ..Self::default() }
    }

    /// Adds the counts.
    pub(crate) fn add(&self, text: &mut Exposition) {
        let help = "Requests to the collector of OpenTelemetry, by outcome.";
        text.counter("forebay_otlp_exports_total", help, |series| {
            for (outcome, count) in
                [("accepted", &self.accepted), ("rejected", &self.rejected), ("failed", &self.failed)]
            {
                series.count(&[("outcome", outcome)], count.get());
            }
        });
        let dropped = self.spans.map_or(0, |spans| spans.dropped().get());
        text.count("forebay_otlp_spans_dropped_total", "Spans dropped because too many waited.", dropped);
        text.counter("forebay_statsd_datagrams_total", "Datagrams to the receiver of StatsD, by outcome.", |series| {
            for (outcome, count) in [("sent", &self.datagrams), ("failed", &self.failed_datagrams)] {
                series.count(&[("outcome", outcome)], count.get());
            }
        });
    }
}
