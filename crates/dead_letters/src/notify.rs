//! What a person is told of new dead letters: in the log that there are some, and with its route why the last one is. A store's words may
//! quote the event, so that they aren't written into the log.

use std::collections::BTreeMap;

use clock::Throttle;
use eventlog::unix_microseconds;
use tokio::time::Instant;

/// So much of a reason is shown with a route.
const REASON_CHARACTERS_MAX: usize = 300;

/// The newest dead letter of a route since the start of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastDead {
    /// When it became one: microseconds since 1970, UTC.
    pub at: i64,
    /// Why, in the store's words; a long text is cut.
    pub reason: String,
}

#[derive(Debug)]
struct OfType {
    untold: u64,
    pace: Throttle,
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
                of_type.untold += 1;
                of_type.last = last;
            }
            None => drop(self.0.insert(type_name.into(), OfType { untold: 1, pace: Throttle::default(), last })),
        }
    }

    /// Shows another reason with a type, and says nothing.
    pub(super) fn renew(&mut self, type_name: &str, reason: &str) {
        let untold = self.0.get(type_name).map_or(0, |of_type| of_type.untold);
        self.add(type_name, reason);
        if let Some(of_type) = self.0.get_mut(type_name) {
            of_type.untold = untold;
        }
    }

    /// What is to be said now: how many more there are of which type.
    pub(super) fn tell(&mut self) -> Vec<(Box<str>, u64)> {
        let now = Instant::now().into_std();
        let due = self.0.iter_mut().filter(|(_, of_type)| of_type.untold > 0);
        let due = due.filter_map(|(name, of_type)| of_type.pace.take(now).then_some((name, of_type)));
        due.map(|(name, of_type)| (name.clone(), std::mem::take(&mut of_type.untold))).collect()
    }

    pub(super) fn last(&self, type_name: &str) -> Option<LastDead> {
        self.0.get(type_name).map(|of_type| of_type.last.clone())
    }
}
