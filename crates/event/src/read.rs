//! Reading back stored events: queries, answers, and the trait between a gateway and the stores.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{EventId, TypeName};
use limits::EVENT_BYTES_MAX;

/// An event as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its id.
    pub id: EventId,
    /// Its type's name.
    pub type_name: String,
    /// Its source: the token's, or empty.
    pub source: String,
    /// When it was received: microseconds since 1970, UTC.
    pub received_at: i64,
    /// The payload.
    pub payload: Payload,
}

/// A payload in a page. A store may need more bytes for a payload than its client sent (`jsonb` writes all digits of
/// `1e131071`), and other programs may have written anything into the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The JSON text, byte for byte as the store has it: at most [`EVENT_BYTES_MAX`].
    Whole(Vec<u8>),
    /// It is larger than that, so the page shows its size instead.
    Omitted {
        /// Its size in bytes, or an estimate if the store would have to write the text to count them.
        bytes: u64,
    },
}

impl Payload {
    /// A payload of this text, which is omitted if it is too large.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        if text.len() > EVENT_BYTES_MAX {
            return Self::Omitted { bytes: text.len() as u64 };
        }
        Self::Whole(text.to_vec())
    }

    /// A payload with its size, of which a store gave the text unless it is too large.
    #[must_use]
    pub fn sized(text: Option<Vec<u8>>, bytes: u64) -> Self {
        text.filter(|text| text.len() <= EVENT_BYTES_MAX).map_or(Self::Omitted { bytes }, Self::Whole)
    }

    /// The text; empty if it is omitted.
    #[must_use]
    pub const fn text(&self) -> &[u8] {
        match self {
            Self::Whole(text) => text.as_slice(),
            Self::Omitted { .. } => b"",
        }
    }
}

impl StoredEvent {
    /// About how many bytes it takes in a response.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.payload.text().len() + self.type_name.len() + self.source.len() + ENVELOPE_BYTES
    }
}

/// The bytes around an event's texts in a response.
const ENVELOPE_BYTES: usize = 160;

/// The events to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Events whose ids are between these two, both included, in the order of their ids: one event, or those of a key.
    Ids {
        /// The first.
        first: EventId,
        /// The last.
        last: EventId,
    },
    /// Matching events, in the order that the filter names.
    Stored(Filter),
}

/// A filter: events that match all members that are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this type.
    pub type_name: Option<TypeName>,
    /// Received at this time or later: microseconds since 1970, UTC.
    pub since: Option<i64>,
    /// Received before this time: microseconds since 1970, UTC.
    pub until: Option<i64>,
    /// The order.
    pub order: ReadOrder,
}

/// From which end events are read, if a store keeps them in the order of storing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadOrder {
    /// From the oldest on; events that are stored later come at the end.
    #[default]
    OldestFirst,
    /// From the newest back, of those that were stored when the first page was read.
    NewestFirst,
}

/// A place between two events of a store, in the store's format. It stays valid while events are added, and over
/// restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark(pub Vec<u8>);

/// A query for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The events to read.
    pub wanted: Wanted,
    /// After this place, in the requested order; `None` means from the first on.
    pub after: Option<Bookmark>,
    /// At most this many, at least one.
    pub limit: usize,
    /// At most this many bytes, unless the first event alone has more.
    pub bytes_max: usize,
    /// The type of all events of a table that has no column for types, if all have one.
    pub only_type: Option<TypeName>,
}

impl Query {
    /// A query for the event with this id.
    #[must_use]
    pub const fn of_event(id: EventId, bytes_max: usize, only_type: Option<TypeName>) -> Self {
        Self { wanted: Wanted::Ids { first: id, last: id }, after: None, limit: 1, bytes_max, only_type }
    }
}

/// A page of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The events. There may be none although there is a next page: a store scans a limited part at a time.
    pub events: Vec<StoredEvent>,
    /// The beginning of the next page, if there are more events now.
    pub next: Option<Bookmark>,
}

/// A query for events by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The ids: at least one, at most [`limits::LOOKUP_IDS_MAX`], each once.
    pub ids: Vec<EventId>,
    /// At most this many bytes, unless the first event alone has more.
    pub bytes_max: usize,
    /// The type of all events of a table that has no column for types, if all have one.
    pub only_type: Option<TypeName>,
}

/// The answer to a [`Lookup`]. An id that is in neither list isn't stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The events, in any order.
    pub events: Vec<StoredEvent>,
    /// Ids that weren't looked up, because the answer was full: look them up again.
    pub left: Vec<EventId>,
}

