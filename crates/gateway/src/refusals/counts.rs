//! Rejected requests and records of batches, counted by type, source and code. A lock suffices: rejections are rare, and a batch takes it
//! once for each type and code.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::Counter;

use super::label::{OTHER, TypeLabel};
use crate::error_code::ErrorCode;

/// Pairs of type and source that are counted separately. The configuration and the tokens bound both; further ones are counted under
/// `other`.
const PAIRS_MAX: usize = 1_000;

type PerCode = [u64; ErrorCode::ALL.len()];

/// By type and source.
type Counts = BTreeMap<(TypeLabel, Arc<str>), Box<PerCode>>;

/// The counts of a process.
#[derive(Debug, Default)]
pub(crate) struct RefusalCounts(Mutex<Counts>);

/// How many were rejected with a code, of a type and from a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalCount {
    /// Why.
    pub code: ErrorCode,
    /// A declared type; `other` for other types, empty if the type isn't known.
    pub type_name: Box<str>,
    /// The source of the request's token; empty without one.
    pub source: Arc<str>,
    /// Requests and records of batches.
    pub count: u64,
}

/// The outcomes of quarantined events.
#[derive(Debug, Default)]
pub struct QuarantineCounts {
    /// They were appended to the log, or dropped by a step of that type.
    pub stored: Counter,
    /// They were stored before.
    pub repeated: Counter,
    /// There were too many, or that type rejected them.
    pub left_out: Counter,
}

impl RefusalCounts {
    pub(crate) fn add(&self, type_label: &TypeLabel, source: &Arc<str>, code: ErrorCode, count: u64) {
        let mut counts = self.hold();
        let mut key = (type_label.clone(), source.clone());
        if counts.len() >= PAIRS_MAX && !counts.contains_key(&key) {
            key = (TypeLabel::Other, OTHER.into());
        }
        counts.entry(key).or_insert_with(|| Box::new([0; ErrorCode::ALL.len()]))[code as usize] += count;
    }

    /// How many were rejected with this code.
    pub(crate) fn sum(&self, code: ErrorCode) -> u64 {
        self.hold().values().map(|counts| counts[code as usize]).sum()
    }

    /// All counts above 0, in the order of the codes.
    pub(crate) fn list(&self) -> Vec<RefusalCount> {
        let counts = self.hold();
        let of_code = |code: ErrorCode| {
            let counted = counts.iter().filter(move |(_, counts)| counts[code as usize] > 0);
            counted.map(move |((type_label, source), counts)| RefusalCount {
                code,
                type_name: type_label.as_str().into(),
                source: source.clone(),
                count: counts[code as usize],
            })
        };
        ErrorCode::ALL.into_iter().flat_map(of_code).collect()
    }

    fn hold(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_beyond_the_bound_share_one_count() {
        let counts = RefusalCounts::default();
        for number in 0..3_000 {
            let source: Arc<str> = format!("source-{number}").into();
            counts.add(&TypeLabel::None, &source, ErrorCode::Json, 2);
            counts.add(&TypeLabel::None, &source, ErrorCode::Schema, 1);
        }
        assert_eq!((counts.sum(ErrorCode::Json), counts.sum(ErrorCode::Schema)), (6_000, 3_000));
        let list = counts.list();
        assert_eq!(list.len(), 2 * (PAIRS_MAX + 1));
        let other = list.iter().find(|count| &*count.source == OTHER && count.code == ErrorCode::Json).unwrap();
        assert_eq!((&*other.type_name, other.count), (OTHER, 2 * 2_000));
        counts.add(&TypeLabel::None, &"source-1".into(), ErrorCode::Json, 1);
        assert!(counts.list().iter().any(|count| &*count.source == "source-1" && count.count == 3));
    }
}
