//! Checks whether the document with an event's id is this event's: then the event is a duplicate, and changes nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::bulk::{EVENT_VERSION, document_id};
use super::config::{DocumentShape, ElasticsearchConfig};
use super::error::Failure;
use super::mapping::{self, PAYLOAD, TIMESTAMP};
use super::server::Server;
use super::store_error::StoreError;
use sink::{Batch, Record, Write as Kind};

/// The maximum of documents in one request, and their approximate number of bytes.
const ASKED_MAX: usize = 500;
const ASKED_BYTES: usize = 4 * 1024 * 1024;

/// An event whose id has a document.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// Its index within the batch.
    pub(super) at: usize,
    /// The index of the document.
    pub(super) index: String,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    Other,
    /// It existed a moment ago.
    Gone,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    docs: Vec<Found<'a>>,
}

#[derive(Deserialize)]
struct Found<'a> {
    #[serde(default)]
    found: bool,
    #[serde(borrow, rename = "_source")]
    source: Option<&'a RawValue>,
    #[serde(rename = "_version")]
    version: Option<u64>,
    error: Option<StoreError>,
}

/// Compares them, in order.
pub(super) async fn compare(
    config: &ElasticsearchConfig,
    server: &Server,
    batch: &Batch,
    taken: &[Taken],
) -> Result<Vec<Comparison>, Failure> {
    let mut verdicts = Vec::with_capacity(taken.len());
    for run in runs(batch, taken) {
        let taken = &taken[run];
        let answer = server.documents(question(config, batch, taken), true).await?;
        let found = found(&answer, taken)?;
        verdicts.extend(taken.iter().zip(found).map(|(taken, found)| verdict(config, batch, taken, &found)));
    }
    Ok(verdicts)
}

/// The results of the batch whose ids have documents of events.
pub(super) async fn occupied(
    config: &ElasticsearchConfig,
    server: &Server,
    batch: &Batch,
) -> Result<Vec<Taken>, Failure> {
    let results = batch.records().enumerate().filter(|(_, record)| matches!(record.write, Kind::Upsert(_)));
    let results: Vec<Taken> = results.map(|(at, record)| Taken { at, index: config.index.of(&record) }).collect();
    let mut occupied = Vec::new();
    for results in results.chunks(ASKED_MAX) {
        let answer = server.documents(question(config, batch, results), false).await?;
        let found = results.iter().zip(found(&answer, results)?);
        let events = found.filter(|(_, found)| found.found && found.version == Some(EVENT_VERSION));
        occupied.extend(events.map(|(taken, _)| taken.clone()));
    }
    Ok(occupied)
}

/// Those of `places` that have a document, in order.
pub(super) async fn existing(
    config: &ElasticsearchConfig,
    server: &Server,
    batch: &Batch,
    places: &[Taken],
) -> Result<Vec<Taken>, Failure> {
    let mut existing = Vec::new();
    for places in places.chunks(ASKED_MAX) {
        let answer = server.documents(question(config, batch, places), false).await?;
        for (place, found) in places.iter().zip(found(&answer, places)?) {
            if is_there(place, &found)? {
                existing.push(place.clone());
            }
        }
    }
    Ok(existing)
}

/// Whether a place has a document. A deleted index has none. A closed index counts as having none: old ones often are
/// closed, and nothing could be written until an operator opened them.
fn is_there(place: &Taken, found: &Found<'_>) -> Result<bool, Failure> {
    match &found.error {
        Some(error) if !matches!(error.kind.as_str(), "index_not_found_exception" | "index_closed_exception") => {
            let (index, message) = (&place.index, error.message());
            Err(Failure::Unexpected(format!(
                "index {index} can't be searched for earlier copies of the documents ({message}): \
                 repair it, or delete it"
            )))
        }
        Some(_) => Ok(false),
        None => Ok(found.found),
    }
}

/// The documents that were found, in the order of the request.
fn found<'a>(answer: &'a [u8], asked: &[Taken]) -> Result<Vec<Found<'a>>, Failure> {
    let answer: Answer<'_> = serde_json::from_slice(answer).map_err(|error| {
        Failure::Unexpected(format!("its response to _mget is invalid ({error}): check the proxies in front of it"))
    })?;
    if answer.docs.len() != asked.len() {
        return Err(Failure::Unexpected(
            "its response to _mget has another number of documents than requested: check the proxies in front of it"
                .to_owned(),
        ));
    }
    Ok(answer.docs)
}

