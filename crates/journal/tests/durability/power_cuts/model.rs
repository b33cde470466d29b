//! The expected content of the disk, regardless of faults: the oracle of the campaign.

use std::collections::BTreeMap;

use super::process::Seen;
use crate::events::Event;

/// A promise that was broken.
#[derive(Clone, Debug)]
pub(crate) struct Violation(pub(crate) String);

impl Violation {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// The events of one request, side by side from a sequence on.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) first: u64,
    pub(crate) events: Vec<Event>,
}

/// The clients' responses, and the attempts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// Events that a client has its 200 for, or that a start has shown: both are permanent.
    acknowledged: BTreeMap<u64, Event>,
    /// The requests of a commit that was not answered.
    attempted: Vec<Request>,
    cursor: u64,
    /// A cursor whose write was not answered.
    attempted_cursor: Option<u64>,
    /// The last sequence that is permanently used.
    last: u64,
}

impl Model {
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    pub(crate) fn attempt(&mut self, requests: Vec<Request>) {
        self.attempted = requests;
    }

    /// The commit that was attempted was answered.
    pub(crate) fn acknowledge(&mut self) {
        for request in std::mem::take(&mut self.attempted) {
            for (sequence, event) in (request.first..).zip(request.events) {
                self.last = self.last.max(sequence);
                self.acknowledged.insert(sequence, event);
            }
        }
    }

    pub(crate) fn attempt_cursor(&mut self, cursor: u64) {
        self.attempted_cursor = Some(cursor);
    }

    pub(crate) fn acknowledge_cursor(&mut self) {
        self.cursor = self.attempted_cursor.take().unwrap_or(self.cursor);
    }

    /// Whether the events after a start fulfil every promise.
    pub(crate) fn check(&self, seen: &Seen) -> Result<(), Violation> {
        if seen.cursor != self.cursor && Some(seen.cursor) != self.attempted_cursor {
            let expected = (self.cursor, self.attempted_cursor);
            return Err(Violation::new(format!("the cursor is {}, written was {expected:?}", seen.cursor)));
        }
        if seen.durable < self.last {
            return Err(Violation::new(format!("sequences went back to {} from {}", seen.durable, self.last)));
        }
        self.check_events(seen)?;
        self.check_requests(seen)?;
        check_reports(seen)
    }

    fn check_events(&self, seen: &Seen) -> Result<(), Violation> {
        let mut before = 0;
        for (sequence, event) in &seen.events {
            if *sequence <= before {
                return Err(Violation::new(format!("sequence {sequence} was read after {before}")));
            }
            before = *sequence;
            let expected = self.acknowledged.get(sequence).or_else(|| self.attempted_at(*sequence));
            if expected != Some(event) {
                let id = expected.map(|expected| expected.id);
                return Err(Violation::new(format!("{sequence} is event {}, expected {id:?}", event.id)));
            }
        }
        let wanted = self.acknowledged.range(seen.cursor + 1..).map(|(sequence, _)| *sequence);
        let mut there = seen.events.iter().map(|(sequence, _)| *sequence).skip_while(|s| *s <= seen.cursor);
        for sequence in wanted {
            if there.next() != Some(sequence) {
                return Err(Violation::new(format!("acknowledged event {sequence} is gone")));
            }
        }
        Ok(())
    }

    fn attempted_at(&self, sequence: u64) -> Option<&Event> {
        let request = self.attempted.iter().rfind(|request| request.first <= sequence)?;
        request.events.get(usize::try_from(sequence - request.first).ok()?)
    }

    /// All or none of a request: its events are adjacent at the end of the seen ones.
    fn check_requests(&self, seen: &Seen) -> Result<(), Violation> {
        for request in &self.attempted {
            let end = request.first + request.events.len() as u64;
            let there = seen.events.iter().rev().filter(|(s, _)| (request.first..end).contains(s)).count();
            if there != 0 && there != request.events.len() {
                let of = request.events.len();
                return Err(Violation::new(format!("{there} of {of} events of the request at {}", request.first)));
            }
        }
        Ok(())
    }

    /// Continues from the events that a start has shown: from now on they are permanent too.
    pub(crate) fn accept(&mut self, seen: &Seen) {
        self.attempted.clear();
        self.attempted_cursor = None;
        self.cursor = seen.cursor;
        self.last = seen.durable;
        // Freed events may not return; events before the cursor may still be there.
        let oldest = seen.events.first().map_or(u64::MAX, |(sequence, _)| *sequence);
        self.acknowledged = self.acknowledged.split_off(&oldest.min(seen.cursor + 1));
        self.acknowledged.extend(seen.events.iter().cloned());
    }
}

/// A power cut tears only unanswered requests. Nothing else may be reported.
fn check_reports(seen: &Seen) -> Result<(), Violation> {
    let damage = seen.findings.iter().find(|finding| !matches!(finding.case, 'C' | 'E'));
    if let Some(finding) = damage.or(seen.damage.first()) {
        return Err(Violation::new(format!("nothing acknowledged was damaged, but: {finding}")));
    }
    match seen.damaged_state.first() {
        Some(path) => Err(Violation::new(format!("a power cut damages no state file, but: {}", path.display()))),
        None => Ok(()),
    }
}
