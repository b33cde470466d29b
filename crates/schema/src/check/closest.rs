//! Finds the closest of several schemas, none of which accepts a value: its violations show what to fix.

use super::{Check, Checked, Stop};
use crate::error::Violation;
use crate::ids::SubschemaId;
use crate::subschema::Subschema;

/// Up to so many schemas that each have one violation, at the value itself, are listed in one line.
const TOGETHER_MAX: usize = 4;
/// A check that ends after so many steps has read almost nothing of the value.
const SHORT: usize = 2;

/// The schemas that were followed on a value and don't accept it.
#[derive(Default)]
pub(super) struct Closest {
    /// The steps of all of them together.
    steps: usize,
    /// Whether one was followed into the value. Otherwise all failed immediately, as `{"type": "string"}` and `{"type": "null"}` do for a number.
    has_gone_far: bool,
    /// The schema that was followed furthest, and its steps. A schema for other values ends soon, at the member that distinguishes them.
    furthest: Option<(usize, SubschemaId)>,
}

impl Closest {
    /// A schema was followed for so many steps.
    pub(super) fn follow(&mut self, id: SubschemaId, steps: usize) {
        self.steps += steps;
        self.has_gone_far |= steps > SHORT;
        if self.furthest.is_none_or(|(most, _)| steps > most) {
            self.furthest = Some((steps, id));
        }
    }
}

impl Check<'_, '_> {
    /// Whether rules hold, and how many steps the check took. If they don't, steps into other schemas than the closest don't count.
    pub(super) fn holds_after(&mut self, id: SubschemaId, at: usize) -> Checked<(bool, usize)> {
        let (left, aside) = (self.left, self.aside);
        let holds = self.holds(id, at)?;
        let steps = (left - self.left).saturating_sub(self.aside - aside);
        Ok((holds, steps))
    }

    /// No schema of `anyOf` or `oneOf` accepts the value. Lists this violation, and those of the closest one.
    pub(super) fn none_holds(
        &mut self,
        (rules, keyword): (&Subschema, &str),
        list: &[SubschemaId],
        closest: &Closest,
        at: usize,
    ) -> Checked {
        let furthest = closest.furthest.map_or(0, |(steps, _)| steps);
        self.aside += closest.steps - furthest;
        if !self.thorough {
            return Err(Stop::Failed);
        }
        if list.len() <= TOGETHER_MAX && !closest.has_gone_far {
            let found: Checked<Vec<_>> = list.iter().map(|id| self.found_by(*id, at)).collect();
            let (found, own) = (found?, self.view.pointer(at));
            if found.iter().all(|found| matches!(&**found, [only] if only.pointer == own)) {
                let expected: Vec<_> = found.into_iter().flatten().map(|only| only.expected).collect();
                return self.fail(rules, keyword, at, || expected.join(", or "));
            }
        }
        let count = list.len();
        let found = closest.furthest.map(|(_, id)| self.found_by(id, at)).transpose()?.unwrap_or_default();
        let plain = found.iter().find(|violation| !is_explained_by_next(violation));
        let closest_error = match plain.or(found.last()) {
            None => "none does".to_owned(),
            Some(Violation { pointer, schema_pointer, expected, .. }) => {
                let pointer = if pointer.is_empty() { "its top" } else { pointer };
                format!("the closest expects {expected} at {pointer} ({schema_pointer})")
            }
        };
        self.fail(rules, keyword, at, || format!("one of {count} schemas to accept it; {closest_error}"))?;
        self.list_more(found)
    }

    /// The violations that a schema finds in the value.
    fn found_by(&mut self, id: SubschemaId, at: usize) -> Checked<Vec<Violation>> {
        let listed = std::mem::take(&mut self.violations);
        let (first_mark, marking) = (self.marks.len(), std::mem::replace(&mut self.marking, false));
        let followed = self.apply(id, at);
        self.marking = marking;
        self.marks.truncate(first_mark);
        let found = std::mem::replace(&mut self.violations, listed);
        match followed {
            Ok(()) | Err(Stop::Failed) => Ok(found),
            Err(stop) => Err(stop),
        }
    }
}

/// Whether the violations that are listed after this one explain it.
fn is_explained_by_next(violation: &Violation) -> bool {
    matches!(violation.schema_pointer.rsplit('/').next(), Some("anyOf" | "oneOf"))
}
