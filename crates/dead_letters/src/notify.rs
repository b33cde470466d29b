//! Notices of new dead letters for the operator: the log says that there are some, and each route shows the reason of the last one. A store's
//! error message may quote the event, so it isn't logged.

use std::collections::BTreeMap;

use clock::Throttle;
use eventlog::unix_microseconds;
use tokio::time::Instant;

/// Only this much of a reason is shown with a route.
const REASON_CHARACTERS_MAX: usize = 300;

/// The newest dead letter of a route since the start of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastDead {
    /// When it became one: microseconds since 1970, UTC.
    pub at: i64,
    /// The store's error message, truncated if it is long.
    pub reason: String,
}

#[derive(Debug)]
struct OfType {
    unlogged: u64,
    throttle: Throttle,
    last: LastDead,
}

/// The new dead letters of one sink, by type.
#[derive(Debug, Default)]
pub(super) struct Notices(BTreeMap<Box<str>, OfType>);

impl Notices {
    /// An event has become a dead letter.
    pub(super) fn add(&mut self, type_name: &str, reason: &str) {
        let last = LastDead { at: unix_microseconds(), reason: reason.chars().take(REASON_CHARACTERS_MAX).collect() };
        match self.0.get_mut(type_name) {
            Some(of_type) => {
                of_type.unlogged += 1;
                of_type.last = last;
            }
            None => drop(self.0.insert(type_name.into(), OfType { unlogged: 1, throttle: Throttle::default(), last })),
        }
    }

    /// Shows another reason with a type, and logs nothing.
    pub(super) fn renew(&mut self, type_name: &str, reason: &str) {
        let unlogged = self.0.get(type_name).map_or(0, |of_type| of_type.unlogged);
        self.add(type_name, reason);
        if let Some(of_type) = self.0.get_mut(type_name) {
            of_type.unlogged = unlogged;
        }
    }

    /// What to log now: the number of new ones of each type.
    pub(super) fn take_due(&mut self) -> Vec<(Box<str>, u64)> {
        let now = Instant::now().into_std();
        let due = self.0.iter_mut().filter(|(_, of_type)| of_type.unlogged > 0);
        let due = due.filter_map(|(name, of_type)| of_type.throttle.take(now).then_some((name, of_type)));
        due.map(|(name, of_type)| (name.clone(), std::mem::take(&mut of_type.unlogged))).collect()
    }

    pub(super) fn last(&self, type_name: &str) -> Option<LastDead> {
        self.0.get(type_name).map(|of_type| of_type.last.clone())
    }
}
