//! The pipeline that every payload runs through, from its bytes to events that the log can append.
//!
//! | stage | what it does |
//! |---|---|
//! | JSON | checks that the bytes are JSON; repairs halves of surrogate pairs, if a type allows it |
//! | type | uses the type that the request names, or that the payload has by pointer or rule; checks that it is accepted now |
//! | schema | validates the payload, if the type has a schema |
//! | transform | runs the type's transform: the event stays as it is, changes, is filtered, or becomes several |
//! | stores | checks that the type's stores can hold each event, or repairs it |
//! | id | finds the id that the client has chosen, and the time that the payload names |
//!
//! [`Pipeline::run`] is called by `POST /ingest/event` on its shard (`handlers::event`), for each record of a batch
//! ([`super::record_builder`]), for a costly event on a thread of the worker pool (`RecordBuilder::process_event`), and by a dry run
//! ([`super::dry_run`]), which stops before the append. What differs between them is an argument: the budget, the key, the dedupe
//! windows, and the observer of the stages.

use std::borrow::Cow;

use event::{KeyedIds, TypeName};
use eventlog::ContentHash;
use json::JsonErrorKind;
use json::JsonPointer;
use json::batch::Item;
use json::text::read_string;
use json::{RejectionCode, ValueIndex, ValueView};
use limits::TRANSFORM_WORK_MAX;
use tap::{Point, Taps};
use transform::{Context, DerivedEvent, Filtered, Scratch, Several, StepError, TransformOutcome, WindowMark, Windows};

use super::ack_mode::AckMode;
use super::envelope::EventContext;
use super::ids::{self, ChosenId, RequestKey};
use super::params::DEFAULT_TYPE;
use super::request_budget::RequestBudget;
use super::windows::{Epoch, WindowSet};
use crate::error_code::ErrorCode;
use crate::event_types::{CostBudget, IdRule, OverBudget, Slot, TransformHandle, TypeCache};
use crate::problem::{Problem, Refused};
use crate::tapped;

/// A payload as the client sent it.
#[derive(Clone, Copy)]
pub(crate) enum Input<'p> {
    /// The body of a request.
    Bytes(&'p [u8]),
    /// A record of a batch: to find its end was to check it.
    Record(&'p Item<'p>),
}

/// Buffers for one payload after the other.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    values: ValueIndex,
    scratch: Scratch,
    repaired: String,
}

impl Workspace {
    /// Frees what only large payloads need.
    pub(crate) fn forget(&mut self) {
        self.values.forget();
        self.repaired = String::new();
    }
}

/// The pipeline's result for a payload.
pub(crate) struct Processed<'p> {
    pub(crate) slot: Slot,
    pub(crate) made: Made<'p>,
    /// A step dropped something because an earlier event of the same request has the same value.
    pub(crate) depends_on_duplicates: bool,
}

/// The events that a payload becomes.
pub(crate) enum Made<'p> {
    One(Event<'p>),
    Filtered(Filtered),
    Several { events: Vec<Event<'static>>, filtered: Vec<Filtered> },
}

/// An event that the log can append.
pub(crate) struct Event<'p> {
    pub(crate) payload: Cow<'p, str>,
    pub(crate) id: Option<ChosenId>,
    /// The time that the payload names, or why it can't be read.
    pub(crate) time: Result<Option<i64>, String>,
}

impl Event<'_> {
    /// The same with an owned payload.
    pub(crate) fn into_owned(self) -> Event<'static> {
        let Self { payload, id, time } = self;
        Event { payload: payload.into_owned().into(), id, time }
    }
}

/// Why the pipeline ended early.
pub(crate) enum PipelineError {
    Rejected(Problem),
    /// It would take the shard longer than other requests should wait. The caller runs it again on a thread of the worker pool.
    OverBudget,
}

impl From<Problem> for PipelineError {
    fn from(problem: Problem) -> Self {
        Self::Rejected(problem)
    }
}

impl From<OverBudget> for PipelineError {
    fn from(_: OverBudget) -> Self {
        Self::OverBudget
    }
}

