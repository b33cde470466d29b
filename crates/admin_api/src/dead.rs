//! Dead letters as JSON: what the admin API answers, what the command reads from it, and what it prints.

use delivery::{DeadLetter, DeadOutcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use text::rfc3339;

/// One letter.
#[derive(Debug, Deserialize, Serialize)]
pub struct LetterJson {
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
    /// Byte for byte as it was received. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
}

impl LetterJson {
    pub fn of(letter: &DeadLetter) -> Self {
        let payload = std::str::from_utf8(&letter.payload).ok().filter(|text| !text.is_empty());
        Self {
            sink: letter.sink.to_string(),
            id: letter.id.to_string(),
            type_name: letter.type_name.clone(),
            source: letter.source.clone(),
            client: letter.client.map(|address| address.to_string()),
            received: rfc3339::format(letter.received_at),
            event_time: letter.event_time.map(rfc3339::format),
            position: letter.position.to_string(),
            reason: letter.reason.clone(),
            payload: payload.and_then(|text| RawValue::from_string(text.to_owned()).ok()),
        }
    }
}

/// Several letters.
#[derive(Debug, Deserialize, Serialize)]
pub struct ListJson {
    pub letters: Vec<LetterJson>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// Positions of the journals that are lost, with the letters on them.
    #[serde(default)]
    pub lost: u64,
}

/// What became of one sink's letters.
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

/// What became of all sinks' letters.
#[derive(Debug, Deserialize, Serialize)]
pub struct OutcomesJson {
    pub sinks: Vec<OutcomeJson>,
}

/// Why a request to the admin API was refused.
#[derive(Debug, Deserialize, Serialize)]
pub struct ProblemJson {
    pub status: u16,
    pub code: String,
    pub detail: String,
}
