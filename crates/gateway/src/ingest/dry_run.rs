//! A dry run: a payload goes through the ingest sequence, which ends before the append. It shows an operator what a configuration does.
//! Nothing is counted, and nothing is remembered beyond one [`DryRun`].

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use event::limits::BLOCK_BYTES_MAX;
use event::{EventId, Origin, TypeName};
use eventlog::ContentHash;
use pipeline::schema::Violation;
use pipeline::transform::{Filtered, Traced};
use serde::{Serialize, Serializer};

use super::ack_mode::AckMode;
use super::envelope::{EventContext, Headers};
use super::ids::{RequestKey, check_key};
use super::room::Room;
use super::sequence::{Event, Input, Made, Sequence, Stop, Workspace};
use super::trace::Trace;
use super::windows::{Epoch, WindowSet};
use crate::event_types::{CostBudget, GatewayTypes, Slot, TypeCache, TypeRegistry, TypeRules};
use crate::problem::Refused;

/// The request that would post an event, its payload apart.
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

/// What the sequence made of a payload, and how long its steps took.
#[derive(Debug, Default)]
pub struct DryRunReport {
    /// How long the check took whether it is JSON.
    pub json: Duration,
    /// How long the check against the schema took, if there is one.
    pub schema: Option<Duration>,
    /// What the steps of the transform did: the first [`event::limits::TRACED_STEPS_MAX`].
    pub steps: Vec<Traced>,
    /// How many more there were.
    pub more_steps: usize,
    /// How long it took to find its ids, if the sequence got so far.
    pub ids: Option<Duration>,
    /// The outcome.
    pub end: DryRunOutcome,
}

/// The outcome of a payload.
#[derive(Debug, Default)]
pub struct DryRunOutcome {
    /// The events that would be journaled.
    pub taken: Vec<AcceptedEvent>,
    /// What steps have dropped.
    pub filtered: Vec<Filtered>,
    /// Why it would be rejected.
    pub refused: Option<DryRunRejection>,
}

/// An event that would be journaled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedEvent {
    /// Its id; none if one is generated at the append.
    pub id: Option<EventId>,
    /// Its payload.
    pub payload: String,
    /// Why the time in it cannot be read, if so: it counts as happened when it is received.
    pub time_unread: Option<String>,
}

/// Why a payload would be rejected: what its client would be answered.
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

    /// The step that rejects it, from 1.
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

/// Events of a type, one after the other, as if none had been sent before.
#[derive(Debug)]
pub struct DryRun {
    types: TypeCache,
    slot: Slot,
    windows: WindowSet,
    workspace: Workspace,
}

impl DryRun {
    /// Events of a type with these rules.
    #[must_use]
    pub fn new(name: TypeName, rules: TypeRules) -> Self {
        let windows = rules.steps.as_ref().map(|steps| steps.transform().windows(0)).unwrap_or_default();
        let types = GatewayTypes { named: [(name.clone(), rules)].into(), ..GatewayTypes::default() };
        let mut types = TypeCache::new(Arc::new(TypeRegistry::new(types, &Arc::default())));
        let slot = types.find(name.as_str()).expect("a type that has rules is accepted");
        Self { types, slot, windows: WindowSet::with(slot, windows), workspace: Workspace::default() }
    }

    /// Runs the sequence on a payload.
    pub fn run(&mut self, bytes: &[u8], request: &RequestContext) -> DryRunReport {
        let mut trace = Trace::default();
        let end = self.sequence(bytes, request, &mut trace).unwrap_or_else(|problem| DryRunOutcome {
            refused: Some(DryRunRejection(problem)),
            ..DryRunOutcome::default()
        });
        let Trace { json, schema, ids, steps, more_steps } = trace;
        DryRunReport { json, schema, steps, more_steps, ids, end }
    }

    fn sequence(
        &mut self,
        bytes: &[u8],
        request: &RequestContext,
        trace: &mut Trace,
    ) -> Result<DryRunOutcome, Refused> {
        let key = Some(request.key.as_bytes()).filter(|key| !key.is_empty());
        if let Some(key) = key {
            check_key(key, "the Idempotency-Key")?;
        }
        let RequestContext { received_at, client, source, headers, .. } = request;
        let headers = Headers::of_pairs(headers);
        let sequence = Sequence {
            types: &mut self.types,
            named: Some(self.slot),
            ack: AckMode::Disk,
            context: EventContext { received_at: *received_at, client: *client, source, headers: &headers },
            key: RequestKey { key, number: None, keyed: &mut None },
            hash: &ContentHash::new(Origin([0; 16])),
            windows: &mut self.windows,
            epoch: Epoch::Known(0),
            room: Room::beside(0, 0, BLOCK_BYTES_MAX),
            budget: &mut CostBudget::unlimited(),
        };
        let processed =
            sequence.run(Input::Bytes(bytes), &mut self.workspace, Some(trace)).map_err(Stop::into_problem)?;
        let outcome = match processed.made {
            Made::One(event) => DryRunOutcome { taken: vec![event.into()], ..DryRunOutcome::default() },
            Made::Filtered(by) => DryRunOutcome { filtered: vec![by], ..DryRunOutcome::default() },
            Made::Several { events, filtered } => {
                DryRunOutcome { taken: events.into_iter().map(Into::into).collect(), filtered, refused: None }
            }
        };
        // As if it were stored: only then the windows see its values.
        self.windows.keep();
        Ok(outcome)
    }
}

impl From<Event<'_>> for AcceptedEvent {
    fn from(event: Event<'_>) -> Self {
        let Event { payload, id, time } = event;
        Self { id: id.map(|chosen| chosen.id), payload: payload.into_owned(), time_unread: time.err() }
    }
}

impl RequestContext {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
