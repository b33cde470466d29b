//! Which of several schemas, none of which takes a value, comes closest to it. That none does says little of what to mend.

use super::{Check, Checked, Stop};
use crate::error::Violation;
use crate::ids::SubschemaId;
use crate::subschema::Subschema;

/// Steps that may be taken for it on one document: some 2 ms.
pub(super) const STEPS_MAX: usize = 100_000;
/// So many schemas that want one thing of the value each are told in one line.
const TOLD_MAX: usize = 4;

/// What a schema finds wrong with the value.
struct Candidate {
    violations: Vec<Violation>,
    /// How many of them are about the value itself. A schema for something else wants another type, or other members.
    own: usize,
}

impl Check<'_, '_> {
    /// No schema of `anyOf` or `oneOf` takes the value. Says so, and lists what the closest one finds.
    pub(super) fn none_holds(&mut self, rules: &Subschema, keyword: &str, list: &[SubschemaId], at: usize) -> Checked {
        if !self.thorough {
            return Err(Stop::Failed);
        }
        let candidates = self.candidates(list, at);
        let is_simple = |candidate: &Candidate| candidate.own == 1 && candidate.violations.len() == 1;
        if candidates.len() == list.len() && list.len() <= TOLD_MAX && candidates.iter().all(is_simple) {
            let expected = candidates.into_iter().flat_map(|candidate| candidate.violations);
            let expected: Vec<String> = expected.map(|violation| violation.expected).collect();
            return self.fail(rules, keyword, at, || expected.join(", or "));
        }
        let count = list.len();
        let violations = candidates.into_iter().min_by_key(|candidate| (candidate.own, candidate.violations.len()));
        let violations = violations.map(|closest| closest.violations).unwrap_or_default();
        let own = self.view.pointer(at);
        let told = match violations.first() {
            None => "none does".to_owned(),
            Some(Violation { pointer, schema_pointer, expected, .. }) if *pointer == own => {
                format!("the closest wants {expected} ({schema_pointer})")
            }
            Some(Violation { pointer, schema_pointer, expected, .. }) => {
                format!("the closest wants {expected} at {pointer} ({schema_pointer})")
            }
        };
        self.fail(rules, keyword, at, || format!("one of {count} schemas to take it; {told}"))?;
        self.list_more(violations)
    }

    /// What each of the schemas finds wrong, as far as the steps suffice.
    fn candidates(&mut self, list: &[SubschemaId], at: usize) -> Vec<Candidate> {
        let (left, for_closest) = (self.left, self.left_for_closest);
        let most = left.min(for_closest);
        self.left = most;
        let listed = std::mem::take(&mut self.violations);
        let (first_mark, marking) = (self.marks.len(), std::mem::replace(&mut self.marking, false));
        let pointer = self.view.pointer(at);
        let mut candidates = Vec::new();
        for id in list {
            let result = self.apply(*id, at);
            let violations = std::mem::take(&mut self.violations);
            if matches!(result, Err(Stop::TooManySteps | Stop::TooDeep)) {
                break;
            }
            let own = violations.iter().filter(|violation| violation.pointer == pointer).count();
            candidates.push(Candidate { violations, own });
        }
        (self.violations, self.marking) = (listed, marking);
        self.marks.truncate(first_mark);
        let taken = most - self.left;
        (self.left, self.left_for_closest) = (left - taken, for_closest - taken);
        candidates
    }
}
