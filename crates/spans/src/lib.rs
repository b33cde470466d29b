//! Spans of requests whose trace is recorded, and the bounded queue in which they wait until they are sent. A request that isn't sampled
//! pays one branch.
//!
//! No I/O, and no clock: times are arguments, in microseconds since 1970.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use event::TraceParent;
use metrics::Counter;
use random::Random;

/// Spans that wait at most. Further ones are dropped and counted.
pub const SPANS_WAITING_MAX: usize = 4_096;

/// The id of a span.
pub type SpanId = [u8; 8];

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that Forebay answers.
    Server,
    /// A call of another server.
    Client,
    /// A step within the process.
    Internal,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

/// A piece of work that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its trace, and its own id.
    pub context: TraceParent,
    /// The span of which it is a part.
    pub parent: Option<SpanId>,
    /// What was done.
    pub name: String,
    /// What it is about.
    pub kind: SpanKind,
    /// When it began.
    pub began: i64,
    /// When it ended.
    pub ended: i64,
    /// Facts about it.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// Whether it failed.
    pub has_failed: bool,
}

/// A request whose spans are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledRequest {
    /// Its trace, with the id of the request's own span: that of its sender's successors.
    pub context: TraceParent,
    /// The sender's span.
    pub parent: Option<SpanId>,
}

/// Records of one call of a store that get a span.
const RECORDS_MAX: usize = 100;

/// A call of a store.
#[derive(Clone, Copy, Debug)]
pub struct WriteSpan<'a> {
    /// The sink's name.
    pub sink: &'a str,
    /// How many records it had.
    pub records: i64,
    /// `stored`, `partial`, `rejected` or `failed`.
    pub outcome: &'static str,
    /// Whether the call failed as a whole.
    pub has_failed: bool,
    /// When it began and ended.
    pub time: (i64, i64),
}

/// The steps of a request that is sampled, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'q> {
    queue: &'q SpanQueue,
    request: TraceParent,
    since: i64,
}

impl<'q> Steps<'q> {
    /// The steps of a request, from `now` on.
    #[must_use]
    pub const fn new(queue: &'q SpanQueue, request: TraceParent, now: i64) -> Self {
        Self { queue, request, since: now }
    }

    /// Ends a step. The next one begins.
    pub fn end(&mut self, name: &str, now: i64) {
        self.queue.add(self.queue.child(self.request, name.to_owned(), (self.since, now)));
        self.since = now;
    }
}

/// Chooses requests, and keeps their spans until they are sent.
#[derive(Debug)]
pub struct SpanQueue {
    one_in: Option<NonZeroU32>,
    requests: AtomicU64,
    seed: u64,
    ids: AtomicU64,
    waiting: Mutex<Vec<Span>>,
    dropped: Counter,
}

impl SpanQueue {
    /// A queue for the spans of requests whose sender records their trace, and of one in so many others. The seed decides the ids.
    #[must_use]
    pub const fn new(one_in: Option<NonZeroU32>, seed: u64) -> Self {
        let (requests, ids) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { one_in, requests, seed, ids, waiting: Mutex::new(Vec::new()), dropped: Counter::new() }
    }

    /// Whether a request is sampled, by the trace that its sender has named.
    pub fn sample(&self, sender: Option<TraceParent>) -> Option<SampledRequest> {
        if !sender.is_some_and(|sender| sender.is_sampled) {
            let one_in = u64::from(self.one_in?.get());
            if !self.requests.fetch_add(1, Ordering::Relaxed).is_multiple_of(one_in) {
                return None;
            }
        }
        let parent = sender.map(|sender| sender.span_id);
        let trace_id = sender.map_or_else(|| self.trace_id(), |sender| sender.trace_id);
        Some(SampledRequest { context: TraceParent { trace_id, span_id: self.span_id(), is_sampled: true }, parent })
    }

