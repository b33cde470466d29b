//! A compiled step, and its effect on a document.

use super::change::{Change, ChangeResult};
use super::context::Fact;
use super::dedupe_window::Bounds;
use super::document_run::{Failure, Run, StepOutcome, failure};
use super::explode::Explode;
use super::extract::Extract;
use super::sample::Sample;
use super::tree::{EditError, Tree};
use expression::{EvaluationError, Expression};
use json::JsonPointer;

/// One step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// From 1.
    pub(super) number: usize,
    pub(super) name: &'static str,
    pub(super) when: Option<Expression>,
    /// The places that the condition of a hiding step reads, and whether all within each is read. A name may not occur
    /// twice there.
    pub(super) unambiguous: Vec<(JsonPointer, bool)>,
    pub(super) on_error: OnError,
    pub(super) operation: Operation,
}

/// The handling of an event that a step fails on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OnError {
    /// It is rejected.
    #[default]
    Refuse,
    /// It continues unchanged by the step.
    Skip,
    /// It continues, and says in `/transform_errors` what failed.
    Mark,
}

/// The operation of a step.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Sets a value; `default` only if there is none.
    Set {
        at: JsonPointer,
        value: Source,
        only_missing: bool,
    },
    Rename {
        at: JsonPointer,
        name: String,
    },
    Move {
        at: JsonPointer,
        to: JsonPointer,
    },
    Copy {
        at: JsonPointer,
        to: JsonPointer,
    },
    Drop(Vec<JsonPointer>),
    Keep(Vec<JsonPointer>),
    /// Changes each existing value, in place or to another place.
    Change {
        at: Vec<JsonPointer>,
        to: Option<JsonPointer>,
        change: Change,
    },
    Extract {
        at: JsonPointer,
        extract: Extract,
    },
    Filter(Expression),
    Sample(Sample),
    Dedupe {
        at: Vec<JsonPointer>,
        /// The number of its window.
        window: usize,
        bounds: Bounds,
    },
    Explode(Explode),
}

impl Operation {
    /// Whether it removes a value from its place, or makes it unreadable there.
    pub(super) const fn hides(&self) -> bool {
        match self {
            Self::Drop(_) | Self::Keep(_) | Self::Rename { .. } | Self::Move { .. } => true,
            Self::Change { change, .. } => change.hides(),
            _ => false,
        }
    }

    /// Whether a part of a payload isn't to be stored because of it.
    pub(super) const fn withholds(&self) -> bool {
        self.hides() && !matches!(self, Self::Rename { .. } | Self::Move { .. })
    }

    /// Whether it may drop an event.
    pub(super) const fn may_filter(&self) -> bool {
        matches!(self, Self::Filter(_) | Self::Sample(_) | Self::Dedupe { .. } | Self::Explode(_))
    }
}

/// The source of a value.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Json(String),
    Computed(Expression),
    Fact(Fact),
}

/// The way in which a step reads a value.
type Get = for<'t> fn(&'t mut Tree, &JsonPointer) -> Result<Option<&'t str>, EditError>;

impl Run<'_, '_> {
    /// Whether the step is to be done on this event.
    pub(super) fn applies(&mut self, step: &Step) -> Result<bool, Failure> {
        self.budget.spend_step().map_err(Failure::new)?;
        self.check_names(&step.unambiguous)?;
        step.when.as_ref().map_or(Ok(true), |when| self.holds(when))
    }

    /// Fails if a name occurs twice in the condition's input: another parser may choose another of the members than the
    /// condition does.
    fn check_names(&mut self, places: &[(JsonPointer, bool)]) -> Result<(), Failure> {
        for (place, with_parts) in places {
            let is_ambiguous = self.tree.check_ambiguous(place, *with_parts).map_err(|error| failure(place, &error))?;
            self.spend_search()?;
            if is_ambiguous {
                let detail = "a name occurs twice in the values that this step's condition reads: send each name once";
                return Err(Failure { is_final: true, ..Failure::at(place, detail) });
            }
        }
        Ok(())
    }

    fn holds(&mut self, expression: &Expression) -> Result<bool, Failure> {
        let (document, fields) = self.tree.fields(expression.fields(), expression.names_document())?;
        self.budget.spend(document.len()).map_err(Failure::new)?;
        let work = |steps: &mut usize| expression.holds_with(document, fields, steps);
        let holds = self.budget.evaluate(work, |made| made.as_ref().is_err_and(EvaluationError::is_stopped));
        holds.map_err(|error| Failure::new(error.to_string()))
    }

    /// Runs the step, and spends the cost of finding the parts that it names.
    pub(super) fn apply(&mut self, operation: &Operation) -> Result<StepOutcome, Failure> {
        let verdict = self.operate(operation);
        self.spend_search()?;
        verdict
    }

