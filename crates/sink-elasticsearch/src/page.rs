//! One page of the events in envelopes, over all indices that may have some: by the time of receipt, then by id; or by
//! id, then by time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use event::EventId;
use event::read::{Bookmark, Filter, Gathered, Page, Payload, Query, ReadOrder, StoredEvent, Wanted};
use limits::EVENT_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use text::rfc3339;

use super::error::Failure;
use super::fields::Fields;
use super::index::IndexPattern;
use super::server::Server;

/// Documents of one response. If they are too large for it, the next request asks for half as many.
const STEP: usize = 24;
/// Bytes of a response in addition to its payloads.
const ENVELOPES_BYTES_MAX: usize = 256 * 1024;
/// The time limit of one page.
const PAGE_TIME_MAX: Duration = Duration::from_millis(250);
/// The parameters of each request about indices: patterns match only existing ones; and no partial results.
pub(super) const EXISTING_INDICES: &str = "ignore_unavailable=true&allow_no_indices=true&expand_wildcards=open";
const WHOLE: &str = "allow_partial_search_results=false";

/// The first byte of a bookmark by time, oldest first or newest first, and of one by id.
const BY_TIME: u8 = b't';
const BY_TIME_BACK: u8 = b'b';
const BY_ID: u8 = b'i';
/// A sort value of an event's document, in the store's form.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
enum Key {
    Number(i64),
    Text(String),
}

/// The document after which a page begins.
type Place = [Key; 2];

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    hits: Hits<'a>,
}

#[derive(Deserialize)]
struct Hits<'a> {
    #[serde(borrow)]
    hits: Vec<Hit<'a>>,
}

#[derive(Deserialize)]
struct Hit<'a> {
    sort: Place,
    #[serde(borrow, rename = "_source")]
    source: Option<&'a RawValue>,
}

/// A document with an envelope.
#[derive(Deserialize)]
struct Envelope<'a> {
    id: String,
    #[serde(rename = "type")]
    type_name: String,
    source: String,
    received_at: String,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// The documents of one response, and whether their payloads are too large for it.
struct Found {
    answer: Bytes,
    asked: usize,
    is_without_payloads: bool,
}

/// Reads a page; `None` if the bookmark isn't this store's.
pub(super) async fn read(
    server: &Server,
    index: &IndexPattern,
    fields: &Fields,
    query: &Query,
) -> Result<Option<Page>, Failure> {
    let mut place = match &query.after {
        None => None,
        Some(bookmark) => match place_of(bookmark, &query.wanted) {
            Some(place) => Some(place),
            None => return Ok(None),
        },
    };
    let (begun, path) = (Instant::now(), path(index, &query.wanted));
    let (mut gathered, mut room) = (Gathered::new(query), query.limit);
    loop {
        // One more than the limit shows whether there is a next page.
        let size = STEP.min(room.saturating_add(1));
        let found = search(server, &path, (fields, query, place.as_ref()), size).await?;
        let Answer { hits: Hits { hits } } = serde_json::from_slice(&found.answer).map_err(|error| {
            Failure::Unexpected(format!(
                "its response to _search is invalid ({error}): check the proxies in front of it"
            ))
        })?;
        let is_last = hits.len() < found.asked;
        for hit in hits {
            if let Some(event) = event_in(&hit, &query.wanted, found.is_without_payloads) {
                if !gathered.take(event) {
                    return Ok(Some(gathered.page(place.map(|place| bookmark(&place, &query.wanted)))));
                }
                room -= 1;
            }
            place = Some(hit.sort);
        }
        if is_last {
            return Ok(Some(gathered.page(None)));
        }
        if begun.elapsed() >= PAGE_TIME_MAX {
            return Ok(Some(gathered.page(place.map(|place| bookmark(&place, &query.wanted)))));
        }
    }
}

/// Searches for up to `size` documents, and for fewer if the response would be too large for the memory of a page. The
/// payload of a document that alone is too large isn't requested.
async fn search(
    server: &Server,
    path: &str,
    (fields, query, after): (&Fields, &Query, Option<&Place>),
    size: usize,
) -> Result<Found, Failure> {
    let bytes_max = query.bytes_max.max(EVENT_BYTES_MAX).saturating_add(ENVELOPES_BYTES_MAX);
    let mut asked = size;
    loop {
        match server.search(path, question(fields, &query.wanted, after, asked, true), bytes_max).await {
            Err(failure) if failure.is_long_answer() && asked > 1 => asked /= 2,
            Err(failure) if failure.is_long_answer() => break,
            answer => return Ok(Found { answer: answer?, asked, is_without_payloads: false }),
        }
    }
    let answer = server.search(path, question(fields, &query.wanted, after, 1, false), bytes_max).await?;
    Ok(Found { answer, asked, is_without_payloads: true })
}

