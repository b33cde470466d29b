//! The gateways that send batches to a sink.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use event::Origin;

/// Gateways that are kept. The one that called longest ago makes room.
const CALLERS_MAX: usize = 64;

/// The last calls, by gateway: microseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct Callers(Mutex<BTreeMap<Origin, i64>>);

impl Callers {
    /// A gateway sends a batch.
    pub(crate) fn note(&self, origin: Origin, now: i64) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() == CALLERS_MAX && !held.contains_key(&origin) {
            let oldest = held.iter().min_by_key(|(_, last)| **last).map(|(origin, _)| *origin);
            oldest.map(|oldest| held.remove(&oldest));
        }
        held.insert(origin, now);
    }

    /// All that are kept, by name.
    pub(crate) fn list(&self) -> Vec<(Origin, i64)> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|(origin, last)| (*origin, *last)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_caller_makes_room() {
        let (callers, origin) = (Callers::default(), |number: u8| Origin([number; 16]));
        for number in 0..64 {
            callers.note(origin(number), i64::from(number));
        }
        callers.note(origin(0), 100);
        callers.note(origin(200), 101);
        let list = callers.list();
        assert_eq!(list.len(), CALLERS_MAX);
        assert!(list.contains(&(origin(0), 100)) && list.contains(&(origin(200), 101)));
        assert!(!list.iter().any(|(known, _)| *known == origin(1)));
    }
}