impl PipelineError {
    /// The problem of a caller whose budget is unlimited.
    pub(crate) fn into_problem(self) -> Refused {
        match self {
            Self::Rejected(problem) => Box::new(problem),
            Self::OverBudget => Problem::boxed(ErrorCode::Overload, "the event was not processed in time; retry later"),
        }
    }
}

/// The stages that an observer sees. The transform has a separate method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PipelineStage {
    Json,
    Schema,
    /// All that follows the transform.
    Ids,
}

/// Runs the stages, and may measure them.
pub(crate) trait PipelineObserver {
    fn stage<T>(&mut self, stage: PipelineStage, run: impl FnOnce() -> T) -> T;

    /// Runs the transform, and sets `work` to what it took.
    fn transform<'p>(
        &mut self,
        handle: &TransformHandle,
        payload: ValueView<'p>,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'p mut Scratch,
        work: &mut usize,
    ) -> Result<TransformOutcome<'p>, StepError>;
}

/// Measures nothing but the work of transforms, from which their estimators learn.
pub(crate) struct Unobserved;

impl PipelineObserver for Unobserved {
    #[inline]
    fn stage<T>(&mut self, _: PipelineStage, run: impl FnOnce() -> T) -> T {
        run()
    }

    fn transform<'p>(
        &mut self,
        handle: &TransformHandle,
        payload: ValueView<'p>,
        context: &Context<'_>,
        windows: &mut Windows,
        scratch: &'p mut Scratch,
        work: &mut usize,
    ) -> Result<TransformOutcome<'p>, StepError> {
        let outcome = handle.transform().run_within(work, payload, context, windows, scratch);
        handle.estimator().learn(payload.payload().len(), *work);
        outcome
    }
}

/// The arguments of the pipeline for one payload.
pub(crate) struct Pipeline<'a> {
    pub(crate) types: &'a mut TypeCache,
    /// The type, if the request names it.
    pub(crate) named: Option<Slot>,
    pub(crate) ack: AckMode,
    pub(crate) context: EventContext<'a>,
    pub(crate) key: RequestKey<'a>,
    pub(crate) hash: &'a ContentHash,
    pub(crate) windows: &'a mut WindowSet,
    pub(crate) epoch: Epoch<'a>,
    /// How many events a transform may split it into.
    pub(crate) room: RequestBudget,
    /// What the pipeline may cost.
    pub(crate) budget: &'a mut CostBudget,
    /// Those who watch events pass.
    pub(crate) taps: &'static Taps,
}

