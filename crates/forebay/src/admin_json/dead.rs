//! Dead letters as JSON: what the admin API answers, what the command reads from it, and what it prints.

use delivery::{DeadLetter, DeadOutcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use text::rfc3339;

/// One letter.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct LetterJson {
    pub(crate) sink: String,
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) source: String,
    pub(crate) client: Option<String>,
    pub(crate) received: String,
    pub(crate) event_time: Option<String>,
    pub(crate) position: String,
    pub(crate) reason: String,
    /// Byte for byte as it was received. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<Box<RawValue>>,
}

impl LetterJson {
    pub(crate) fn of(letter: &DeadLetter) -> Self {
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
pub(crate) struct ListJson {
    pub(crate) letters: Vec<LetterJson>,
    /// Whether there are more than the limit.
    pub(crate) more: bool,
    /// Positions of the journals that are lost, with the letters on them.
    #[serde(default)]
    pub(crate) lost: u64,
}

/// What became of one sink's letters.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct OutcomeJson {
    pub(crate) sink: String,
    pub(crate) stored: u64,
    pub(crate) refused: u64,
    pub(crate) dropped: u64,
    pub(crate) edited: u64,
    pub(crate) left: u64,
    pub(crate) failure: Option<String>,
}

impl OutcomeJson {
    pub(crate) fn of(outcome: DeadOutcome) -> Self {
        let DeadOutcome { sink, stored, refused, dropped, edited, left, failure } = outcome;
        Self { sink: sink.to_string(), stored, refused, dropped, edited, left, failure }
    }
}

/// What became of all sinks' letters.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct OutcomesJson {
    pub(crate) sinks: Vec<OutcomeJson>,
}

/// Why a request to the admin API was refused.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct ProblemJson {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) detail: String,
}
