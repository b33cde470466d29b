//! A search for documents of events, step by step: each step is a request that continues after the last document.

use bytes::Bytes;
use event::EventId;
use event::read::{Payload, StoredEvent};
use limits::EVENT_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use text::rfc3339;

use super::error::Failure;
use super::fields::Fields;
use super::index::IndexPattern;
use super::server::Server;

/// Bytes of a response in addition to its payloads.
const ENVELOPES_BYTES_MAX: usize = 256 * 1024;
/// The parameters of each request about indices: patterns match only existing ones; and no partial results.
pub(super) const EXISTING_INDICES: &str = "ignore_unavailable=true&allow_no_indices=true&expand_wildcards=open";
const WHOLE: &str = "allow_partial_search_results=false";

/// A sort value of an event's document, in the store's form.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Key {
    Number(i64),
    Text(String),
}

/// A document, by the two values that it is sorted by.
pub(super) type Place = [Key; 2];

/// The order of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By id, then by time.
    Id,
    /// By time, then by id.
    Time,
    /// The same from the end.
    TimeBack,
}

/// A search.
pub(super) struct Search<'a> {
    server: &'a Server,
    path: String,
    filters: Vec<Value>,
    sort: [Value; 2],
    bytes_max: usize,
}

impl<'a> Search<'a> {
    /// A search in the indices that may have events of this type, or of any; `bytes_max` bounds the payloads of a step.
    pub(super) fn new(
        server: &'a Server,
        (index, type_name): (&IndexPattern, Option<&str>),
        fields: &Fields,
        order: Order,
        bytes_max: usize,
    ) -> Self {
        let Fields { id, received_at, .. } = fields;
        let path = format!("/{}/_search?{EXISTING_INDICES}&{WHOLE}", index.wildcard(type_name));
        let direction = if order == Order::TimeBack { "desc" } else { "asc" };
        let by = |field: &str, kind: &str| json!({field: {"order": direction, "unmapped_type": kind}});
        let (by_time, by_id) = (by(received_at, "date"), by(id, "keyword"));
        let sort = if order == Order::Id { [by_id, by_time] } else { [by_time, by_id] };
        // Documents of other programs may lack them.
        let filters = vec![json!({"exists": {"field": id}}), json!({"exists": {"field": received_at}})];
        let bytes_max = bytes_max.max(EVENT_BYTES_MAX).saturating_add(ENVELOPES_BYTES_MAX);
        Self { server, path, filters, sort, bytes_max }
    }

    /// Documents must match this filter too.
    pub(super) fn only(&mut self, kind: &str, field: &str, what: Value) {
        self.filters.push(json!({kind: {field: what}}));
    }

    /// Up to `size` documents after a place, and fewer if the response would be too large. The payload of a document
    /// that alone is too large isn't requested.
    pub(super) async fn step(&self, after: Option<&Place>, size: usize) -> Result<Documents, Failure> {
        let mut asked = size;
        loop {
            match self.ask(after, asked, true).await {
                Err(failure) if failure.is_long_answer() && asked > 1 => asked /= 2,
                Err(failure) if failure.is_long_answer() => break,
                answer => return Ok(Documents { answer: answer?, asked, is_without_payloads: false }),
            }
        }
        let answer = self.ask(after, 1, false).await?;
        Ok(Documents { answer, asked, is_without_payloads: true })
    }

    async fn ask(&self, after: Option<&Place>, size: usize, with_payload: bool) -> Result<Bytes, Failure> {
        let mut question = json!({
            "size": size,
            "track_total_hits": false,
            "query": {"bool": {"filter": self.filters}},
            "sort": self.sort,
        });
        if !with_payload {
            question["_source"] = json!(["id", "type", "source", "received_at"]);
        }
        if let Some(after) = after {
            question["search_after"] = json!(after);
        }
        self.server.search(&self.path, question.to_string(), self.bytes_max).await
    }
}

/// The documents of one step.
pub(super) struct Documents {
    answer: Bytes,
    asked: usize,
    /// Whether the payloads are too large for a response.
    is_without_payloads: bool,
}

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

/// A document.
#[derive(Deserialize)]
pub(super) struct Hit<'a> {
    /// Its place.
    pub(super) sort: Place,
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

impl Documents {
    /// The documents, and whether they are the last ones.
    pub(super) fn hits(&self) -> Result<(Vec<Hit<'_>>, bool), Failure> {
        let Answer { hits: Hits { hits } } = serde_json::from_slice(&self.answer).map_err(|error| {
            Failure::Unexpected(format!(
                "its response to _search is invalid ({error}): check the proxies in front of it"
            ))
        })?;
        let is_last = hits.len() < self.asked;
        Ok((hits, is_last))
    }

    /// The event in a document; `None` if it isn't one. A payload that wasn't requested is larger than an event.
    pub(super) fn event_in(&self, hit: &Hit<'_>) -> Option<StoredEvent> {
        let envelope: Envelope<'_> = serde_json::from_str(hit.source?.get()).ok()?;
        let payload = match envelope.payload {
            Some(payload) => Payload::of(payload.get().as_bytes()),
            None if self.is_without_payloads => Payload::Omitted { bytes: EVENT_BYTES_MAX as u64 + 1 },
            None => return None,
        };
        Some(StoredEvent {
            id: envelope.id.parse::<EventId>().ok()?,
            type_name: envelope.type_name,
            source: envelope.source,
            received_at: rfc3339::parse(&envelope.received_at).ok()?,
            payload,
        })
    }
}
