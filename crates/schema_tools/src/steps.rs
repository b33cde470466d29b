//! Steps of a transform that read values which can't exist: by the schema, or because an earlier step removes them.

use json::JsonPointer;
use transform::{PlaceTracker, StepDiagnostic, StepLocation, Transform};

use super::unreachable::Reachability;

/// The steps that read pointers which no payload can have. Afterwards `reach` describes the stored events.
#[must_use]
pub fn unreachable_steps(transform: &Transform, reach: &mut Reachability<'_>) -> Vec<StepDiagnostic> {
    let mut check = Check { reach, found: Vec::new() };
    transform.track(&mut check);
    check.found
}

struct Check<'c, 's> {
    reach: &'c mut Reachability<'s>,
    found: Vec<StepDiagnostic>,
}

impl PlaceTracker for Check<'_, '_> {
    fn read(&mut self, step: usize, at: StepLocation, place: &JsonPointer, in_expression: bool) {
        if let Err(unreachable) = self.reach.find(place) {
            let pointer = || unreachable.nearest.as_ref().map(ToString::to_string);
            let nearest = if in_expression { unreachable.nearest_in_expression() } else { pointer() };
            let help = nearest.map(|nearest| format!("did you mean `{nearest}`?"));
            self.found.push(StepDiagnostic { help, ..StepDiagnostic::new(step, at, unreachable.why) });
        }
    }

    fn open(&mut self, place: &JsonPointer) {
        self.reach.open(place);
    }

    fn remove(&mut self, place: &JsonPointer) {
        self.reach.remove(place);
    }

    fn may_go(&mut self, place: &JsonPointer) {
        self.reach.may_go(place);
    }

    fn copy(&mut self, from: &JsonPointer, to: &JsonPointer) {
        self.reach.copy(from, to);
    }

    fn keep(&mut self, places: &[JsonPointer]) {
        self.reach.keep(places);
    }
}
