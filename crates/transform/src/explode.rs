//! One event becomes several: one for each element of an array.

use std::sync::Arc;

use limits::{EXPLODE_MAX, TRANSFORM_BYTES_MAX};

use super::document_run::{Exploded, Failure, Run, StepOutcome, failure};
use json::JsonPointer;
use json::{parts, text};

/// The array, and where its elements go.
#[derive(Clone, Debug)]
pub(super) struct Explode {
    pub(super) at: JsonPointer,
    pub(super) to: JsonPointer,
}

impl Run<'_, '_> {
    /// Each event is a copy with one element instead of the array.
    pub(super) fn explode(&mut self, explode: &Explode) -> Result<StepOutcome, Failure> {
        let Explode { at, to } = explode;
        let Some(json) = self.value(at)? else { return Ok(StepOutcome::GoesOn) };
        if !json.starts_with('[') {
            return Err(Failure::at(at, format!("the value is {}, but should be an array", text::kind(json))));
        }
        if parts::elements(json).nth(EXPLODE_MAX).is_some() {
            return Err(Failure::at(
                at,
                format!("the array has more than {EXPLODE_MAX} elements: send it in smaller parts"),
            ));
        }
        let array: Arc<str> = json.into();
        self.budget.spend(array.len()).map_err(|detail| Failure::at(at, detail))?;
        if at != to {
            self.tree.remove(at);
        }
        let (mut events, mut bytes) = (Vec::new(), 0);
        let places: Vec<_> = parts::element_places(&array).collect();
        for place in &places {
            self.tree.put(to, &array[place.clone()]).map_err(|error| failure(to, &error))?;
            let mut event = String::new();
            self.tree.write_document(&mut event);
            bytes += event.len();
            let passed = self.tree.take_passed();
            let spent = self.budget.spend(passed).and_then(|()| self.budget.spend_copy(event.len()));
            spent.map_err(|detail| Failure::at(at, detail))?;
            if bytes > TRANSFORM_BYTES_MAX {
                let detail = format!(
                    "the resulting events have more than {TRANSFORM_BYTES_MAX} bytes together: send the event in smaller parts"
                );
                return Err(Failure::at(at, detail));
            }
            events.push(event);
        }
        Ok(StepOutcome::Becomes(Exploded { array, places, events }))
    }
}