/// The path of the request, for the indices that may have such events.
fn path(index: &IndexPattern, wanted: &Wanted) -> String {
    let type_name = match wanted {
        Wanted::Ids { .. } => None,
        Wanted::Stored(filter) => filter.type_name.as_ref().map(event::TypeName::as_str),
    };
    format!("/{}/_search?{EXISTING_INDICES}&{WHOLE}", index.wildcard(type_name))
}

fn question(fields: &Fields, wanted: &Wanted, after: Option<&Place>, size: usize, with_payload: bool) -> String {
    let Fields { id, type_name, received_at } = fields;
    // Documents of other programs may lack them.
    let mut filters = vec![json!({"exists": {"field": id}}), json!({"exists": {"field": received_at}})];
    let mut filter = |kind: &str, field: &str, what: Value| filters.push(json!({kind: {field: what}}));
    let order = match wanted {
        Wanted::Stored(Filter { order: ReadOrder::NewestFirst, .. }) => "desc",
        Wanted::Stored(_) | Wanted::Ids { .. } => "asc",
    };
    let by = |field: &str, kind: &str| json!({field: {"order": order, "unmapped_type": kind}});
    let (by_time, by_id) = (by(received_at, "date"), by(id, "keyword"));
    let sort = match wanted {
        Wanted::Ids { first, last } => {
            filter("range", id, json!({"gte": first.to_string(), "lte": last.to_string()}));
            [by_id, by_time]
        }
        Wanted::Stored(Filter { type_name: only, since, until, order: _ }) => {
            if let Some(only) = only {
                filter("term", type_name, json!(only.as_str()));
            }
            // The store may compare times only by the millisecond: events just outside the range are filtered here.
            if let Some(since) = since {
                filter("range", received_at, json!({"gte": rfc3339::format(*since)}));
            }
            if let Some(until) = until {
                filter("range", received_at, json!({"lte": rfc3339::format(*until)}));
            }
            [by_time, by_id]
        }
    };
    let mut question = json!({
        "size": size,
        "track_total_hits": false,
        "query": {"bool": {"filter": filters}},
        "sort": sort,
    });
    if !with_payload {
        question["_source"] = json!(["id", "type", "source", "received_at"]);
    }
    if let Some(after) = after {
        question["search_after"] = json!(after);
    }
    question.to_string()
}

/// The event in a document; `None` if it isn't one, or isn't wanted. A payload that wasn't requested is larger than an
/// event.
fn event_in(hit: &Hit<'_>, wanted: &Wanted, is_without_payload: bool) -> Option<StoredEvent> {
    let envelope: Envelope<'_> = serde_json::from_str(hit.source?.get()).ok()?;
    let payload = match envelope.payload {
        Some(payload) => Payload::of(payload.get().as_bytes()),
        None if is_without_payload => Payload::Omitted { bytes: EVENT_BYTES_MAX as u64 + 1 },
        None => return None,
    };
    let event = StoredEvent {
        id: envelope.id.parse::<EventId>().ok()?,
        type_name: envelope.type_name,
        source: envelope.source,
        received_at: rfc3339::parse(&envelope.received_at).ok()?,
        payload,
    };
    let is_in_time = |filter: &Filter| {
        filter.since.is_none_or(|since| event.received_at >= since)
            && filter.until.is_none_or(|until| event.received_at < until)
    };
    let is_wanted = match wanted {
        Wanted::Ids { .. } => true,
        Wanted::Stored(filter) => is_in_time(filter),
    };
    is_wanted.then_some(event)
}

const fn kind_of(wanted: &Wanted) -> u8 {
    match wanted {
        Wanted::Ids { .. } => BY_ID,
        Wanted::Stored(Filter { order: ReadOrder::OldestFirst, .. }) => BY_TIME,
        Wanted::Stored(Filter { order: ReadOrder::NewestFirst, .. }) => BY_TIME_BACK,
    }
}

fn place_of(Bookmark(bytes): &Bookmark, wanted: &Wanted) -> Option<Place> {
    let (kind, place) = bytes.split_first()?;
    let place: Place = serde_json::from_slice(place).ok()?;
    let id = if *kind == BY_ID { &place[0] } else { &place[1] };
    (*kind == kind_of(wanted) && matches!(id, Key::Text(_))).then_some(place)
}

fn bookmark(place: &Place, wanted: &Wanted) -> Bookmark {
    Bookmark([vec![kind_of(wanted)], json!(place).to_string().into_bytes()].concat())
}
