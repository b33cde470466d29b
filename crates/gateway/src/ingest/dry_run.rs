//! A dry run: a payload goes through the ingest pipeline, which ends before the append. It shows an operator what a configuration does.
//! Nothing is counted, and nothing is remembered beyond one [`DryRun`].

use std::net::IpAddr;
use std::sync::Arc;

use event::{Origin, TypeName};
use eventlog::ContentHash;
use limits::BLOCK_BYTES_MAX;
use tap::Taps;

use super::ack_mode::AckMode;
use super::envelope::{EventContext, Headers};
use super::ids::{RequestKey, check_key};
use super::pipeline::{Event, Input, Made, Pipeline, PipelineError, Workspace};
use super::request_budget::RequestBudget;
use super::trace::{AcceptedEvent, DryRunOutcome, DryRunRejection, DryRunTrace};

use super::windows::{Epoch, WindowSet};
use crate::event_types::{CostBudget, GatewayTypes, Slot, TypeCache, TypeRegistry, TypeRules};
use crate::problem::Refused;

/// The request that would post an event, without its payload.
#[derive(Clone, Debug, Default)]
pub struct RequestContext {
    /// When it is received, in microseconds since 1970.
    pub received_at: i64,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The source that sends it.
    pub source: String,
    /// The `Idempotency-Key` of its request; empty for none.
    pub key: String,
    /// The headers of its request. Names are in lower case.
    pub headers: Vec<(String, String)>,
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

    /// Runs the pipeline on a payload.
    pub fn run(&mut self, bytes: &[u8], request: &RequestContext) -> DryRunTrace {
        let mut trace = DryRunTrace::default();
        trace.end = self.run_observed(bytes, request, &mut trace).unwrap_or_else(|problem| DryRunOutcome {
            refused: Some(DryRunRejection::new(problem)),
            ..DryRunOutcome::default()
        });
        trace
    }

    fn run_observed(
        &mut self,
        bytes: &[u8],
        request: &RequestContext,
        trace: &mut DryRunTrace,
    ) -> Result<DryRunOutcome, Refused> {
        let key = Some(request.key.as_bytes()).filter(|key| !key.is_empty());
        if let Some(key) = key {
            check_key(key, "the Idempotency-Key")?;
        }
        let RequestContext { received_at, client, source, headers, .. } = request;
        let headers = Headers::of_pairs(headers);
        let pipeline = Pipeline {
            types: &mut self.types,
            named: Some(self.slot),
            ack: AckMode::Disk,
            context: EventContext {
                received_at: *received_at,
                client: *client,
                source,
                types: None,
                headers: &headers,
            },
            key: RequestKey { id: None, is_digest: false, key, number: None, keyed: &mut None },
            hash: &ContentHash::new(Origin([0; 16])),
            windows: &mut self.windows,
            epoch: Epoch::Known(0),
            room: RequestBudget::remaining(0, 0, BLOCK_BYTES_MAX),
            budget: &mut CostBudget::unlimited(),
            taps: Taps::closed(),
        };
        let processed =
            pipeline.run(Input::Bytes(bytes), &mut self.workspace, trace).map_err(PipelineError::into_problem)?;
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
