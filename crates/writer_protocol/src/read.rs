//! Queries and pages as JSON between a gateway and a writer.

mod lookup;

use event::read::{Bookmark, Filter, Lookup, Page, Payload, Query, ReadError, ReadOrder, StoredEvent, Wanted};
use event::{EventId, TypeName};
use serde::{Deserialize, Serialize};
use text::hex;

/// The message about a page in another order.
const OTHER_ORDER: &str = "the writer did not read newest first: run the same release of gateway and writer";

/// What a gateway asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadRequest {
    /// A page.
    Page(Query),
    /// Events by their ids, without ids that are asked for twice. There may be more than a query of a store looks up.
    Lookup(Lookup),
}

/// A [`ReadRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryJson {
    /// The first and the last id, both inclusive. Without them, the fields below choose the events.
    ids: Option<[String; 2]>,
    #[serde(rename = "type")]
    type_name: Option<String>,
    since: Option<i64>,
    until: Option<i64>,
    /// Otherwise the oldest first.
    #[serde(default)]
    newest_first: bool,
    /// A bookmark's bytes in hexadecimal digits.
    after: Option<String>,
    limit: usize,
    bytes_max: usize,
    /// The type of all events of a table without types.
    #[serde(default)]
    only_type: Option<String>,
    /// The ids of a [`Lookup`]. A writer that knows this member uses `bytes_max` and `only_type`, and no other. An older
    /// one ignores it: the others are a query for the first of these ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lookup: Option<Vec<String>>,
}

/// A [`Page`] or [`Found`](event::read::Found), or a [`ReadError`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageJson {
    /// Events, and the start of the next page.
    Page {
        /// The events.
        events: Vec<EventJson>,
        /// A bookmark's bytes in hexadecimal digits.
        next: Option<String>,
        /// Whether the events are in this order, as the query asked.
        #[serde(default)]
        newest_first: bool,
    },
    /// [`Found`](event::read::Found): the answer to a [`Lookup`].
    Found {
        /// The events.
        events: Vec<EventJson>,
        /// The ids that weren't looked up.
        left: Vec<String>,
    },
    /// [`ReadError::Busy`].
    Busy,
    /// [`ReadError::Bookmark`].
    Bookmark,
    /// [`ReadError::Unavailable`].
    Unavailable {
        /// The message.
        reason: String,
    },
    /// [`ReadError::Untyped`].
    Untyped {
        /// The message.
        reason: String,
    },
    /// [`ReadError::NewestFirst`].
    NotNewestFirst {
        /// The message.
        reason: String,
    },
}

/// A [`StoredEvent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventJson {
    id: String,
    #[serde(rename = "type")]
    type_name: String,
    source: String,
    received_at: i64,
    payload: Option<String>,
    /// The size of a payload that is too large for a page. Either this is set or `payload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_omitted: Option<u64>,
}

impl From<&Query> for QueryJson {
    fn from(query: &Query) -> Self {
        let (ids, filter) = match &query.wanted {
            Wanted::Ids { first, last } => (Some([first.to_string(), last.to_string()]), Filter::default()),
            Wanted::Stored(filter) => (None, filter.clone()),
        };
        Self {
            ids,
            type_name: filter.type_name.map(|name| name.as_str().to_owned()),
            since: filter.since,
            until: filter.until,
            newest_first: filter.order == ReadOrder::NewestFirst,
            after: query.after.as_ref().map(|bookmark| hex::encode(&bookmark.0)),
            limit: query.limit,
            bytes_max: query.bytes_max,
            only_type: query.only_type.as_ref().map(|name| name.as_str().to_owned()),
            lookup: None,
        }
    }
}

impl QueryJson {
    /// The request, if it is valid.
    #[must_use]
    pub fn into_request(self) -> Option<ReadRequest> {
        match self.lookup {
            Some(_) => self.into_lookup().map(ReadRequest::Lookup),
            None => self.into_query().map(ReadRequest::Page),
        }
    }

    fn into_query(self) -> Option<Query> {
        let wanted = match &self.ids {
            Some([first, last]) => Wanted::Ids { first: first.parse().ok()?, last: last.parse().ok()? },
            None => {
                let type_name = self.type_name.as_deref().map(TypeName::new).transpose().ok()?;
                let order = if self.newest_first { ReadOrder::NewestFirst } else { ReadOrder::OldestFirst };
                Wanted::Stored(Filter { type_name, since: self.since, until: self.until, order })
            }
        };
        let after = self.after.as_deref().map(|text| hex::decode(text).map(Bookmark));
        let after = if let Some(after) = after { Some(after?) } else { None };
        let only_type = self.only_type.as_deref().map(TypeName::new).transpose().ok()?;
        let Self { limit, bytes_max, .. } = self;
        (limit > 0).then_some(Query { wanted, after, limit, bytes_max, only_type })
    }
}

impl PageJson {
    /// What a read of these events gave.
    #[must_use]
    pub fn new(wanted: &Wanted, page: Result<Page, ReadError>) -> Self {
        match page {
            Ok(Page { events, next }) => Self::Page {
                events: events.into_iter().map(EventJson::from).collect(),
                next: next.map(|bookmark| hex::encode(&bookmark.0)),
                newest_first: is_newest_first(wanted),
            },
            Err(error) => error.into(),
        }
    }

    /// The page of these events.
    ///
    /// # Errors
    /// The store's failure; also if the page is malformed, or in another order.
    pub fn into_page(self, wanted: &Wanted) -> Result<Page, ReadError> {
        match self {
            Self::Page { newest_first, .. } if newest_first != is_newest_first(wanted) => {
                Err(ReadError::NewestFirst(OTHER_ORDER.into()))
            }
            Self::Page { events, next, .. } => {
                let next = next.map(|text| hex::decode(&text).map(Bookmark).ok_or_else(odd)).transpose()?;
                Ok(Page { events: stored(events)?, next })
            }
            other => Err(other.into_error()),
        }
    }

