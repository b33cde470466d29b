//! A payload on the way that a posted one takes, as far as the journal and not into it: for people who try out what a configuration
//! does. Nothing is counted, and nothing is remembered beyond one [`DryRun`].

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use event::limits::TRACED_STEPS_MAX;
use event::{EventId, KeyedIds, TypeName};
use pipeline::schema::Violation;
use pipeline::transform::{Context, Filtered, Outcome, Part, Scratch, Several, Traced, Windows};
use serde::{Serialize, Serializer};

use crate::ingest::ids::{PartIds, id_steps};
use crate::ingest::params::check_key;
use crate::ingest::record_builder::id_at;
use crate::problem::{Problem, Refused};
use crate::types::type_registry::TypeRules;

/// What is given of an event beside its payload.
#[derive(Clone, Debug, Default)]
pub struct RequestContext {
    /// When it is received, in microseconds since 1970.
    pub received_at: i64,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// Who sends it.
    pub source: String,
    /// The `Idempotency-Key` of its request; empty for none.
    pub key: String,
    /// The headers of its request. Names are in small letters.
    pub headers: Vec<(String, String)>,
}

/// What became of a payload, and how.
#[derive(Debug, Default)]
pub struct DryRunReport {
    /// How long the check took whether it is JSON.
    pub json: Duration,
    /// How long the check against the schema took, if there is one.
    pub schema: Option<Duration>,
    /// What the steps did, as far as it is told: at most [`TRACED_STEPS_MAX`].
    pub steps: Vec<Traced>,
    /// How many more there were.
    pub more_steps: usize,
    /// How long it took to find its ids, if it came so far.
    pub ids: Option<Duration>,
    /// What became of it.
    pub end: DryRunOutcome,
}

/// What became of a payload.
#[derive(Debug, Default)]
pub struct DryRunOutcome {
    /// The events that would be journaled.
    pub taken: Vec<AcceptedEvent>,
    /// What steps took out.
    pub filtered: Vec<Filtered>,
    /// Why it would be refused.
    pub refused: Option<DryRunRejection>,
}

/// An event that would be journaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedEvent {
    /// Its id; nothing where one is made when it is taken.
    pub id: Option<EventId>,
    /// Its payload.
    pub payload: String,
    /// Why the time in it cannot be read, if so: it counts as happened when it is received.
    pub time_unread: Option<String>,
}

/// Why a payload would be refused: what its sender would be answered.
#[derive(Debug)]
pub struct DryRunRejection(Refused);

impl DryRunRejection {
    pub(crate) const fn new(refused: Refused) -> Self {
        Self(refused)
    }

    /// The code, such as `schema`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code.as_str()
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Where in the payload, as a JSON pointer.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        self.0.pointer.as_deref()
    }

    /// The step that refuses it, from 1.
    #[must_use]
    pub fn step(&self) -> Option<usize> {
        self.0.step.as_ref().map(|failed| failed.step)
    }

    /// All that its schema finds wrong.
    #[must_use]
    pub fn errors(&self) -> &[Violation] {
        &self.0.errors
    }
}

impl Serialize for DryRunRejection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.document().serialize(serializer)
    }
}

/// The events of a type, one after the other, as if nothing of it had come before.
#[derive(Debug)]
pub struct DryRun {
    name: TypeName,
    rules: TypeRules,
    windows: Windows,
    scratch: Scratch,
}

impl DryRun {
    /// That of a type with these rules.
    #[must_use]
    pub fn new(name: TypeName, rules: TypeRules) -> Self {
        let windows = rules.steps.as_ref().map(|steps| steps.transform().windows(0)).unwrap_or_default();
        Self { name, rules, windows, scratch: Scratch::default() }
    }

    /// Takes a payload as far as the journal.
    pub fn run(&mut self, bytes: &[u8], around: &RequestContext) -> DryRunReport {
        let mut told = DryRunReport::default();
        match self.follow(bytes, around, &mut told) {
            Ok(end) => DryRunReport { end, ..told },
            Err(refused) => DryRunReport {
                end: DryRunOutcome { refused: Some(DryRunRejection(refused)), ..DryRunOutcome::default() },
                ..told
            },
        }
    }

