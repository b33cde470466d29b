//! `GET /api/events/ID/story`: what is known of one event.

use serde::Serialize;
use serde_json::value::RawValue;

/// The story of an event. Times are RFC 3339 in UTC.
#[derive(Debug, Default, Serialize)]
pub struct StoryJson {
    /// The id; empty if only the position is known.
    pub id: String,
    pub r#type: Option<String>,
    pub known_from: Vec<String>,
    pub received: ReceivedJson,
    pub journal: Option<JournaledJson>,
    pub rules: Option<RulesJson>,
    pub sinks: Vec<SinkStoryJson>,
    pub aggregates: Vec<WindowJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_omitted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Sentences.
    pub not_known: Vec<String>,
}

/// The receipt.
#[derive(Debug, Default, Serialize)]
pub struct ReceivedJson {
    pub at: Option<String>,
    pub source: Option<String>,
    pub client: Option<String>,
    pub asked_by_key: Option<String>,
    pub trace: Option<String>,
}

/// The place in the journal.
#[derive(Debug, Serialize)]
pub struct JournaledJson {
    pub position: String,
    pub durable_at: Option<String>,
    pub events_in_block: Option<u64>,
    pub still_there: bool,
}

/// The rules of the event's type in the running configuration.
#[derive(Debug, Serialize)]
pub struct RulesJson {
    /// When it was loaded.
    pub config: Option<String>,
    pub schema: Option<String>,
    pub steps: Vec<String>,
}

/// A window of an aggregate.
#[derive(Debug, Serialize)]
pub struct WindowJson {
    pub name: String,
    pub window: String,
}

/// The outcome of the event in a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkOutcomeJson {
    Stored,
    Pending,
    Deferred,
    Dead,
    Dropped,
    Skipped,
    Lost,
    Unknown,
}

/// The event in one sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SinkStoryJson {
    pub sink: String,
    pub outcome: SinkOutcomeJson,
    pub at: Option<BoundsJson>,
    pub before_it: Option<u64>,
    pub failures: Vec<FailureJson>,
    pub server: Option<String>,
    pub object: Option<String>,
    pub condition: Option<String>,
    pub reason: Option<String>,
    pub edits: Vec<EditJson>,
}

/// A time within bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoundsJson {
    pub from: String,
    pub to: String,
}

/// A time in which a lane could not deliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureJson {
    pub from: String,
    pub to: Option<String>,
    pub tries: u64,
    pub reason: String,
    pub server: Option<String>,
}

/// An edit of a dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EditJson {
    pub at: String,
    pub by: String,
}

/// A problem with the places where the event was looked for.
#[derive(Clone, Debug, Serialize)]
pub struct NotFoundJson {
    pub status: u16,
    pub code: &'static str,
    pub detail: String,
    pub looked_in: Vec<String>,
}