    /// A span within the span of `context`, without attributes.
    pub fn child(&self, context: TraceParent, name: String, (began, ended): (i64, i64)) -> Span {
        Span {
            context: TraceParent { span_id: self.span_id(), ..context },
            parent: Some(context.span_id),
            name,
            kind: SpanKind::Internal,
            began,
            ended,
            attributes: Vec::new(),
            has_failed: false,
        }
    }

    /// Adds a span for each sampled record that was written with others, up to 100: a call of the store is a part of several
    /// traces. `traces` are those of records, with their sequences; only those from `first` to `last` were written.
    pub fn add_writes(&self, traces: &[(u64, TraceParent)], (first, last): (u64, u64), write: &WriteSpan<'_>) {
        let is_written =
            |(sequence, trace): &&(u64, TraceParent)| trace.is_sampled && (first..=last).contains(sequence);
        for (_, trace) in traces.iter().filter(is_written).take(RECORDS_MAX) {
            self.add(Span {
                kind: SpanKind::Client,
                attributes: vec![
                    ("forebay.sink", SpanValue::Text(write.sink.to_owned())),
                    ("forebay.records", SpanValue::Number(write.records)),
                    ("forebay.outcome", SpanValue::Text(write.outcome.to_owned())),
                ],
                has_failed: write.has_failed,
                ..self.child(*trace, format!("write {}", write.sink), write.time)
            });
        }
    }

    /// Adds a span, unless too many wait.
    pub fn add(&self, span: Span) {
        let mut waiting = self.lock();
        if waiting.len() < SPANS_WAITING_MAX {
            waiting.push(span);
        } else {
            self.dropped.add(1);
        }
    }

    /// The spans that wait. They are no longer in the queue.
    pub fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *self.lock())
    }

    /// Spans that were dropped because too many waited.
    #[must_use]
    pub const fn dropped(&self) -> &Counter {
        &self.dropped
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Span>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no other call gets. 0 is no valid id.
    fn number(&self) -> u64 {
        Random::stream(self.seed, self.ids.fetch_add(1, Ordering::Relaxed)).number().max(1)
    }

    fn span_id(&self) -> SpanId {
        self.number().to_be_bytes()
    }

    fn trace_id(&self) -> [u8; 16] {
        (u128::from(self.number()) << 64 | u128::from(self.number())).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(is_sampled: bool) -> TraceParent {
        TraceParent { trace_id: [3; 16], span_id: [4; 8], is_sampled }
    }

    #[test]
    fn senders_flag_decides_and_one_in_n_others_is_sampled() {
        let queue = SpanQueue::new(None, 1);
        assert_eq!((queue.sample(None), queue.sample(Some(sender(false)))), (None, None));
        let sampled = queue.sample(Some(sender(true))).unwrap();
        assert_eq!((sampled.context.trace_id, sampled.parent), ([3; 16], Some([4; 8])));
        assert!(sampled.context.is_sampled && sampled.context.span_id != [4; 8]);

        let queue = SpanQueue::new(NonZeroU32::new(10), 1);
        let sampled: Vec<_> = (0..100).filter_map(|_| queue.sample(None)).collect();
        assert_eq!(sampled.len(), 10);
        assert!(sampled.iter().all(|sampled| sampled.parent.is_none()));
        assert_ne!(sampled[0].context.trace_id, sampled[1].context.trace_id);
        assert!(queue.sample(Some(sender(true))).is_some(), "a sender's flag is enough");
    }

    #[test]
    fn full_queue_drops_and_counts() {
        let queue = SpanQueue::new(None, 1);
        let span = queue.child(sender(true), "commit".to_owned(), (1, 2));
        assert_eq!((span.parent, span.context.trace_id), (Some([4; 8]), [3; 16]));
        (0..SPANS_WAITING_MAX + 3).for_each(|_| queue.add(span.clone()));
        assert_eq!((queue.take().len(), queue.dropped().get(), queue.take().len()), (SPANS_WAITING_MAX, 3, 0));
    }
}
