//! A page of events that match a source, a condition or both. Stores don't evaluate these, so Forebay reads parts of the store and compares their
//! events, up to a limit of each request. Then the page ends, and its cursor continues the search.

use std::sync::Arc;
use std::time::{Duration, Instant};

use event::read::{Bookmark, Page, Query, StoredEvent};
use expression::Expression;

use super::choice::Choice;
use super::operator_problem::shown_to_operators;
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

/// Events that a request compares, at most by one part more.
const EVENTS_MAX: usize = 5_000;
/// Bytes of events that a request compares, at most by one part more.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long a request searches, plus the time of one part.
const TIME_MAX: Duration = Duration::from_secs(1);
/// Events of a part.
const PART_EVENTS: usize = 256;
/// Steps of a condition on one event. An event that needs more doesn't match.
const STEPS_MAX: usize = 50_000;

/// A search for events.
pub(super) struct Scan {
    pub(super) choice: Choice,
    pub(super) filter: ScanFilter,
    /// Events of the page at most.
    pub(super) limit: usize,
    /// Bytes of a part, and of the events of the page; at least one event is read.
    pub(super) bytes_max: usize,
    pub(super) after: Option<Bookmark>,
}

/// Which events match. All of them if neither is set.
#[derive(Clone, Default)]
pub(super) struct ScanFilter {
    pub(super) source: Option<Arc<str>>,
    pub(super) condition: Option<Arc<Expression>>,
}

/// The result of a search.
#[derive(Default)]
pub(super) struct Scanned {
    pub(super) events: Vec<StoredEvent>,
    /// Events that were compared.
    pub(super) looked_at: usize,
    /// The receipt of the last one: microseconds since 1970, UTC.
    pub(super) looked_to: Option<i64>,
    /// Bytes of all that were compared.
    bytes: usize,
    pub(super) next: Option<Bookmark>,
}

impl Scan {
    /// Reads until the page is full, the store is at its end, or the limit of a request is reached.
    ///
    /// # Errors
    /// The store can't be read.
    pub(super) async fn run(&mut self) -> Result<Scanned, Refused> {
        let (began, mut found) = (Instant::now(), Scanned::default());
        loop {
            let room = self.limit - found.events.len();
            // Pages from the newest event on differ from read to read. The first part has at most as many events as the page.
            let events = if self.filter.is_set() && self.after.is_some() { PART_EVENTS.max(room) } else { room };
            let (mut page, mut matches) = self.part(events).await?;
            let without_room = positions(&matches).nth(room);
            if let Some(last) = without_room {
                // The cursor of a page is a place between two parts, so the last part ends before the first event without room.
                (page, matches) = self.part(last).await?;
            }
            found.add(&mut page, &matches);
            self.after.clone_from(&page.next);
            found.next = page.next;
            let is_full = found.events.len() >= self.limit || found.kept_bytes() >= self.bytes_max;
            let is_page = !self.filter.is_set() && !found.events.is_empty();
            let is_long = found.looked_at >= EVENTS_MAX || found.bytes >= BYTES_MAX || began.elapsed() >= TIME_MAX;
            if found.next.is_none() || is_full || is_page || is_long {
                return Ok(found);
            }
        }
    }

    /// The next part of the store, and which of its events match.
    async fn part(&self, events: usize) -> Result<(Page, Vec<bool>), Refused> {
        let query = Query {
            wanted: self.choice.wanted.clone(),
            after: self.after.clone(),
            limit: events.max(1),
            bytes_max: self.bytes_max,
            only_type: None,
        };
        let page = self.choice.reader.read(query).await.map_err(|error| shown_to_operators(&error))?;
        if !self.filter.is_set() {
            let all = vec![true; page.events.len()];
            return Ok((page, all));
        }
        let filter = self.filter.clone();
        let compare = move || {
            let matches = page.events.iter().map(|event| filter.matches(event)).collect();
            (page, matches)
        };
        let compared = tokio::task::spawn_blocking(compare).await;
        compared.map_err(|_| Problem::boxed(ErrorCode::Overload, "the server is stopping: retry after its restart"))
    }
}

impl ScanFilter {
    fn is_set(&self) -> bool {
        self.source.is_some() || self.condition.is_some()
    }

    fn matches(&self, event: &StoredEvent) -> bool {
        let is_of_source = self.source.as_deref().is_none_or(|source| source == event.source);
        is_of_source && self.condition.as_deref().is_none_or(|condition| holds(condition, event))
    }
}

impl Scanned {
    fn add(&mut self, page: &mut Page, matches: &[bool]) {
        self.looked_at += page.events.len();
        self.bytes += page.events.iter().map(StoredEvent::bytes).sum::<usize>();
        self.looked_to = page.events.last().map(|event| event.received_at).or(self.looked_to);
        let events = std::mem::take(&mut page.events).into_iter().zip(matches);
        self.events.extend(events.filter(|(_, matches)| **matches).map(|(event, _)| event));
    }

    fn kept_bytes(&self) -> usize {
        self.events.iter().map(StoredEvent::bytes).sum()
    }
}

fn positions(matches: &[bool]) -> impl Iterator<Item = usize> {
    matches.iter().enumerate().filter(|(_, matches)| **matches).map(|(at, _)| at)
}

/// Whether a condition is true on an event. One that can't be evaluated isn't.
fn holds(condition: &Expression, event: &StoredEvent) -> bool {
    let payload = event.payload.text();
    let text = str::from_utf8(payload).ok().filter(|_| json::check(payload).is_ok());
    text.is_some_and(|text| condition.holds_within(text, &mut STEPS_MAX.clone()).unwrap_or(false))
}
