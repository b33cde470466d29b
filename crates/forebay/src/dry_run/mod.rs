//! A dry run of one payload, for the command and for the admin API: the gateway runs its pipeline and stops before the append. This module
//! reports the result.

mod routing;

use std::time::Duration;

use anyhow::anyhow;
use config::{Configuration, Route, TypeConfig};
use delivery::LaneBoard;
use event::TypeName;
use gateway::{
    AcceptedEvent, DryRun, DryRunOutcome, DryRunRejection, DryRunTrace, DryRunTypes, RequestContext, TypeRules,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use transform::{Did, Filtered, Traced};

use crate::compose;
use routing::Routing;

/// The name of the rules for all types without a table.
pub(crate) const OTHERS: &str = "*";

/// How the gateway would find the type of an event.
pub(crate) fn finder(configuration: &Configuration) -> DryRunTypes {
    DryRunTypes::new(compose::types(configuration, &[], &LaneBoard::default()))
}

/// The events of a type, one after the other.
pub(crate) struct DryRunner<'c> {
    name: TypeName,
    config: &'c TypeConfig,
    rehearsal: DryRun,
}

impl<'c> DryRunner<'c> {
    pub(crate) fn new(name: TypeName, config: &'c TypeConfig) -> Self {
        let rules = TypeRules {
            id: config.id.clone(),
            time: config.time.clone(),
            schema: config.schema.as_ref().map(|schema| schema.compiled.clone()),
            steps: config.transform.as_ref().map(|transform| transform.steps.clone()),
            texts: config.unstorable,
            ..TypeRules::default()
        };
        Self { name: name.clone(), config, rehearsal: DryRun::new(name, rules) }
    }

    /// Tries a payload as if it were posted.
    pub(crate) fn run(&mut self, bytes: &[u8], around: &RequestContext) -> DryRunReport<'c> {
        let rehearsed = self.rehearsal.run(bytes, around);
        DryRunReport { event_type: Some(self.name.clone()), rehearsed, routes: &self.config.routes }
    }
}

/// The outcome of a payload.
pub(crate) struct DryRunReport<'c> {
    /// The type that accepts it; `None` if there is none.
    pub(crate) event_type: Option<TypeName>,
    pub(crate) rehearsed: DryRunTrace,
    routes: &'c [Route],
}

impl<'c> DryRunReport<'c> {
    /// One whose type isn't found.
    pub(crate) fn without_type(rejection: DryRunRejection) -> Self {
        let end = DryRunOutcome { refused: Some(rejection), ..DryRunOutcome::default() };
        Self { event_type: None, rehearsed: DryRunTrace { end, ..DryRunTrace::default() }, routes: &[] }
    }

    /// The sinks of a remaining event.
    pub(crate) fn routing(&self, event: &AcceptedEvent) -> Routing<'c> {
        Routing::of(self.routes, &event.payload)
    }
}

/// A dry run as JSON, with payloads byte for byte. Times are in microseconds.
#[derive(Serialize)]
pub(crate) struct DryRunJson<'t> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    event_type: Option<&'t str>,
    json_microseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_microseconds: Option<f64>,
    steps: Vec<StepJson<'t>>,
    #[serde(skip_serializing_if = "is_zero")]
    more_steps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ids_microseconds: Option<f64>,
    stored: Vec<StoredJson<'t>>,
    filtered: Vec<FilteredJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'t DryRunRejection>,
}

#[derive(Serialize)]
struct StepJson<'t> {
    step: usize,
    operation: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    part: &'t [usize],
    did: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'t str>,
    microseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
}

/// An event that would be stored.
#[derive(Serialize)]
struct StoredJson<'t> {
    /// `None` if the id is created at the real intake.
    id: Option<String>,
    /// Why the time in it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_unread: Option<String>,
    #[serde(flatten)]
    ways: Routing<'t>,
    payload: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct FilteredJson {
    step: usize,
    operation: &'static str,
}

impl<'t> DryRunJson<'t> {
    pub(crate) fn of(report: &'t DryRunReport<'_>) -> Self {
        let DryRunTrace { json, schema, steps, more_steps, ids, end } = &report.rehearsed;
        let stored = |taken: &AcceptedEvent| StoredJson {
            id: taken.id.map(|id| id.to_string()),
            time_unread: taken.time_unread.clone(),
            ways: report.routing(taken),
            payload: raw(&taken.payload),
        };
        let filtered = |by: &Filtered| FilteredJson { step: by.step, operation: by.operation };
        Self {
            event_type: report.event_type.as_ref().map(TypeName::as_str),
            json_microseconds: microseconds(*json),
            schema_microseconds: schema.map(microseconds),
            steps: steps.iter().map(StepJson::of).collect(),
            more_steps: *more_steps,
            ids_microseconds: ids.map(microseconds),
            stored: end.taken.iter().map(stored).collect(),
            filtered: end.filtered.iter().map(filtered).collect(),
            refused: end.refused.as_ref(),
        }
    }
}

impl<'t> StepJson<'t> {
    fn of(traced: &'t Traced) -> Self {
        let Traced { step, operation, part, did, took, payload } = traced;
        let (did, detail) = match did {
            Did::Done => ("done", None),
            Did::NotMet => ("not_met", None),
            Did::Skipped(why) => ("skipped", Some(why.as_str())),
            Did::Refused(why) => ("refused", Some(why.as_str())),
            Did::Filtered => ("filtered", None),
            Did::Exploded(_) => ("exploded", None),
        };
        let payload = payload.as_deref().and_then(raw);
        Self { step: *step, operation, part, did, detail, microseconds: microseconds(*took), payload }
    }
}

/// The output of steps is JSON.
fn raw(payload: &str) -> Option<Box<RawValue>> {
    serde_json::from_str::<&RawValue>(payload).and_then(to_raw_value).ok()
}

fn microseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The type that accepts events with this name as their type, and its configuration.
///
/// # Errors
/// The configuration has no such type.
pub(crate) fn type_of<'c>(configuration: &'c Configuration, name: &str) -> anyhow::Result<(TypeName, &'c TypeConfig)> {
    let name = finder(configuration).named(name).map_err(|rejection| anyhow!("{}", rejection.detail()))?;
    config_of(configuration, &name).map(|config| (name.clone(), config)).ok_or_else(|| without_config(&name))
}

/// The gateway accepts the type, but the configuration has no table for it.
pub(crate) fn without_config(name: &TypeName) -> anyhow::Error {
    anyhow!("BUG: no table of the configuration accepts type {name}. Report this")
}

/// The configuration of an accepted type.
pub(crate) fn config_of<'c>(configuration: &'c Configuration, name: &TypeName) -> Option<&'c TypeConfig> {
    configuration.types.get(name).or(configuration.other_types.as_ref())
}
