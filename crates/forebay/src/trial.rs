//! One payload tried out, for the command and for the admin API: the gateway takes it as far as the journal, and here stands what is told
//! of it.

mod ways;

use std::time::Duration;

use event::TypeName;
use gateway::{Around, Rehearsal, Rehearsed, Rejection, TakenEvent, TypeRules};
use pipeline::transform::{Did, Filtered, Traced};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::config::{Route, TypeConfig};
use ways::Ways;

/// What stands for all types that have no table of their own.
pub(crate) const OTHERS: &str = "*";

/// An event of this type isn't taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownType {
    /// It isn't one of the configuration's.
    #[error("the configuration has no [types.{0}], and none for others")]
    Missing(String),
    /// Nobody posts it.
    #[error("events of type {0} are results of an aggregate, and can't be posted")]
    Result(String),
}

/// The type that an event of this name is of, among all types with their names.
///
/// # Errors
/// There is none.
pub(crate) fn find<'c>(
    name: &str,
    types: impl Iterator<Item = (&'c str, &'c TypeConfig)>,
) -> Result<(TypeName, &'c TypeConfig), UnknownType> {
    let missing = || UnknownType::Missing(name.to_owned());
    let type_name = TypeName::new(name).map_err(|_| missing())?;
    let (mut own, mut others) = (None, None);
    for (known, config) in types {
        if config.aggregates.iter().any(|aggregate| *aggregate.rules.name() == type_name) {
            return Err(UnknownType::Result(name.to_owned()));
        }
        if known == name {
            own = Some(config);
        } else if known == OTHERS {
            others = Some(config);
        }
    }
    own.or(others).map(|config| (type_name, config)).ok_or_else(missing)
}

/// The events of a type, one after the other.
pub(crate) struct Bench<'c> {
    config: &'c TypeConfig,
    rehearsal: Rehearsal,
}

impl<'c> Bench<'c> {
    pub(crate) fn new(name: TypeName, config: &'c TypeConfig) -> Self {
        let rules = TypeRules {
            id: config.id.clone(),
            schema: config.schema.as_ref().map(|schema| schema.compiled.clone()),
            steps: config.transform.as_ref().map(|transform| transform.steps.clone()),
            texts: config.texts,
            ..TypeRules::default()
        };
        Self { config, rehearsal: Rehearsal::new(name, rules) }
    }

    /// Tries a payload as it would come.
    pub(crate) fn run(&mut self, bytes: &[u8], around: &Around) -> Trial<'c> {
        let rehearsed = self.rehearsal.run(bytes, around);
        Trial { rehearsed, routes: &self.config.routes }
    }
}

/// What became of a payload.
pub(crate) struct Trial<'c> {
    pub(crate) rehearsed: Rehearsed,
    routes: &'c [Route],
}

impl<'c> Trial<'c> {
    /// Where an event that is left of it would go.
    pub(crate) fn ways(&self, event: &TakenEvent) -> Ways<'c> {
        Ways::of(self.routes, &event.payload)
    }
}

/// A trial as JSON. Payloads stand in it byte for byte. Times are in microseconds.
#[derive(Serialize)]
pub(crate) struct TrialJson<'t> {
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
    refused: Option<&'t Rejection>,
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
    /// Nothing where an id is made when it is taken.
    id: Option<String>,
    #[serde(flatten)]
    ways: Ways<'t>,
    payload: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct FilteredJson {
    step: usize,
    operation: &'static str,
}

impl<'t> TrialJson<'t> {
    pub(crate) fn of(trial: &'t Trial<'_>) -> Self {
        let Rehearsed { json, schema, steps, more_steps, ids, end } = &trial.rehearsed;
        let stored = |taken: &TakenEvent| StoredJson {
            id: taken.id.map(|id| id.to_string()),
            ways: trial.ways(taken),
            payload: raw(&taken.payload),
        };
        let filtered = |by: &Filtered| FilteredJson { step: by.step, operation: by.operation };
        Self {
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

/// What comes out of steps is JSON.
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
