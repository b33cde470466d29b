//! The transform of a type, with its dedupe windows and the estimate of its cost.

use std::fmt;

use transform::{Filtered, Transform, Windows};

use super::cost::CostEstimator;

/// The transform of a type. All shards share its dedupe windows.
pub struct TransformHandle {
    transform: Transform,
    asks_for_key: bool,
    windows: Windows,
    estimator: CostEstimator,
}

impl fmt::Debug for TransformHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformHandle").field("transform", &self.transform).finish_non_exhaustive()
    }
}

impl TransformHandle {
    /// `seed` must be random: a client that knows it can make events that are dropped as duplicates of others.
    #[must_use]
    pub fn new(transform: Transform, seed: u64) -> Self {
        let (windows, asks_for_key) = (transform.windows(seed), transform.asks_for_key());
        Self { transform, asks_for_key, windows, estimator: CostEstimator::new() }
    }

    /// The first `windows` dedupe windows share their content with those of `before`.
    pub fn remember_as(&mut self, before: &Self, windows: usize) {
        if windows > 0 {
            self.windows = self.windows.sharing(&before.windows, windows);
        }
    }

    /// The transform itself.
    #[must_use]
    pub const fn transform(&self) -> &Transform {
        &self.transform
    }

    /// What it usually costs.
    pub(crate) const fn estimator(&self) -> &CostEstimator {
        &self.estimator
    }

    /// Whether a step depends on the key of an event.
    pub(crate) const fn asks_for_key(&self) -> bool {
        self.asks_for_key
    }

    /// The request headers that its steps read, in lower case.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &str> {
        self.transform.headers()
    }

    /// The steps that may drop events.
    pub(crate) fn filters(&self) -> impl Iterator<Item = Filtered> {
        self.transform.filters()
    }

    /// The dedupe windows for a request before which so many commits had been rejected. If a commit is rejected, it isn't known which
    /// values its events had. Requests that began after it ignore values of requests that began before it: they may accept an event
    /// twice, but never drop both. A request that depends on a value waits for the commit and compares the number again.
    pub(crate) fn windows(&self, refused_commits: u64) -> Windows {
        self.windows.for_request(refused_commits)
    }
}
