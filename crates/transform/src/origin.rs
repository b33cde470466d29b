//! The origin of a value in events of `explode`: an element of the array, or its surroundings.

use super::Transform;
use super::step::{OnError, Operation, Source, Step};
use json::JsonPointer;

impl Transform {
    /// The steps of `explode` from whose elements the value at the pointer comes, in the events as they leave the steps. The last step
    /// is the first of them.
    #[must_use]
    pub fn elements_with(&self, pointer: &JsonPointer) -> Vec<usize> {
        let (mut places, mut found) = (vec![pointer.clone()], Vec::new());
        for step in self.steps.iter().rev() {
            if let Operation::Explode(explode) = &step.operation
                && places.iter().any(|place| place.is_within(&explode.to))
            {
                found.push(step.number);
            }
            step.trace_back(&mut places);
        }
        found
    }
}

impl Step {
    /// Replaces the places after the step by the places before it from which their values come.
    fn trace_back(&self, places: &mut Vec<JsonPointer>) {
        // Whether every event that continues passed the step.
        let is_always = self.when.is_none() && self.on_error == OnError::Refuse;
        match &self.operation {
            Operation::Move { at, to } | Operation::Copy { at, to } => {
                replace(places, to, is_always, |place| rebased(place, to, at).into_iter().collect());
            }
            Operation::Rename { at, name } => {
                if let Some(to) = at.parent().and_then(|parent| parent.member(name).ok()) {
                    replace(places, &to, is_always, |place| rebased(place, &to, at).into_iter().collect());
                }
            }
            Operation::Set { at, value, only_missing } => {
                let read = || match value {
                    Source::Computed(expression) => expression.places().into_iter().map(|(_, read)| read).collect(),
                    Source::Json(_) | Source::Fact(_) => Vec::new(),
                };
                replace(places, at, is_always && !only_missing, |_| read());
            }
            Operation::Change { at, to: Some(to), .. } => replace(places, to, false, |_| at.clone()),
            Operation::Extract { at, extract } => {
                extract.groups.iter().for_each(|(_, to)| replace(places, to, false, |_| vec![at.clone()]));
            }
            Operation::Explode(explode) => replace(places, &explode.to, false, |_| vec![explode.at.clone()]),
            Operation::Change { to: None, .. }
            | Operation::Drop(_)
            | Operation::Keep(_)
            | Operation::Filter(_)
            | Operation::Sample(_)
            | Operation::Dedupe { .. } => {}
        }
    }
}

/// Adds the sources of each place within `to`, and removes the place if the step `is_always` done.
fn replace(
    places: &mut Vec<JsonPointer>,
    to: &JsonPointer,
    is_always: bool,
    sources: impl Fn(&JsonPointer) -> Vec<JsonPointer>,
) {
    let (within, mut rest): (Vec<_>, Vec<_>) = places.drain(..).partition(|place| place.is_within(to));
    for place in within {
        let sources = sources(&place);
        let is_kept = !is_always;
        rest.extend(sources.into_iter().chain(is_kept.then_some(place)));
    }
    rest.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    rest.dedup();
    *places = rest;
}

/// The place below `from` that is below `to` here.
fn rebased(place: &JsonPointer, to: &JsonPointer, from: &JsonPointer) -> Option<JsonPointer> {
    let rest = place.steps().get(to.steps().len()..)?;
    rest.iter().try_fold(from.clone(), |at, step| at.member(&step.name).ok())
}

#[cfg(test)]
mod tests {
    use crate::{StepSpec, Tables, Transform};

    #[test]
    fn value_comes_from_an_element_or_its_surroundings() {
        for (steps, pointer, from) in [
            (r#"[{"explode": "/batch", "to": ""}]"#, "/id", &[1][..]),
            (r#"[{"explode": "/items"}]"#, "/items/id", &[1]),
            (r#"[{"explode": "/items"}]"#, "/id", &[]),
            (r#"[{"explode": "/items", "to": "/item"}]"#, "/item/id", &[1]),
            (r#"[{"explode": "/items"}, {"move": "/items", "to": ""}]"#, "/id", &[1]),
            (r#"[{"explode": "/items"}, {"move": "/items/id", "to": "/id"}]"#, "/id", &[1]),
            (r#"[{"explode": "/items", "to": ""}, {"rename": "/uid", "to": "id"}]"#, "/id", &[1]),
            (r#"[{"explode": "/items"}, {"set": "/id", "to": "items.a + '/' + items.b"}]"#, "/id", &[1]),
            (r#"[{"explode": "/items"}, {"set": "/items/id", "to": "order"}]"#, "/items/id", &[]),
            (r#"[{"explode": "/items"}, {"copy": "/order", "to": "/items/id"}]"#, "/items/id", &[]),
            (r#"[{"explode": "/items"}, {"default": "/items/id", "to": "order"}]"#, "/items/id", &[1]),
            (r#"[{"explode": "/items"}, {"hash": "/items/a", "to": "/id"}]"#, "/id", &[1]),
            (r#"[{"explode": "/a"}, {"explode": "/a/b"}]"#, "/a/b/id", &[2, 1]),
            (r#"[{"explode": "/a"}, {"explode": "/a/b"}]"#, "/a/id", &[1]),
            (r#"[{"explode": "/a"}, {"explode": "/b"}]"#, "/id", &[]),
        ] {
            let specs: Vec<StepSpec> = serde_json::from_str(steps).unwrap();
            let transform = Transform::compile(&specs, &Tables::default()).unwrap();
            assert_eq!(transform.elements_with(&pointer.parse().unwrap()), from, "{steps} {pointer}");
        }
    }
}