impl Pipeline<'_> {
    /// Runs all stages.
    ///
    /// # Errors
    /// The payload is rejected, or costs more than the budget has left. The windows are as if it hadn't been sent.
    pub(crate) fn run<'p>(
        mut self,
        input: Input<'p>,
        workspace: &'p mut Workspace,
        observer: &mut impl PipelineObserver,
    ) -> Result<Processed<'p>, PipelineError> {
        let Workspace { values, scratch, repaired } = workspace;
        self.budget.charge_record()?;
        let may_repair = self.types.table().repairs;
        let checked = observer.stage(PipelineStage::Json, move || check_json(input, may_repair, repaired));
        let (payload, fault) = checked.map_err(|problem| self.named_in(problem, self.named))?;
        let slot = match self.named {
            Some(slot) => slot,
            None => type_of(self.types, payload, self.budget)?,
        };
        let processed = self.process(slot, payload, fault, values, scratch, observer);
        // An event that costs too much is processed a second time.
        if self.taps.want(Point::Received) && !matches!(processed, Err(PipelineError::OverBudget)) {
            let EventContext { source, received_at, .. } = self.context;
            tapped::received(self.taps, self.types, slot, (source, received_at), payload);
        }
        processed.map_err(|stop| match stop {
            PipelineError::Rejected(problem) => PipelineError::Rejected(self.named_in(problem, Some(slot))),
            PipelineError::OverBudget => PipelineError::OverBudget,
        })
    }

    /// A problem that names the type of its event.
    fn named_in(&self, problem: Problem, slot: Option<Slot>) -> Problem {
        Problem { type_name: slot.map(|slot| Box::new(self.types.get(slot).name.clone())), ..problem }
    }

    /// Runs the stages of the type at `slot`.
    fn process<'p>(
        &mut self,
        slot: Slot,
        payload: &'p str,
        fault: Option<Problem>,
        values: &'p mut ValueIndex,
        scratch: &'p mut Scratch,
        observer: &mut impl PipelineObserver,
    ) -> Result<Processed<'p>, PipelineError> {
        let entry = self.types.get(slot);
        if let Some(types) = self.context.types.filter(|types| !types.allow(entry.name.as_str())) {
            return Err(Problem::of_token_types(types, &entry.name).into());
        }
        entry.check()?;
        entry.check_repaired(fault)?;
        self.ack.check(entry)?;
        entry.charge(payload.len(), self.budget)?;
        #[cfg(test)]
        super::tests::planted_step(payload)?;
        let payload = match &entry.rules.schema {
            Some(schema) => {
                let budget = &mut *self.budget;
                observer
                    .stage(PipelineStage::Schema, move || entry.validate(schema, values.read(payload), budget))??
            }
            None => ValueView::unread(payload),
        };
        let (outcome, mark) = self.transform(slot, payload, scratch, observer)?;
        let depends_on_duplicates = mark.is_some_and(|(_, depends)| depends);
        match observer.stage(PipelineStage::Ids, || self.events(slot, payload.payload(), outcome)) {
            Ok(made) => Ok(Processed { slot, made, depends_on_duplicates }),
            Err(problem) => {
                mark.into_iter().for_each(|(mark, _)| self.windows.forget_since(slot, mark));
                Err(problem.into())
            }
        }
    }

    /// Runs the transform of the type, if it has one. Says then what its windows had seen before, and whether a step depends on an event of
    /// the same request.
    fn transform<'p>(
        &mut self,
        slot: Slot,
        payload: ValueView<'p>,
        scratch: &'p mut Scratch,
        observer: &mut impl PipelineObserver,
    ) -> Result<(TransformOutcome<'p>, Option<(WindowMark, bool)>), PipelineError> {
        let entry = self.types.get(slot);
        let Some(handle) = &entry.rules.steps else { return Ok((TransformOutcome::Unchanged, None)) };
        let windows = self.windows.open(slot, handle, self.epoch);
        let mark = windows.mark();
        let EventContext { received_at, client, source, headers, .. } = self.context;
        let own = || entry.rules.id.pointer()?.lookup(payload.payload()).filter(|raw| *raw != "null");
        let key = match (handle.asks_for_key(), self.key.is_known()) {
            (true, false) if entry.rules.id == IdRule::Content => {
                let id = ids::of_content(source, entry, payload.payload());
                id.map(|chosen| chosen.id.0.to_vec()).unwrap_or_default()
            }
            (true, _) => own().map_or_else(|| self.key.of_record(), |raw| raw.as_bytes().to_vec()),
            (false, _) => Vec::new(),
        };
        let header = |name: &str| headers.get(name);
        let context =
            Context { received_at, client, source, event_type: entry.name.as_str(), key: &key, header: &header };
        let most = self.budget.left().unwrap_or(TRANSFORM_WORK_MAX);
        let mut spent = most;
        let outcome = observer.transform(handle, payload, &context, windows, scratch, &mut spent);
        let depends = windows.take_own_duplicate();
        if outcome.as_ref().is_err_and(|error| error.exhausted) && most < TRANSFORM_WORK_MAX {
            self.budget.exhaust();
            return Err(PipelineError::OverBudget);
        }
        // The transform was stopped where the budget ended, so it can't have used more.
        let _ = self.budget.spend(spent);
        let outcome = outcome.map_err(|error| *Problem::of_step(error))?;
        Ok((outcome, Some((mark, depends))))
    }

    /// What the log can append of the transform's outcome.
    fn events<'p>(&mut self, slot: Slot, payload: &'p str, outcome: TransformOutcome<'p>) -> Result<Made<'p>, Problem> {
        let Self { types, context, key, hash, room, .. } = self;
        let (entry, source) = (types.get(slot), context.source);
        let has_transform = entry.rules.steps.is_some();
        // A transform may add the time, so a duplicate is recognised by the sent bytes. With a key the client decides.
        let sent = payload;
        let by_request = |key: &mut RequestKey<'_>| key.of_request(slot, source, entry, sent);
        let mut one = |payload: &'p str| {
            if has_transform {
                room.check(1, payload.len())?;
            }
            let payload = entry.storable(payload)?;
            let id = ids::of_payload(source, entry, &payload)?.or_else(|| by_request(key));
            let time = entry.rules.time_of(&payload)?;
            Ok(Made::One(Event { payload, id, time }))
        };
        match outcome {
            TransformOutcome::Unchanged => one(payload),
            TransformOutcome::Changed(changed) => one(changed),
            TransformOutcome::Filtered(by) => Ok(Made::Filtered(by)),
            TransformOutcome::Several(Several { events, filtered }) => {
                room.check(events.len(), events.iter().map(|part| part.payload.len()).sum())?;
                let part = |mut part: DerivedEvent| {
                    let repaired = match entry.storable(&part.payload)? {
                        Cow::Owned(repaired) => Some(repaired),
                        Cow::Borrowed(_) => None,
                    };
                    let payload = repaired.unwrap_or_else(|| std::mem::take(&mut part.payload));
                    let derived =
                        |whole: ChosenId| ChosenId { id: KeyedIds::of_event(whole.id).id(part.number), ..whole };
                    let own = ids::of_part(source, hash, entry, &part, &payload)?;
                    let id = own.or_else(|| by_request(key).map(derived));
                    let time = entry.rules.time_of(&payload)?;
                    Ok(Event { payload: payload.into(), id, time })
                };
                let events = events.into_iter().map(part).collect::<Result<_, Problem>>()?;
                Ok(Made::Several { events, filtered })
            }
        }
    }
}

