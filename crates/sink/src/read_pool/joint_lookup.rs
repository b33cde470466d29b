//! Lookups that are put together into one call, and how their callers get its answer.

use std::collections::{HashMap, HashSet};

use event::EventId;
use event::read::{Found, Lookup, ReadError, StoredEvent};
use limits::LOOKUP_IDS_MAX;

use tokio::sync::oneshot;

pub(super) type Reply<T> = oneshot::Sender<Result<T, ReadError>>;

/// One call for several callers.
pub(super) struct JointLookup {
    /// Each wanted id once, and the room of all callers.
    all: Lookup,
    known: HashSet<EventId>,
    callers: Vec<(Lookup, Reply<Found>)>,
}

impl JointLookup {
    pub(super) fn new(lookup: Lookup, reply: Reply<Found>) -> Self {
        let known = lookup.ids.iter().copied().collect();
        Self { all: lookup.clone(), known, callers: vec![(lookup, reply)] }
    }

    /// Adds a caller, or returns it if the call has no room for it.
    pub(super) fn add(&mut self, lookup: Lookup, reply: Reply<Found>) -> Option<(Lookup, Reply<Found>)> {
        if self.all.ids.len() >= LOOKUP_IDS_MAX || self.all.only_type != lookup.only_type {
            return Some((lookup, reply));
        }
        let further: Vec<EventId> = lookup.ids.iter().copied().filter(|id| !self.known.contains(id)).collect();
        if self.all.ids.len() + further.len() > LOOKUP_IDS_MAX {
            return Some((lookup, reply));
        }
        self.known.extend(&further);
        self.all.ids.extend(further);
        self.all.bytes_max = self.all.bytes_max.saturating_add(lookup.bytes_max);
        self.callers.push((lookup, reply));
        None
    }

    /// The call.
    pub(super) const fn lookup(&self) -> &Lookup {
        &self.all
    }

    /// Gives each caller those of its events for which it has room.
    pub(super) fn answer(mut self, answer: Result<Found, ReadError>) {
        match answer {
            Err(error) => self.callers.into_iter().for_each(|(_, reply)| drop(reply.send(Err(error.clone())))),
            Ok(found) if self.callers.len() == 1 => {
                if let Some((_, reply)) = self.callers.pop() {
                    drop(reply.send(Ok(found)));
                }
            }
            Ok(found) => {
                let mut shares = Shares::new(found, &self.callers);
                for (lookup, reply) in self.callers {
                    drop(reply.send(Ok(shares.of(lookup))));
                }
            }
        }
    }
}

/// The answer to a call, to be divided among its callers.
struct Shares {
    events: HashMap<EventId, StoredEvent>,
    left: HashSet<EventId>,
    /// How many callers still have to get an event.
    wanted: HashMap<EventId, usize>,
}

impl Shares {
    fn new(Found { events, left }: Found, callers: &[(Lookup, Reply<Found>)]) -> Self {
        let mut wanted = HashMap::new();
        for id in callers.iter().flat_map(|(lookup, _)| &lookup.ids) {
            *wanted.entry(*id).or_default() += 1;
        }
        let events = events.into_iter().map(|event| (event.id, event)).collect();
        Self { events, left: left.into_iter().collect(), wanted }
    }

    fn of(&mut self, Lookup { ids, bytes_max, .. }: Lookup) -> Found {
        let (mut found, mut bytes) = (Found::default(), 0);
        for id in ids {
            let is_last = self.wanted.get_mut(&id).is_none_or(|callers| {
                *callers -= 1;
                *callers == 0
            });
            let Some(event) = self.events.get(&id) else {
                if self.left.contains(&id) {
                    found.left.push(id);
                }
                continue;
            };
            if bytes + event.bytes() > bytes_max && !found.events.is_empty() {
                found.left.push(id);
                continue;
            }
            bytes += event.bytes();
            let event = if is_last { self.events.remove(&id) } else { Some(event.clone()) };
            found.events.extend(event);
        }
        found
    }
}