    /// The error that this answer is: a malformed one is one too.
    fn into_error(self) -> ReadError {
        match self {
            Self::Busy => ReadError::Busy,
            Self::Bookmark => ReadError::Bookmark,
            Self::Unavailable { reason } => ReadError::Unavailable(reason.into()),
            Self::Untyped { reason } => ReadError::Untyped(reason.into()),
            Self::NotNewestFirst { reason } => ReadError::NewestFirst(reason.into()),
            Self::Page { .. } | Self::Found { .. } => odd(),
        }
    }
}

impl From<ReadError> for PageJson {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Busy => Self::Busy,
            ReadError::Bookmark => Self::Bookmark,
            ReadError::Unavailable(reason) => Self::Unavailable { reason: reason.to_string() },
            ReadError::Untyped(reason) => Self::Untyped { reason: reason.to_string() },
            ReadError::NewestFirst(reason) => Self::NotNewestFirst { reason: reason.to_string() },
        }
    }
}

fn odd() -> ReadError {
    ReadError::Unavailable("the writer's page is malformed: run the same release of gateway and writer".into())
}

fn stored(events: Vec<EventJson>) -> Result<Vec<StoredEvent>, ReadError> {
    events.into_iter().map(EventJson::into_event).collect::<Option<_>>().ok_or_else(odd)
}

impl From<StoredEvent> for EventJson {
    fn from(event: StoredEvent) -> Self {
        let (payload, payload_omitted) = match event.payload {
            // JSON is UTF-8.
            Payload::Whole(text) => (Some(String::from_utf8_lossy(&text).into_owned()), None),
            Payload::Omitted { bytes } => (None, Some(bytes)),
        };
        Self {
            id: event.id.to_string(),
            type_name: event.type_name,
            source: event.source,
            received_at: event.received_at,
            payload,
            payload_omitted,
        }
    }
}

impl EventJson {
    fn into_event(self) -> Option<StoredEvent> {
        Some(StoredEvent {
            id: self.id.parse::<EventId>().ok()?,
            type_name: self.type_name,
            source: self.source,
            received_at: self.received_at,
            payload: match (self.payload, self.payload_omitted) {
                (Some(text), None) => Payload::of(text.as_bytes()),
                (None, Some(bytes)) => Payload::Omitted { bytes },
                _ => return None,
            },
        })
    }
}

fn is_newest_first(wanted: &Wanted) -> bool {
    matches!(wanted, Wanted::Stored(Filter { order: ReadOrder::NewestFirst, .. }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    fn wanted(order: ReadOrder) -> Wanted {
        Wanted::Stored(Filter { order, ..Filter::default() })
    }

    #[test]
    fn page_in_another_order_is_rejected() {
        let page: PageJson = serde_json::from_str(r#"{"page":{"events":[],"next":null}}"#).unwrap();
        assert_eq!(page.clone().into_page(&wanted(ReadOrder::OldestFirst)), Ok(Page::default()));
        let refused = page.into_page(&wanted(ReadOrder::NewestFirst));
        assert_eq!(refused, Err(ReadError::NewestFirst(OTHER_ORDER.into())));
    }

    #[test]
    fn query_without_an_order_is_oldest_first() {
        let query = r#"{"ids":null,"type":null,"since":null,"until":null,"after":null,"limit":1,"bytes_max":1}"#;
        let query: QueryJson = serde_json::from_str(query).unwrap();
        assert_eq!(query.into_query().unwrap().wanted, wanted(ReadOrder::OldestFirst));
    }

    #[test]
    fn omitted_payload_arrives_with_its_size() {
        let event = |payload| StoredEvent {
            id: EventId([7; 16]),
            type_name: "a".into(),
            source: "b".into(),
            received_at: 1,
            payload,
        };
        let payloads = [Payload::Whole(b"1".to_vec()), Payload::Omitted { bytes: 11_796_570_000 }];
        let page = Page { events: payloads.map(event).into(), next: None };
        let wanted = wanted(ReadOrder::OldestFirst);
        let json = serde_json::to_string(&PageJson::new(&wanted, Ok(page.clone()))).unwrap();
        assert_eq!(serde_json::from_str::<PageJson>(&json).unwrap().into_page(&wanted), Ok(page));
        for wrong in [r#""payload":null"#, r#""payload":"1","payload_omitted":1"#] {
            let id = EventId([7; 16]);
            let text = format!(r#"{{"id":"{id}","type":"a","source":"","received_at":1,{wrong}}}"#);
            assert_eq!(serde_json::from_str::<EventJson>(&text).unwrap().into_event(), None, "{wrong}");
        }
    }

    #[test]
    fn orders_and_their_rejections_survive_json() {
        for order in [ReadOrder::OldestFirst, ReadOrder::NewestFirst] {
            let query = Query {
                wanted: wanted(order),
                after: None,
                limit: 1,
                bytes_max: 1,
                only_type: TypeName::new("a").ok(),
            };
            assert_eq!(QueryJson::from(&query).into_query(), Some(query.clone()));
            let answers =
                [Ok(Page::default()), Err(ReadError::NewestFirst("no".into())), Err(ReadError::Untyped("no".into()))];
            for answer in answers {
                assert_eq!(PageJson::new(&query.wanted, answer.clone()).into_page(&query.wanted), answer);
            }
        }
    }
}