/// The JSON that was sent; repaired where some type allows that, and then with the fault.
pub(super) fn check_json<'p>(
    input: Input<'p>,
    may_repair: bool,
    repaired: &'p mut String,
) -> Result<(&'p str, Option<Problem>), Problem> {
    let (raw, is_repairable, problem) = match input {
        Input::Bytes(bytes) => match json::check(bytes) {
            Ok(payload) => return Ok((payload, None)),
            Err(error) => (bytes, error.kind == JsonErrorKind::Surrogate, *Problem::of_event(bytes, error)),
        },
        Input::Record(Item { record: Ok(payload), .. }) => return Ok((payload, None)),
        Input::Record(Item { record: Err(refusal), raw, .. }) => {
            (*raw, refusal.code == RejectionCode::Surrogate, Problem::of_refusal(refusal.clone()))
        }
    };
    if !is_repairable || !may_repair {
        return Err(problem);
    }
    *repaired = json::replace_surrogates(raw);
    Ok((repaired, Some(problem)))
}

/// The type that a payload names by the configured pointer, or that it has by a rule.
pub(super) fn type_of(types: &mut TypeCache, payload: &str, budget: &mut CostBudget) -> Result<Slot, PipelineError> {
    let table = types.table().clone();
    let named = match &table.type_pointer {
        Some(pointer) => {
            budget.charge_scan(payload.len())?;
            pointer.lookup(payload).map(|raw| (pointer, raw))
        }
        None => None,
    };
    Ok(match named {
        Some((pointer, raw)) => type_at(types, pointer, raw)?,
        None => types.find(table.choice.type_of(payload, budget)?.map_or(DEFAULT_TYPE, TypeName::as_str))?,
    })
}

/// The type that a payload names at the configured pointer.
fn type_at(types: &mut TypeCache, pointer: &JsonPointer, raw: &str) -> Result<Slot, Problem> {
    let not_text =
        || Problem::new(ErrorCode::UnknownType, "the value is not a string, so it is not a type: send a string");
    let result = match read_string(raw) {
        Some(name) => types.find(&name),
        None => types.take_unknown(not_text()),
    };
    result.map_err(|problem| problem.with_pointer(pointer.as_str()))
}