/// Gathers the events of a page up to its limits.
#[derive(Debug)]
pub struct Gathered {
    events: Vec<StoredEvent>,
    bytes: usize,
    limit: usize,
    bytes_max: usize,
}

impl Gathered {
    /// An empty page for a query.
    #[must_use]
    pub const fn new(query: &Query) -> Self {
        Self { events: Vec::new(), bytes: 0, limit: query.limit, bytes_max: query.bytes_max }
    }

    /// Adds an event, if it fits. Otherwise the page ends before it.
    pub fn take(&mut self, event: StoredEvent) -> bool {
        let bytes = self.bytes + event.bytes();
        if self.is_full() || (bytes > self.bytes_max && !self.events.is_empty()) {
            return false;
        }
        self.bytes = bytes;
        self.events.push(event);
        true
    }

    /// Whether the page has the requested number of events.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.events.len() >= self.limit
    }

    /// The event that was added last.
    #[must_use]
    pub fn last(&self) -> Option<&StoredEvent> {
        self.events.last()
    }

    /// The page, with the beginning of the next one.
    #[must_use]
    pub fn page(self, next: Option<Bookmark>) -> Page {
        Page { events: self.events, next }
    }
}

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Too many reads wait.
    #[error("too many reads wait for the store: retry later")]
    Busy,
    /// The store can't be read now, with its error message for the operator.
    #[error("{0}")]
    Unavailable(Arc<str>),
    /// The bookmark is of another store.
    #[error("the bookmark is from another store: read again from the beginning")]
    Bookmark,
    /// The types of the events aren't known; the reason and what to change, for the client.
    #[error("{0}")]
    Untyped(Arc<str>),
    /// The store can't be read newest first; the reason, for the client.
    #[error("{0}")]
    NewestFirst(Arc<str>),
}

/// A pending answer.
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<Page, ReadError>> + Send + 'a>>;

/// A pending answer to a [`Lookup`].
pub type LookingUp<'a> = Pin<Box<dyn Future<Output = Result<Found, ReadError>> + Send + 'a>>;

/// The interface through which a gateway reads events.
pub trait StoreReader: Send + Sync {
    /// The sink's name in the configuration.
    fn name(&self) -> &Arc<str>;

    /// The events of a query that are stored now.
    fn read(&self, query: Query) -> Reading<'_>;

    /// The events with these ids that are stored now.
    fn get(&self, lookup: Lookup) -> LookingUp<'_>;

    /// The last sequence of a shard up to which every event for the store has its outcome: it is stored, or never will
    /// be.
    fn settled_up_to(&self, shard: u16) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_larger_than_an_event_is_omitted() {
        let most = vec![b'1'; EVENT_BYTES_MAX];
        assert_eq!(Payload::of(&most), Payload::Whole(most.clone()));
        let more = vec![b'1'; EVENT_BYTES_MAX + 1];
        let omitted = Payload::Omitted { bytes: more.len() as u64 };
        assert_eq!(
            [Payload::of(&more), Payload::sized(Some(more), EVENT_BYTES_MAX as u64 + 1)],
            [omitted.clone(), omitted]
        );
        assert_eq!(Payload::sized(None, 7).text(), b"");
    }

    #[test]
    fn page_has_at_least_one_event() {
        let event = |bytes| StoredEvent {
            id: EventId([0; 16]),
            type_name: String::new(),
            source: String::new(),
            received_at: 0,
            payload: Payload::of(&vec![b'1'; bytes]),
        };
        let query = |limit, bytes_max| Query {
            wanted: Wanted::Stored(Filter::default()),
            after: None,
            limit,
            bytes_max,
            only_type: None,
        };
        let mut few = Gathered::new(&query(2, usize::MAX));
        assert_eq!([1, 1, 1].map(|bytes| few.take(event(bytes))), [true, true, false]);
        assert!(few.is_full());
        let mut small = Gathered::new(&query(9, 2 * ENVELOPE_BYTES + 10));
        assert_eq!([5, 6, 5].map(|bytes| small.take(event(bytes))), [true, false, true]);
        let mut tiny = Gathered::new(&query(9, 1));
        assert_eq!([5, 5].map(|bytes| tiny.take(event(bytes))), [true, false]);
        assert_eq!(tiny.page(None).events.len(), 1);
    }
}
