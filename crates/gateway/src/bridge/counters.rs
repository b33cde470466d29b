//! What bridges have done, for metrics. The counters of a bridge outlive a reload that keeps its path and methods.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use metrics::{Counter, Histogram, HistogramSnapshot};

use crate::error_code::ErrorCode;

/// The answers of services, by class of status.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];
/// The answers of Forebay in place of a service.
const CODES: [ErrorCode; 8] = [
    ErrorCode::NoWorker,
    ErrorCode::BusUnavailable,
    ErrorCode::BridgeBusy,
    ErrorCode::BridgeTimeout,
    ErrorCode::BusLost,
    ErrorCode::BadReply,
    ErrorCode::BusRefused,
    ErrorCode::ReplyDropped,
];
/// Bytes that an answer is expected to have at least.
const ANSWER_BYTES_MIN: usize = 4 * 1024;
/// Each answer changes the expectation by one part in so many of its difference.
const ANSWERS_REMEMBERED: usize = 8;
/// Requests that were rejected before they were sent, for another reason, such as their size.
const REJECTED: &str = "rejected";

/// The counters of a bridge.
#[derive(Debug, Default)]
pub struct BridgeCounters {
    answers: [Counter; CLASSES.len() + CODES.len() + 1],
    waiting: AtomicUsize,
    /// The mean of the answers' sizes, of which the later ones count more; 0 before the first one.
    answer_bytes: AtomicUsize,
    time: Histogram,
}

impl BridgeCounters {
    /// Requests by answer: a class such as `2xx` of a service's status, the code of Forebay's error, or `rejected`.
    pub fn answers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let labels = CLASSES.into_iter().chain(CODES.map(ErrorCode::as_str)).chain([REJECTED]);
        labels.zip(self.answers.iter().map(Counter::get))
    }

    /// Requests that wait for an answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Time from a request's head to its answer.
    #[must_use]
    pub fn time(&self) -> HistogramSnapshot {
        self.time.snapshot()
    }

    pub(crate) fn answered(&self, status: StatusCode, elapsed: Duration) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(2).min(CLASSES.len() - 1);
        self.answers[class].add(1);
        self.time.record(elapsed);
    }

    pub(crate) fn failed(&self, code: ErrorCode, elapsed: Duration) {
        let at = CODES.iter().position(|known| *known == code).unwrap_or(CODES.len());
        self.answers[CLASSES.len() + at].add(1);
        self.time.record(elapsed);
    }

    /// Bytes that the next answer is expected to have; `None` before the first answer.
    pub(crate) fn expected_bytes(&self) -> Option<usize> {
        Some(self.answer_bytes.load(Ordering::Relaxed))
            .filter(|bytes| *bytes > 0)
            .map(|bytes| bytes.max(ANSWER_BYTES_MIN))
    }

    /// Learns from an answer's size. Shards may overwrite each other's changes: it is an estimate.
    pub(crate) fn received(&self, bytes: usize) {
        let mean = match self.answer_bytes.load(Ordering::Relaxed) {
            0 => bytes,
            before => before - before / ANSWERS_REMEMBERED + bytes / ANSWERS_REMEMBERED,
        };
        self.answer_bytes.store(mean.max(1), Ordering::Relaxed);
    }

    /// Expects small answers, if there was none.
    pub(crate) fn assume_small(&self) {
        // Otherwise the answers say more.
        let _ = self.answer_bytes.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A place for a request that waits, unless so many wait already.
    pub(crate) fn wait(self: &Arc<Self>, waiting_max: usize) -> Option<Waiting> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(self.clone());
        (before < waiting_max).then_some(waiting)
    }
}

/// A request that waits, until this is dropped.
pub(crate) struct Waiting(Arc<BridgeCounters>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The counters of all bridges since the start, by [`BridgeRule::name`](super::BridgeRule::name).
#[derive(Debug, Default)]
pub struct BridgeBoard(Mutex<BTreeMap<String, Arc<BridgeCounters>>>);

impl BridgeBoard {
    /// Those of a bridge, which begin at 0 if it is new.
    pub(crate) fn of(&self, name: String) -> Arc<BridgeCounters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone()
    }

    /// All, by name.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Arc<BridgeCounters>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(name, counters)| (name.clone(), counters.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectation_follows_the_answers() {
        let counters = BridgeCounters::default();
        assert_eq!(counters.expected_bytes(), None);
        counters.received(1_000_000);
        assert_eq!(counters.expected_bytes(), Some(1_000_000));
        (0..50).for_each(|_| counters.received(500_000));
        assert!((500_000..520_000).contains(&counters.expected_bytes().unwrap()), "{:?}", counters.expected_bytes());
        (0..50).for_each(|_| counters.received(10));
        assert_eq!(counters.expected_bytes(), Some(ANSWER_BYTES_MIN));
        let silent = BridgeCounters::default();
        silent.assume_small();
        assert_eq!(silent.expected_bytes(), Some(ANSWER_BYTES_MIN));
        silent.assume_small();
        assert_eq!(silent.answer_bytes.load(Ordering::Relaxed), 1, "once");
    }

    #[test]
    fn answers_have_labels_and_places_are_released() {
        let board = BridgeBoard::default();
        let counters = board.of("GET /a".into());
        for status in [StatusCode::OK, StatusCode::FOUND, StatusCode::NOT_FOUND, StatusCode::BAD_GATEWAY] {
            counters.answered(status, Duration::ZERO);
        }
        for code in [ErrorCode::NoWorker, ErrorCode::BusRefused, ErrorCode::TooLarge] {
            counters.failed(code, Duration::ZERO);
        }
        let counted: Vec<_> = counters.answers().filter(|(_, count)| *count > 0).map(|(label, _)| label).collect();
        assert_eq!(counted, ["2xx", "3xx", "4xx", "5xx", "no_worker", "bus_refused", "rejected"]);
        let place = counters.wait(1).unwrap();
        assert!(counters.wait(1).is_none());
        assert_eq!(counters.waiting(), 1);
        drop(place);
        assert_eq!(board.of("GET /a".into()).waiting(), 0);
        assert!(counters.wait(1).is_some());
    }
}