/// The groups of documents in one request.
fn runs(batch: &Batch, taken: &[Taken]) -> Vec<Range<usize>> {
    let (mut runs, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (number, taken) in taken.iter().enumerate() {
        let more = batch.get(taken.at).map_or(0, |record| record.payload.len());
        if number > start && (number - start >= ASKED_MAX || bytes + more > ASKED_BYTES) {
            runs.push(start..number);
            (start, bytes) = (number, 0);
        }
        bytes += more;
    }
    if start < taken.len() {
        runs.push(start..taken.len());
    }
    runs
}

fn question(config: &ElasticsearchConfig, batch: &Batch, taken: &[Taken]) -> String {
    let mut question = String::from(r#"{"docs":["#);
    for (number, Taken { at, index }) in taken.iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let id = batch.get(*at).map(|record| document_id(config.target, &record)).unwrap_or_default();
        let index = Value::from(index.as_str());
        // Writing to memory can't fail.
        let _ = write!(question, r#"{comma}{{"_index":{index},"_id":"{id}"}}"#);
    }
    question.push_str("]}");
    question
}

fn verdict(config: &ElasticsearchConfig, batch: &Batch, taken: &Taken, found: &Found<'_>) -> Comparison {
    let (Some(record), Some(source)) = (batch.get(taken.at), found.source.filter(|_| found.found)) else {
        return Comparison::Gone;
    };
    if is_same(config, &record, source.get()) { Comparison::Same } else { Comparison::Other }
}

/// Whether the document has the record's payload. The time and position of the receipt aren't compared: they differ in
/// a duplicate.
fn is_same(config: &ElasticsearchConfig, record: &Record<'_>, source: &str) -> bool {
    let (mut ours, shape) = (Vec::new(), config.shape);
    mapping::write(&mut ours, config, 0, record);
    if ours == source.as_bytes() {
        return true;
    }
    let ours: Result<Members<'_>, _> = serde_json::from_slice(&ours);
    let theirs: Result<Members<'_>, _> = serde_json::from_str(source);
    let (Ok(mut ours), Ok(mut theirs)) = (ours, theirs) else { return false };
    if shape == DocumentShape::Envelope {
        return are_equal(ours.get(PAYLOAD).copied(), theirs.get(PAYLOAD).copied());
    }
    // Documents from before `timestamp` was changed may have it or not.
    if mapping::has_own_timestamp(shape, record.payload) {
        ours.remove(TIMESTAMP);
        theirs.remove(TIMESTAMP);
    }
    ours.len() == theirs.len() && ours.iter().all(|(name, value)| are_equal(Some(value), theirs.get(name).copied()))
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Whether two texts have the same value, which stores keep even if they don't keep the text.
fn are_equal(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    let value = |text: &RawValue| serde_json::from_str::<Value>(text.get()).ok();
    one.get() == other.get() || value(one).zip(value(other)).is_some_and(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;

    fn record(payload: &str, received_at: i64) -> Record<'_> {
        Record {
            sequence: 1,
            id: EventId([1; 16]),
            type_name: "access",
            source: "",
            received_at,
            event_time: None,
            write: Kind::Insert,
            payload: payload.as_bytes(),
        }
    }

    fn config(shape: DocumentShape, has_timestamp: bool) -> ElasticsearchConfig {
        ElasticsearchConfig { shape, has_timestamp, ..super::super::tests::config() }
    }

    fn source(config: &ElasticsearchConfig, payload: &str) -> String {
        let mut document = Vec::new();
        mapping::write(&mut document, config, 7, &record(payload, 1_000_000));
        String::from_utf8(document).unwrap()
    }

    #[test]
    fn same_payload_is_the_same_event() {
        let shapes = [DocumentShape::Payload, DocumentShape::Envelope].into_iter();
        // The setting may have been different when the document was stored.
        let before_and_now = |shape| [(true, true), (false, false), (true, false), (false, true)].map(|is| (shape, is));
        for (shape, (before, now)) in shapes.flat_map(before_and_now) {
            for (stored, comes, is) in [
                ("{\"a\": 1}", "{\"a\": 1}", true),
                ("{\"a\": 1}", "{\"a\":\n1}", true),
                ("{\"a\": 1, \"b\": [1.0, {}]}", "{\"b\":[1.0,{}],\"a\":1}", true),
                ("{}", "{}", true),
                ("7", "7", true),
                ("{\"a\": 1}", "{\"a\": 2}", false),
                ("{\"a\": 1, \"b\": 2}", "{\"a\": 1}", false),
                ("{\"a\": 1}", "{\"a\": 1, \"b\": 2}", false),
                ("{\"@timestamp\": 1}", "{\"@timestamp\": 2}", false),
                ("7", "8", false),
                ("null", "7", false),
                ("1e999", "2e999", false),
            ] {
                let stored = source(&config(shape, before), stored);
                let same = is_same(&config(shape, now), &record(comes, 5), &stored);
                assert_eq!(same, is, "{shape:?} {stored} {comes}");
            }
        }
        assert!(!is_same(&config(DocumentShape::Payload, true), &record("{}", 5), "[]"));
    }
}
