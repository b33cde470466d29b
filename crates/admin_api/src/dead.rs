//! Dead letters as JSON: what the admin API answers, what the command reads from it, and what it prints.

use dead_letters::{DeadGroups, DeadLetter, DeadList, DeadOutcome, Repeatable, Selection};
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
    /// The cursor of the next page; null at the end.
    #[serde(default)]
    pub next: Option<String>,
}

impl ListJson {
    pub fn of(list: &DeadList) -> Self {
        let next = list.next().map(|cursor| cursor.to_string());
        let letters = list.letters.iter().map(DeadLetterJson::of).collect();
        Self { letters, more: list.more, lost: list.lost, next }
    }
}

/// Dead letters by sink, type and reason.
#[derive(Debug, Serialize)]
pub struct GroupsJson {
    /// The largest first.
    pub groups: Vec<GroupJson>,
    /// The number of the others.
    pub more: u64,
}

/// Dead letters with a common sink, type and reason.
#[derive(Debug, Serialize)]
pub struct GroupJson {
    pub sink: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub reason: String,
    pub letters: u64,
    /// By the time of receipt.
    pub oldest: String,
    pub newest: String,
}

impl GroupsJson {
    pub fn of(found: DeadGroups) -> Self {
        let group = |group: dead_letters::DeadGroup| GroupJson {
            sink: group.sink.to_string(),
            type_name: group.type_name,
            reason: group.reason,
            letters: group.letters,
            oldest: rfc3339::format(group.oldest),
            newest: rfc3339::format(group.newest),
        };
        Self { groups: found.groups.into_iter().map(group).collect(), more: found.more }
    }
}

/// What a replay or a drop would handle.
#[derive(Debug, Deserialize, Serialize)]
pub struct PlanJson {
    pub letters: u64,
    pub sinks: Vec<PlannedSinkJson>,
}

/// The dead letters of one sink in a plan.
#[derive(Debug, Deserialize, Serialize)]
pub struct PlannedSinkJson {
    pub sink: String,
    pub letters: u64,
    pub repeatable: RepeatableJson,
}

/// Whether the store recognises events that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatableJson {
    Once,
    Again,
}

impl PlanJson {
    pub fn of(selection: &Selection) -> Self {
        let sink = |planned: dead_letters::PlannedSink| PlannedSinkJson {
            sink: planned.sink.to_string(),
            letters: planned.letters,
            repeatable: match planned.repeatable {
                Repeatable::Once => RepeatableJson::Once,
                Repeatable::Again => RepeatableJson::Again,
            },
        };
        Self { letters: selection.letters(), sinks: selection.sinks().into_iter().map(sink).collect() }
    }
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
