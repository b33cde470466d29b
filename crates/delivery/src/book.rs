//! What the ledger knows beside the accepted events: for each sink its lanes' cursors and outcomes, and the types
//! that it has routes from.

use std::collections::BTreeMap;

use event::TypeName;

use crate::{Routes, SinkName};

/// What became of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    pub(crate) stored: u64,
    pub(crate) dead: u64,
    pub(crate) skipped: u64,
}

impl Outcomes {
    pub(crate) const fn total(self) -> u64 {
        self.stored + self.dead + self.skipped
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.stored += other.stored;
        self.dead += other.dead;
        self.skipped += other.skipped;
    }

    /// An event that was dead is stored, or the other way round. Where none was counted nothing changes, so that
    /// the sum stays what it is.
    pub(crate) const fn turn(&mut self, is_stored: bool) {
        let (from, to) =
            if is_stored { (&mut self.dead, &mut self.stored) } else { (&mut self.stored, &mut self.dead) };
        if *from > 0 {
            *from -= 1;
            *to += 1;
        }
    }

    /// `None` where there are fewer.
    pub(crate) fn less(self, other: Self) -> Option<Self> {
        Some(Self {
            stored: self.stored.checked_sub(other.stored)?,
            dead: self.dead.checked_sub(other.dead)?,
            skipped: self.skipped.checked_sub(other.skipped)?,
        })
    }
}

/// A route that was taken out of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closed {
    /// For each shard the last sequence that the route still holds.
    pub(crate) until: Vec<u64>,
    /// How many events of its type had been accepted by then; later ones are skipped.
    pub(crate) accepted: u64,
}

/// A type's route to a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Events that were accepted before the route began: skipped.
    pub(crate) base: u64,
    /// For each shard the last sequence before the route began; missing ones are 0.
    pub(crate) from: Vec<u64>,
    pub(crate) closed: Option<Closed>,
}

impl Pair {
    /// The events of this type that a lane delivers: those after the first and up to the second sequence.
    pub(crate) fn bounds(&self, shard: u16) -> (u64, u64) {
        let at = |sequences: &[u64]| sequences.get(usize::from(shard)).copied().unwrap_or(0);
        (at(&self.from), self.closed.as_ref().map_or(u64::MAX, |closed| at(&closed.until)))
    }
}

/// One lane: everything up to its cursor has its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneBook {
    /// The last sequence before the lane began.
    pub(crate) start: u64,
    pub(crate) cursor: u64,
    /// Positions up to the cursor that couldn't be read.
    pub(crate) lost: u64,
    /// The store was seen ahead of the journal: what stands between can't be told apart from new events.
    pub(crate) ahead: bool,
    pub(crate) outcomes: BTreeMap<TypeName, Outcomes>,
    /// Whether the store has told where it stands since the start of the process. Not saved.
    pub(crate) confirmed: bool,
}

/// A sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SinkBook {
    /// By shard.
    pub(crate) lanes: Vec<LaneBook>,
    pub(crate) pairs: BTreeMap<TypeName, Pair>,
    /// Up to where the outcomes take the journal of the sink's dead letters into account.
    pub(crate) dead_up_to: u64,
    /// Whether the sink is in the configuration. Not saved.
    pub(crate) configured: bool,
}

impl SinkBook {
    pub(crate) fn outcomes(&self, name: &TypeName) -> Outcomes {
        let mut sum = Outcomes::default();
        self.lanes.iter().filter_map(|lane| lane.outcomes.get(name)).for_each(|outcomes| sum.add(*outcomes));
        sum
    }

    /// Whether a route has events that the lanes haven't passed, or may still get some.
    pub(crate) fn waits(&self) -> bool {
        self.lanes.iter().enumerate().any(|(shard, lane)| {
            let shard = u16::try_from(shard).unwrap_or(u16::MAX);
            self.pairs.values().any(|pair| lane.cursor < pair.bounds(shard).1)
        })
    }

    /// Whether the sink needs segments: one that was taken out of the configuration does while events wait for it.
    pub(crate) fn holds(&self) -> bool {
        self.configured || self.waits()
    }
}

/// All sinks, and the routes by which their events were chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Book {
    pub(crate) routes: Routes,
    pub(crate) sinks: BTreeMap<SinkName, SinkBook>,
}

impl Book {
    /// Notes the routes of a type that has just been seen for the first time.
    pub(crate) fn meet(&mut self, name: &TypeName) {
        for (sink, book) in &mut self.sinks {
            if book.configured && !book.pairs.contains_key(name) && self.routes.leads(name, sink) {
                book.pairs.insert(name.clone(), Pair::default());
            }
        }
    }

    /// For each shard the sequence up to which no sink needs segments, `accepted` at most.
    pub(crate) fn passed(&self, counted_up_to: &[u64]) -> Vec<u64> {
        let mut passed = counted_up_to.to_vec();
        for book in self.sinks.values().filter(|book| book.holds()) {
            for (limit, lane) in passed.iter_mut().zip(&book.lanes) {
                *limit = (*limit).min(if lane.confirmed || !book.configured { lane.cursor } else { 0 });
            }
        }
        passed
    }
}
