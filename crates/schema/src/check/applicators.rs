//! Schemas that apply to the same value.

use super::closest::Closest;
use super::{Check, Checked};
use crate::ids::SubschemaId;
use crate::subschema::{Applicator, DynamicRef, Subschema};

impl<'s> Check<'s, '_> {
    pub(super) fn applied(&mut self, rules: &Subschema, applied: &'s Applicator, at: usize) -> Checked {
        match applied {
            Applicator::Ref(id) => self.apply(*id, at),
            Applicator::DynamicRef(dynamic) => self.apply(self.target(dynamic), at),
            Applicator::All(list) => list.iter().try_for_each(|id| self.apply(*id, at)),
            Applicator::Any(list) => self.any(rules, list, at),
            Applicator::One(list) => self.one(rules, list, at),
            Applicator::Not(id) => self.not(rules, *id, at),
            Applicator::If { condition, then, otherwise } => {
                let next = if self.holds(*condition, at)? { then } else { otherwise };
                next.map_or(Ok(()), |id| self.apply(id, at))
            }
        }
    }

    fn target(&self, dynamic: &DynamicRef) -> SubschemaId {
        let candidate = |resource| dynamic.candidates.iter().find(|(other, _)| other == resource).map(|(_, id)| *id);
        self.scope.iter().find_map(candidate).unwrap_or(dynamic.otherwise)
    }

    fn any(&mut self, rules: &Subschema, list: &[SubschemaId], at: usize) -> Checked {
        let (mut is_any, mut closest) = (false, Closest::default());
        for id in list {
            let (holds, steps) = self.holds_after(*id, at)?;
            is_any |= holds;
            closest.follow(*id, steps);
            if is_any && !self.marking {
                return Ok(());
            }
        }
        if is_any { Ok(()) } else { self.none_holds((rules, "anyOf"), list, &closest, at) }
    }

    fn one(&mut self, rules: &Subschema, list: &[SubschemaId], at: usize) -> Checked {
        let (mut first, mut closest) = (None, Closest::default());
        for (index, id) in list.iter().enumerate() {
            let (holds, steps) = self.holds_after(*id, at)?;
            if !holds {
                closest.follow(*id, steps);
                continue;
            }
            if let Some(first) = first.replace(index) {
                let both =
                    || format!("one of {} schemas to accept it; numbers {first} and {index} both do", list.len());
                return self.fail(rules, "oneOf", at, both);
            }
        }
        if first.is_some() {
            return Ok(());
        }
        self.none_holds((rules, "oneOf"), list, &closest, at)
    }

    fn not(&mut self, rules: &Subschema, id: SubschemaId, at: usize) -> Checked {
        let (first_mark, marking) = (self.marks.len(), self.marking);
        let holds = self.holds(id, at)?;
        self.marks.truncate(first_mark);
        self.marking = marking;
        if holds {
            self.fail(rules, "not", at, || "a value that the schema in `not` rejects".to_owned())
        } else {
            Ok(())
        }
    }
}
