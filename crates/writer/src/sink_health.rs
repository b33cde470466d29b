//! The health of a sink: the result of its last call. A writer keeps nothing else of its stores' state.

use std::sync::{Arc, Mutex, PoisonError};

use sink::SinkError;

/// The result of a sink's last call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastCall {
    /// Since when its calls succeed, or fail: microseconds since 1970, UTC.
    pub since: i64,
    /// Why the last one failed.
    pub failure: Option<String>,
}

/// The last call of one sink. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastCallCell(Arc<Mutex<Option<LastCall>>>);

impl LastCallCell {
    /// Notes the result of a call.
    pub(crate) fn note<T>(&self, result: &Result<T, SinkError>) {
        let failure = result.as_ref().err().map(ToString::to_string);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |last: &&LastCall| last.failure.is_some() == failure.is_some();
        let since = held.as_ref().filter(is_same).map_or_else(clock::unix_microseconds, |last| last.since);
        *held = Some(LastCall { since, failure });
    }

    /// The last one, if there was any.
    pub(crate) fn get(&self) -> Option<LastCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_the_first_call_with_this_result() {
        let cell = LastCallCell::default();
        let failed = |reason: &str| Err::<(), _>(SinkError::Unavailable(reason.into()));
        assert_eq!(cell.get(), None);
        cell.note(&failed("refused"));
        let first = cell.get().unwrap();
        cell.note(&failed("timed out"));
        assert_eq!(cell.get(), Some(LastCall { failure: Some("timed out".into()), ..first }));
        cell.note(&Ok(()));
        assert_eq!(cell.get().unwrap().failure, None);
    }
}
