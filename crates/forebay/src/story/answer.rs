//! The parts of a story that are the same for all sinks: receipt, journal, rules, aggregates and payload.

use admin_api::story::{JournaledJson, ReceivedJson, RulesJson, WindowJson};
use config::TypeConfig;
use event::Position;
use event::read::Payload;
use serde_json::value::RawValue;
use text::rfc3339;

use super::known::KnownEvent;
use super::progress::ProgressSource;
use super::search::InLog;

pub(super) fn received(event: Option<&KnownEvent>, key: Option<&str>) -> ReceivedJson {
    ReceivedJson {
        at: event.map(|event| rfc3339::format(event.received_at)),
        source: event.map(|event| event.source.clone()),
        client: event.and_then(|event| event.client).map(|client| client.to_string()),
        asked_by_key: key.map(str::to_owned),
        trace: event.and_then(|event| event.trace).map(|trace| text::hex::encode(&trace.trace_id)),
    }
}

pub(super) fn journal(in_log: &InLog, position: Position, progress: &dyn ProgressSource) -> JournaledJson {
    let journaled = in_log.journaled.as_ref();
    let sampled = || progress.durable(position.shard, position.sequence).map(|bounds| bounds.to);
    let durable_at = journaled.map_or_else(sampled, |journaled| journaled.durable_at);
    JournaledJson {
        position: position.to_string(),
        durable_at: durable_at.map(rfc3339::format),
        events_in_block: journaled.and_then(|journaled| journaled.events_in_block),
        still_there: journaled.is_some(),
    }
}

pub(super) fn rules(config: &TypeConfig, loaded: i64) -> RulesJson {
    let steps = config.transform.iter().flat_map(|transform| transform.steps.transform().operations());
    RulesJson {
        config: Some(rfc3339::format(loaded)),
        schema: config.schema.as_ref().map(|schema| schema.path.display().to_string()),
        steps: steps.map(str::to_owned).collect(),
    }
}

pub(super) fn windows(config: &TypeConfig, event: &KnownEvent) -> Vec<WindowJson> {
    let payload = event.payload_text().and_then(|payload| str::from_utf8(payload).ok()).unwrap_or_default();
    let window = |aggregate: &config::AggregateConfig| {
        let start = aggregate.rules.window_start(payload, event.event_time, event.received_at)?;
        Some(WindowJson { name: aggregate.rules.name().to_string(), window: rfc3339::format(start) })
    };
    config.aggregates.iter().filter_map(window).collect()
}

/// The payload, or its size if it is too large or other programs have stored something else.
pub(super) fn payload(payload: Option<Payload>) -> (Option<Box<RawValue>>, Option<u64>) {
    match payload {
        None => (None, None),
        Some(Payload::Omitted { bytes }) => (None, Some(bytes)),
        Some(Payload::Whole(text)) => {
            let bytes = text.len() as u64;
            let value = String::from_utf8(text).ok().and_then(|text| RawValue::from_string(text).ok());
            let omitted = value.is_none().then_some(bytes);
            (value, omitted)
        }
    }
}
