//! Which of several schemas, none of which takes a value, comes closest to it. That none does says little of what to mend.

use super::{Check, Checked, Stop};
use crate::error::Violation;
use crate::ids::SubschemaId;
use crate::subschema::Subschema;

/// So many schemas that want one thing of the value each are told in one line.
const TOLD_MAX: usize = 4;
/// A check that ends after so many steps has hardly gone into the value.
const SHORT: usize = 2;

/// The schemas that were followed on a value and don't take it.
#[derive(Default)]
pub(super) struct Closest {
    /// The steps that all took together.
    steps: usize,
    /// Whether one was followed into the value. Else all were given up at once, as `{"type": "string"}` and `{"type": "null"}` are for a number.
    has_gone_far: bool,
    /// The schema that was followed furthest, and the steps that it took. A schema for something else ends soon, at the member that tells them
    /// apart.
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
    /// Whether rules hold, and how many steps it took to find out. Where they don't, those into other schemas than the closest don't count.
    pub(super) fn holds_after(&mut self, id: SubschemaId, at: usize) -> Checked<(bool, usize)> {
        let (left, aside) = (self.left, self.aside);
        let holds = self.holds(id, at)?;
        let steps = (left - self.left).saturating_sub(self.aside - aside);
        Ok((holds, steps))
    }

    /// No schema of `anyOf` or `oneOf` takes the value. Says so, and lists what the closest one finds.
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
        if list.len() <= TOLD_MAX && !closest.has_gone_far {
            let found: Checked<Vec<_>> = list.iter().map(|id| self.found_by(*id, at)).collect();
            let (found, own) = (found?, self.view.pointer(at));
            if found.iter().all(|found| matches!(&**found, [only] if only.pointer == own)) {
                let expected: Vec<_> = found.into_iter().flatten().map(|only| only.expected).collect();
                return self.fail(rules, keyword, at, || expected.join(", or "));
            }
        }
        let count = list.len();
        let found = closest.furthest.map(|(_, id)| self.found_by(id, at)).transpose()?.unwrap_or_default();
        let plain = found.iter().find(|violation| !has_reason_behind(violation));
        let told = match plain.or(found.last()) {
            None => "none does".to_owned(),
            Some(Violation { pointer, schema_pointer, expected, .. }) => {
                let pointer = if pointer.is_empty() { "its top" } else { pointer };
                format!("the closest wants {expected} at {pointer} ({schema_pointer})")
            }
        };
        self.fail(rules, keyword, at, || format!("one of {count} schemas to take it; {told}"))?;
        self.list_more(found)
    }

    /// What a schema finds wrong with the value.
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

/// Whether what it says has its reason among the violations that are listed behind it.
fn has_reason_behind(violation: &Violation) -> bool {
    matches!(violation.schema_pointer.rsplit('/').next(), Some("anyOf" | "oneOf"))
}