    fn operate(&mut self, operation: &Operation) -> Result<StepOutcome, Failure> {
        match operation {
            Operation::Set { at, value, only_missing } => self.set(at, value, *only_missing)?,
            Operation::Rename { at, name } => self.tree.rename(at, name).map_err(|error| failure(at, &error))?,
            Operation::Move { at, to } => self.relocate(at, to)?,
            Operation::Copy { at, to } => self.copy(at, to, Tree::get)?,
            Operation::Drop(pointers) => pointers.iter().try_for_each(|at| {
                self.tree.remove(at);
                self.spend_search()
            })?,
            Operation::Keep(pointers) => self.tree.keep(pointers),
            Operation::Change { at, to, change } => self.change(at, to.as_ref(), change)?,
            Operation::Extract { at, extract } => self.extract(at, extract)?,
            Operation::Filter(condition) if self.holds(condition)? => {}
            Operation::Filter(_) => return Ok(StepOutcome::IsFiltered),
            Operation::Sample(sample) => return self.sample(sample),
            Operation::Dedupe { at, window, .. } => return self.dedupe(at, *window),
            Operation::Explode(explode) => return self.explode(explode),
        }
        Ok(StepOutcome::GoesOn)
    }

    fn set(&mut self, at: &JsonPointer, source: &Source, only_missing: bool) -> Result<(), Failure> {
        if only_missing && self.value(at)?.is_some() {
            return Ok(());
        }
        self.made.clear();
        match source {
            Source::Json(json) => self.made.push_str(json),
            Source::Computed(expression) => self.compute(at, expression)?,
            Source::Fact(fact) if fact.write(self.context, self.made).is_some() => {}
            Source::Fact(_) => return Ok(()),
        }
        self.tree.put(at, self.made).map_err(|error| failure(at, &error))
    }

    fn compute(&mut self, at: &JsonPointer, expression: &Expression) -> Result<(), Failure> {
        let (document, fields) = self.tree.fields(expression.fields(), expression.names_document())?;
        self.budget.spend(document.len()).map_err(Failure::new)?;
        let work = |steps: &mut usize| expression.evaluate_with(document, fields, steps);
        let value = self.budget.evaluate(work, |made| made.as_ref().is_err_and(EvaluationError::is_stopped));
        let value = value.map_err(|error| Failure::at(at, error.to_string()))?;
        value.write(self.made).map_err(|error| Failure::at(at, error.to_string()))?;
        self.budget.spend_copy(self.made.len()).map_err(|detail| Failure::at(at, detail))
    }

    fn copy(&mut self, at: &JsonPointer, to: &JsonPointer, get: Get) -> Result<(), Failure> {
        let Some(json) = get(self.tree, at).map_err(|error| failure(at, &error))? else { return Ok(()) };
        self.budget.spend(json.len()).map_err(|detail| Failure::at(at, detail))?;
        self.made.clear();
        self.made.push_str(json);
        self.tree.put(to, self.made).map_err(|error| failure(to, &error))
    }

    /// If the new place is around the old one, the old one is gone when the new one is there.
    fn relocate(&mut self, at: &JsonPointer, to: &JsonPointer) -> Result<(), Failure> {
        self.copy(at, to, Tree::get_sole)?;
        if !at.is_within(to) {
            self.tree.remove(at);
        }
        Ok(())
    }

    /// Changes each value that can be changed, and reports the first that can't.
    fn change(&mut self, pointers: &[JsonPointer], to: Option<&JsonPointer>, change: &Change) -> Result<(), Failure> {
        let mut result = Ok(());
        for at in pointers {
            result = result.and(self.change_one(at, to.unwrap_or(at), change));
            self.spend_search()?;
        }
        result
    }

    fn change_one(&mut self, at: &JsonPointer, to: &JsonPointer, change: &Change) -> Result<(), Failure> {
        let get: Get = if change.hides() { Tree::get_sole } else { Tree::get };
        let found = get(self.tree, at).map_err(|error| failure(at, &error))?;
        let Some(json) = found.filter(|json| *json != "null") else { return Ok(()) };
        let bytes = json.len().saturating_mul(change.weight());
        self.budget.spend(bytes).map_err(|detail| Failure::at(at, detail))?;
        self.made.clear();
        let is_made = change.apply(json, self.made, &mut self.budget).map_err(|detail| Failure::at(at, detail))?;
        match is_made {
            ChangeResult::Value => self.tree.put(to, self.made).map_err(|error| failure(to, &error)),
            ChangeResult::Nothing => Ok(()),
        }
    }
}
