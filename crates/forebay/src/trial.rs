//! One payload on the way that a posted one takes, without a server: JSON, schema, steps. What runs is what a server runs.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use pipeline::json;
use pipeline::schema::Violation;
use pipeline::transform::{Context, Filtered, Outcome, Scratch, StepError, Traced, Windows};
use serde::Serialize;

use crate::config::TypeConfig;

/// What is given of an event beside its payload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    pub(crate) event_type: String,
    pub(crate) received_at: i64,
    pub(crate) client: Option<IpAddr>,
    pub(crate) source: String,
    pub(crate) key: String,
    /// Names are in small letters.
    pub(crate) headers: Vec<(String, String)>,
}

/// What became of a payload, and how.
#[derive(Debug, Default)]
pub(crate) struct Trial {
    /// How long the check against the schema took, if there is one.
    pub(crate) schema: Option<Duration>,
    pub(crate) steps: Vec<Traced>,
    pub(crate) end: End,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// The payloads that would be stored.
    pub(crate) stored: Vec<String>,
    /// What steps took out.
    pub(crate) filtered: Vec<Filtered>,
    pub(crate) refused: Option<Refused>,
}

/// Why it would be refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Refused {
    pub(crate) code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pointer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<usize>,
    pub(crate) detail: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
}

/// The events of a type, one after the other.
pub(crate) struct Bench<'c> {
    config: &'c TypeConfig,
    windows: Windows,
    scratch: Scratch,
}

impl<'c> Bench<'c> {
    pub(crate) fn new(config: &'c TypeConfig) -> Self {
        let windows = config.transform.as_ref().map(|transform| transform.steps.transform().windows(0));
        Self { config, windows: windows.unwrap_or_default(), scratch: Scratch::default() }
    }

    /// Tries a payload as it would come.
    pub(crate) fn run(&mut self, bytes: &[u8], around: &Around) -> Trial {
        let mut trial = Trial::default();
        match self.follow(bytes, around, &mut trial) {
            Ok(end) => Trial { end, ..trial },
            Err(refused) => Trial { end: End { refused: Some(refused), ..End::default() }, ..trial },
        }
    }

    fn follow(&mut self, bytes: &[u8], around: &Around, trial: &mut Trial) -> Result<End, Refused> {
        let payload = json::check(bytes).map_err(Refused::of_json)?;
        if let Some(schema) = &self.config.schema {
            let began = Instant::now();
            let checked = schema.compiled.check(payload);
            trial.schema = Some(began.elapsed());
            checked.map_err(|violations| Refused::of_schema(&violations.list))?;
        }
        let Some(transform) = &self.config.transform else { return Ok(End::of(payload)) };
        let header = |name: &str| around.header(name);
        let own = self.config.id.as_ref().and_then(|id| id.lookup(payload)).filter(|raw| *raw != "null");
        let context = Context {
            received_at: around.received_at,
            client: around.client,
            source: &around.source,
            event_type: &around.event_type,
            key: own.unwrap_or(&around.key).as_bytes(),
            header: &header,
        };
        let began = Instant::now();
        let (clock, each) = (|| began.elapsed(), &mut |step| trial.steps.push(step));
        let transform = transform.steps.transform();
        let outcome = transform.trace(payload, &context, &mut self.windows, &mut self.scratch, &clock, each);
        let end = match outcome.map_err(Refused::of_step)? {
            Outcome::Unchanged => End::of(payload),
            Outcome::Changed(changed) => End::of(changed),
            Outcome::Filtered(by) => End { filtered: vec![by], ..End::default() },
            Outcome::Several(several) => {
                let stored = several.events.into_iter().map(|(_, event)| event).collect();
                End { stored, filtered: several.filtered, refused: None }
            }
        };
        self.windows.keep();
        Ok(end)
    }
}

impl Around {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl End {
    fn of(payload: &str) -> Self {
        Self { stored: vec![payload.to_owned()], ..Self::default() }
    }
}

impl Refused {
    fn of_json(error: json::JsonError) -> Self {
        let code = pipeline::RefusalCode::from(error.kind).as_str();
        Self { code, pointer: None, step: None, detail: error.to_string(), errors: Vec::new() }
    }

    fn of_schema(violations: &[Violation]) -> Self {
        let errors: Vec<_> =
            violations.iter().map(|violation| format!("{}: {violation}", at(&violation.pointer))).collect();
        let pointer = violations.first().map(|violation| violation.pointer.clone());
        let detail = violations.first().map(ToString::to_string).unwrap_or_default();
        Self { code: "schema", pointer, step: None, detail, errors }
    }

    fn of_step(error: StepError) -> Self {
        let detail = error.to_string();
        Self { code: "transform", pointer: error.pointer, step: Some(error.step), detail, errors: Vec::new() }
    }
}

fn at(pointer: &str) -> &str {
    if pointer.is_empty() { "the value" } else { pointer }
}
