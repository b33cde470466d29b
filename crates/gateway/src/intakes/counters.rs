//! What intakes have done, for metrics. The counters of an intake outlive a reload that keeps its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use metrics::Counter;

use crate::status_class::StatusClass;

/// The counters of an intake.
#[derive(Debug, Default)]
pub struct IntakeCounters {
    requests: [Counter; StatusClass::ALL.len()],
    pub(crate) accepted: Counter,
    pub(crate) rejected: Counter,
    pub(crate) signature_failures: Counter,
}

impl IntakeCounters {
    /// Requests by the class of their status.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, u64)> {
        StatusClass::ALL.map(StatusClass::as_str).into_iter().zip(self.requests.iter().map(Counter::get))
    }

    /// Records that are on disk, duplicates included.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.get()
    }

    /// Records that were rejected permanently.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected.get()
    }

    /// Requests without a valid signature.
    #[must_use]
    pub fn signature_failures(&self) -> u64 {
        self.signature_failures.get()
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        self.requests[StatusClass::of(status) as usize].add(1);
    }
}

/// The counters of all intakes since the start, by name.
#[derive(Debug, Default)]
pub struct IntakeBoard(Mutex<BTreeMap<Arc<str>, Arc<IntakeCounters>>>);

impl IntakeBoard {
    /// Those of an intake, which begin at 0 if it is new.
    pub(crate) fn of(&self, name: &Arc<str>) -> Arc<IntakeCounters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(name.clone()).or_default().clone()
    }

    /// All, by name.
    #[must_use]
    pub fn all(&self) -> Vec<(Arc<str>, Arc<IntakeCounters>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(name, counters)| (name.clone(), counters.clone())).collect()
    }
}
