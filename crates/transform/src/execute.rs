//! Runs the steps on a document.

use limits::{EVENT_BYTES_MAX, EXPLODE_MAX, TRANSFORM_BYTES_MAX};

use super::document_run::{Exploded, Failure, Run, StepOutcome};
use super::outcome::{DerivedEvent, Filtered, Origin, Several, StepError};
use super::step::{OnError, Step};
use super::trace::{Did, Observer};
use json::JsonPointer;
use json::text;

/// The array in which steps with `on_error = "mark"` record their errors.
pub(super) const ERRORS: &str = "/transform_errors";

/// The end of a document.
pub(super) enum End {
    /// It is in the tree.
    Whole,
    Filtered(Filtered),
    /// Its parts have been gathered.
    Exploded,
}

/// Several events while they are gathered.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) several: Several,
    /// The elements that the next event comes from.
    elements: Vec<Origin>,
    count: u32,
    bytes: usize,
}

impl Run<'_, '_> {
    /// Runs these steps on the document in the tree.
    pub(super) fn steps(
        &mut self,
        steps: &[Step],
        gathered: &mut Gathered,
        observer: &mut Observer<'_>,
    ) -> Result<End, StepError> {
        for (place, step) in steps.iter().enumerate() {
            let verdict = match self.step(step) {
                Ok(verdict) => verdict,
                Err(failure) => {
                    self.fail(step, failure, observer)?;
                    continue;
                }
            };
            match verdict {
                None => observer.step(step, || Did::NotMet, self.tree),
                Some(StepOutcome::GoesOn) => observer.step(step, || Did::Done, self.tree),
                Some(StepOutcome::IsFiltered) => {
                    observer.step(step, || Did::Filtered, self.tree);
                    return Ok(End::Filtered(step.filtered()));
                }
                Some(StepOutcome::Becomes(exploded)) => {
                    observer.exploded(step, &exploded.events);
                    if exploded.events.is_empty() {
                        return Ok(End::Filtered(step.filtered()));
                    }
                    return self.parts(step, &steps[place + 1..], &exploded, gathered, observer);
                }
            }
        }
        Ok(End::Whole)
    }

    /// `None` if the step's condition is false.
    fn step(&mut self, step: &Step) -> Result<Option<StepOutcome>, Failure> {
        if self.applies(step)? { self.apply(&step.operation).map(Some) } else { Ok(None) }
    }

    fn fail(&mut self, step: &Step, failure: Failure, observer: &mut Observer<'_>) -> Result<(), StepError> {
        // If the budget is exhausted the event is rejected: otherwise a step that hides something could be bypassed.
        let on_error = if failure.is_final || self.budget.is_exhausted() { OnError::Refuse } else { step.on_error };
        match on_error {
            OnError::Refuse => {
                observer.step(step, || Did::Refused(failure.detail.clone()), self.tree);
                return Err(step.error(failure));
            }
            OnError::Skip => {}
            OnError::Mark => self.mark(step, &failure),
        }
        observer.step(step, || Did::Skipped(failure.detail.clone()), self.tree);
        Ok(())
    }

    /// A payload that is no object, or has another value under that name, can't be marked: it continues without a mark.
    fn mark(&mut self, step: &Step, failure: &Failure) {
        let pointer = failure.pointer.as_deref().map(|pointer| format!("\"pointer\":{},", text::string(pointer)));
        let detail = text::string(&failure.detail);
        let (number, pointer) = (step.number, pointer.unwrap_or_default());
        let mark = format!("{{\"step\":{number},{pointer}\"detail\":{detail}}}");
        let Ok(at) = ERRORS.parse::<JsonPointer>() else { return };
        let Ok(found) = self.tree.get(&at).map(|found| found.map(str::to_owned)) else { return };
        let (at, mark) = match (found, at.member("-")) {
            (Some(array), Ok(next)) if array.starts_with('[') => (next, mark),
            (None, _) => (at, format!("[{mark}]")),
            _ => return,
        };
        let _ = self.tree.put(&at, &mark);
    }

    /// The remaining steps on each of the events that one has become.
    fn parts(
        &mut self,
        step: &Step,
        rest: &[Step],
        Exploded { array, places, events }: &Exploded,
        gathered: &mut Gathered,
        observer: &mut Observer<'_>,
    ) -> Result<End, StepError> {
        for (number, (event, place)) in events.iter().zip(places).enumerate() {
            let (array, first) = (array.clone(), gathered.count);
            gathered.elements.push(Origin { step: step.number, array, place: place.clone(), first });
            let (mark, continued) = (self.windows.mark(), gathered.several.events.len());
            // It is read, and written once more.
            self.budget.spend_copy(2 * event.len()).map_err(|detail| step.error(Failure::new(detail)))?;
            self.tree.read(event);
            observer.enter(number);
            let end = self.steps(rest, gathered, observer);
            observer.leave();
            let end = end?;
            match end {
                End::Whole => {
                    let mut event = String::new();
                    self.tree.write_document(&mut event);
                    gathered.add(event).map_err(|detail| step.error(Failure::new(detail)))?;
                }
                End::Filtered(by) => {
                    self.windows.forget_since(mark);
                    gathered.leave_out(by).map_err(|detail| step.error(Failure::new(detail)))?;
                }
                // If no event of a part continues, its values are forgotten.
                End::Exploded if gathered.several.events.len() == continued => self.windows.forget_since(mark),
                End::Exploded => {}
            }
            gathered.elements.pop();
        }
        Ok(End::Exploded)
    }
}

impl Gathered {
    fn add(&mut self, event: String) -> Result<(), String> {
        check_length(&event)?;
        self.bytes += event.len();
        if self.bytes > TRANSFORM_BYTES_MAX {
            return Err(format!(
                "the resulting events have more than {TRANSFORM_BYTES_MAX} bytes together: send the event in smaller parts"
            ));
        }
        self.several.events.push(DerivedEvent { number: self.count, payload: event, elements: self.elements.clone() });
        self.advance()
    }

    fn leave_out(&mut self, by: Filtered) -> Result<(), String> {
        self.several.filtered.push(by);
        self.advance()
    }

    fn advance(&mut self) -> Result<(), String> {
        self.count += 1;
        if self.count as usize > EXPLODE_MAX {
            return Err(format!("the array would become more than {EXPLODE_MAX} events: send it in smaller parts"));
        }
        Ok(())
    }
}

/// Whether an event is short enough to continue.
pub(super) fn check_length(event: &str) -> Result<(), String> {
    if event.len() <= EVENT_BYTES_MAX {
        return Ok(());
    }
    Err(format!("the transformed event has {} bytes; at most {EVENT_BYTES_MAX} are allowed", event.len()))
}

impl Step {
    pub(super) const fn filtered(&self) -> Filtered {
        Filtered { step: self.number, operation: self.name }
    }

    pub(super) fn error(&self, failure: Failure) -> StepError {
        StepError {
            step: self.number,
            operation: self.name,
            pointer: failure.pointer,
            detail: failure.detail,
            exhausted: false,
        }
    }
}