    /// In the order of [`crate::handlers::event`].
    fn follow(
        &mut self,
        bytes: &[u8],
        around: &RequestContext,
        told: &mut DryRunReport,
    ) -> Result<DryRunOutcome, Refused> {
        if !around.key.is_empty() {
            check_key(around.key.as_bytes(), "the Idempotency-Key")?;
        }
        let began = Instant::now();
        let checked = self.rules.texts.payload(bytes);
        told.json = began.elapsed();
        let payload = &*checked?;
        if let Some(schema) = &self.rules.schema {
            let began = Instant::now();
            let checked = schema.check(payload);
            told.schema = Some(began.elapsed());
            checked.map_err(|violations| Problem::of_schema(&self.name, violations))?;
        }
        let made = self.step(payload, around, told)?;
        let began = Instant::now();
        let end = self.conclude(made, around);
        told.ids = Some(began.elapsed());
        // As if it were stored: only then a step remembers it.
        end.inspect(|_| self.windows.keep())
    }

    fn step(&mut self, payload: &str, around: &RequestContext, told: &mut DryRunReport) -> Result<Made, Refused> {
        let Some(steps) = &self.rules.steps else { return Ok(Made::One(payload.to_owned())) };
        let header = |name: &str| around.header(name);
        let own = self.rules.id.as_ref().and_then(|id| id.lookup(payload)).filter(|raw| *raw != "null");
        let context = Context {
            received_at: around.received_at,
            client: around.client,
            source: &around.source,
            event_type: self.name.as_str(),
            key: own.unwrap_or(&around.key).as_bytes(),
            header: &header,
        };
        let began = Instant::now();
        let clock = || began.elapsed();
        let each = &mut |step| {
            if told.steps.len() < TRACED_STEPS_MAX {
                told.steps.push(step);
            } else {
                told.more_steps += 1;
            }
        };
        let outcome = steps.transform().trace(payload, &context, &mut self.windows, &mut self.scratch, &clock, each);
        Ok(match outcome.map_err(Problem::of_step)? {
            Outcome::Unchanged => Made::One(payload.to_owned()),
            Outcome::Changed(changed) => Made::One(changed.to_owned()),
            Outcome::Filtered(by) => Made::Nothing(by),
            Outcome::Several(several) => Made::Several(several),
        })
    }

    fn storable(&self, payload: String) -> Result<String, Refused> {
        let storable = self.rules.texts.storable(&self.name, &payload)?;
        Ok(if let Cow::Owned(repaired) = storable { repaired } else { payload })
    }

    /// What has become of it, each with its id as [`crate::handlers::transform_outcome`] and [`crate::ingest::record_builder`] give it one.
    fn conclude(&self, made: Made, around: &RequestContext) -> Result<DryRunOutcome, Refused> {
        let own = |payload: &str| id_at(self.rules.id.as_ref(), (&around.source, &self.name), payload);
        let keyed = || {
            let key = Some(around.key.as_bytes()).filter(|key| !key.is_empty())?;
            Some(KeyedIds::new(&around.source, &self.name, key).id(0))
        };
        match made {
            Made::Nothing(by) => Ok(DryRunOutcome { filtered: vec![by], ..DryRunOutcome::default() }),
            Made::One(payload) => {
                let payload = self.storable(payload)?;
                let id = own(&payload)?.or_else(keyed);
                let time_unread = self.rules.time_of(&payload)?.err();
                Ok(DryRunOutcome {
                    taken: vec![AcceptedEvent { id, payload, time_unread }],
                    ..DryRunOutcome::default()
                })
            }
            Made::Several(Several { events, filtered }) => {
                let steps = id_steps(&self.rules);
                let ids = PartIds::new(&self.rules, &steps);
                let take = |part: &Part| {
                    let payload = self.storable(part.payload.clone())?;
                    let given = ids.given((&around.source, &self.name), part, &payload)?;
                    let derived = || keyed().map(|whole| KeyedIds::of_event(whole).id(part.number));
                    let time_unread = self.rules.time_of(&payload)?.err();
                    Ok(AcceptedEvent { id: given.map(|given| given.id).or_else(derived), payload, time_unread })
                };
                let taken = events.iter().map(take).collect::<Result<_, Refused>>()?;
                Ok(DryRunOutcome { taken, filtered, refused: None })
            }
        }
    }
}

/// What steps make of a payload.
enum Made {
    One(String),
    Nothing(Filtered),
    Several(Several),
}

impl RequestContext {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
