//! Dead letters as JSON: what the admin API answers, what the command reads from it, and what it prints.

use dead_letters::{DeadLetter, DeadOutcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use text::rfc3339;

/// One dead letter.
#[derive(Debug, Deserialize, Serialize)]
pub struct DeadLetterJson {
    pub sink: String,
    pub id: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub source: String,
    pub client: Option<String>,
    pub received: String,
    pub event_time: Option<String>,
    pub position: String,
    pub reason: String,
    /// The received payload, byte for byte. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
}

impl DeadLetterJson {
    pub fn of(dead_letter: &DeadLetter) -> Self {
        let payload = std::str::from_utf8(&dead_letter.payload).ok().filter(|text| !text.is_empty());
        Self {
            sink: dead_letter.sink.to_string(),
            id: dead_letter.id.to_string(),
            type_name: dead_letter.type_name.clone(),
            source: dead_letter.source.clone(),
            client: dead_letter.client.map(|address| address.to_string()),
            received: rfc3339::format(dead_letter.received_at),
            event_time: dead_letter.event_time.map(rfc3339::format),
            position: dead_letter.position.to_string(),
            reason: dead_letter.reason.clone(),
            payload: payload.and_then(|text| RawValue::from_string(text.to_owned()).ok()),
        }
    }
}

/// Several dead letters.
#[derive(Debug, Deserialize, Serialize)]
pub struct ListJson {
    pub letters: Vec<DeadLetterJson>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// Positions of the journals that are lost, with their dead letters.
    #[serde(default)]
    pub lost: u64,
}

/// The result of an operation on one sink's dead letters.
#[derive(Debug, Deserialize, Serialize)]
pub struct OutcomeJson {
    pub sink: String,
    pub stored: u64,
    pub refused: u64,
    pub dropped: u64,
    pub edited: u64,
    pub left: u64,
    pub failure: Option<String>,
}

impl OutcomeJson {
    pub fn of(outcome: DeadOutcome) -> Self {
        let DeadOutcome { sink, stored, refused, dropped, edited, left, failure } = outcome;
        Self { sink: sink.to_string(), stored, refused, dropped, edited, left, failure }
    }
}

/// The result of an operation on all sinks' dead letters.
#[derive(Debug, Deserialize, Serialize)]
pub struct OutcomesJson {
    pub sinks: Vec<OutcomeJson>,
}

/// Why a request to the admin API was rejected.
#[derive(Debug, Deserialize, Serialize)]
pub struct ProblemJson {
    pub status: u16,
    pub code: String,
    pub detail: String,
}
