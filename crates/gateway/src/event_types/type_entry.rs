//! A type that is accepted, with its rules and its state.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use event::TypeName;
use eventlog::{Gate, TypeId, Types};
use json::ValueView;
use schema::Schema;

use super::cost::{self, CostBudget, OverBudget};
use super::type_rules::TypeRules;
use crate::error_code::ErrorCode;
use crate::problem::Problem;

/// An accepted type.
#[derive(Clone, Debug)]
pub(crate) struct TypeEntry {
    pub(crate) name: TypeName,
    pub(crate) id: TypeId,
    pub(crate) gate: Gate,
    pub(crate) rules: Arc<TypeRules>,
    pub(crate) state: TypeState,
    /// Worked out when the first event becomes several.
    pub(super) id_steps: OnceLock<Vec<usize>>,
    pub(super) types: Arc<Types>,
}

/// The state of a type in the current configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeState {
    Accepted,
    /// It is no longer accepted.
    Gone,
    /// Its rules are changing.
    Changing,
}

impl TypeEntry {
    /// Whether an event of this type is accepted now.
    ///
    /// # Errors
    /// One of its sinks has reached `max_backlog`, or it is no longer accepted, or its rules are changing.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        match self.state {
            TypeState::Accepted => {}
            TypeState::Gone => return Err(self.unknown_type_problem()),
            TypeState::Changing => return Err(Problem::changing()),
        }
        if !self.gate.is_closed() {
            return Ok(());
        }
        let detail = format!("a sink of type {} has reached max_backlog; retry later", self.name);
        Err(Problem::new(ErrorCode::BacklogFull, detail))
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.state == TypeState::Accepted
    }

    /// Whether a payload of so many bytes would probably block its shard for too long.
    pub(crate) fn is_costly(&self, bytes: usize) -> bool {
        match &self.rules.steps {
            Some(steps) => steps.estimator().is_costly(bytes),
            None => self.reads_payloads() && cost::is_costly_by_size(bytes),
        }
    }

    /// Whether payloads of the type are parsed, its transform apart.
    pub(crate) fn reads_payloads(&self) -> bool {
        self.rules.schema.is_some() || !self.rules.texts.flaws.is_none()
    }

    /// Charges what it costs at least to process so many bytes of the type.
    ///
    /// # Errors
    /// It is more than the budget has left, or probably will be.
    pub(crate) fn charge(&self, bytes: usize, budget: &mut CostBudget) -> Result<(), OverBudget> {
        if budget.is_limited() && self.is_costly(bytes) {
            return Err(OverBudget);
        }
        if self.reads_payloads() { budget.charge_read(bytes) } else { Ok(()) }
    }

    /// Validates a payload by the type's schema, and returns it.
    ///
    /// # Errors
    /// The budget doesn't suffice. Within: the payload is invalid.
    pub(crate) fn validate<'p>(
        &self,
        schema: &Schema,
        payload: ValueView<'p>,
        budget: &mut CostBudget,
    ) -> Result<Result<ValueView<'p>, Problem>, OverBudget> {
        let checked = budget.check(schema, payload)?;
        Ok(checked.map(|()| payload).map_err(|violations| Problem::of_schema(&self.name, violations)))
    }

    /// Whether a payload is accepted whose only fault was this half of a surrogate pair, which was repaired.
    ///
    /// # Errors
    /// The fault, if payloads of the type aren't repaired.
    pub(crate) fn check_repaired(&self, fault: Option<Problem>) -> Result<(), Problem> {
        fault.filter(|_| !self.rules.texts.repair).map_or(Ok(()), Err)
    }

    /// A payload as the stores of the type can take it.
    ///
    /// # Errors
    /// They can't, and it isn't to be repaired.
    pub(crate) fn storable<'p>(&self, payload: &'p str) -> Result<Cow<'p, str>, Problem> {
        self.rules.texts.storable(&self.name, payload)
    }

    /// The `explode` steps whose elements hold the ids of the events.
    pub(crate) fn steps_with_ids(&self) -> &[usize] {
        self.id_steps.get_or_init(|| {
            let of_steps = self.rules.id.pointer().zip(self.rules.steps.as_ref());
            of_steps.map(|(at, steps)| steps.transform().elements_with(at)).unwrap_or_default()
        })
    }

    /// The time of an event. One that can't be read is counted, and is none.
    pub(crate) fn count_time(&self, time: Result<Option<i64>, String>) -> Option<i64> {
        time.unwrap_or_else(|reason| {
            self.types.unread_times().add(&self.name, &reason);
            None
        })
    }

    /// The problem of a type that was accepted when the request began.
    pub(crate) fn unknown_type_problem(&self) -> Problem {
        let detail =
            format!("the configuration was reloaded and no longer has [types.{}]: use another type", self.name);
        Problem::new(ErrorCode::UnknownType, detail)
    }
}
