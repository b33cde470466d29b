//! Whether two schemas say the same in the same words.

use schema::CompiledSchema;
use schema::{
    Applicator, ArrayRules, ContainsRule, DependentNeeds, DependentRule, ObjectRules, Subschema, SubschemaId,
};

type One<'s, T> = (&'s CompiledSchema, T);

/// Whether two lists of rules say the same, in the same order.
pub(super) fn sets(left: One<'_, &Vec<&Subschema>>, right: One<'_, &Vec<&Subschema>>) -> bool {
    let mut same = Same { left: left.0, right: right.0, open: Vec::new() };
    left.1.len() == right.1.len() && left.1.iter().zip(right.1).all(|(left, right)| same.rules(left, right))
}

pub(super) fn ids(left: One<'_, SubschemaId>, right: One<'_, SubschemaId>) -> bool {
    Same { left: left.0, right: right.0, open: Vec::new() }.id(left.1, right.1)
}

pub(super) fn applied(left: One<'_, &Applicator>, right: One<'_, &Applicator>) -> bool {
    Same { left: left.0, right: right.0, open: Vec::new() }.applied(left.1, right.1)
}

struct Same<'s> {
    left: &'s CompiledSchema,
    right: &'s CompiledSchema,
    /// Those that are the same unless something else is found.
    open: Vec<(SubschemaId, SubschemaId)>,
}

/// Pairs of schemas that are looked at: more are taken for different.
const PAIRS_MAX: usize = 2_000;

impl Same<'_> {
    fn id(&mut self, left: SubschemaId, right: SubschemaId) -> bool {
        if self.open.contains(&(left, right)) {
            return true;
        }
        if self.open.len() >= PAIRS_MAX {
            return false;
        }
        self.open.push((left, right));
        let (left, right) = (&self.left[left], &self.right[right]);
        self.rules(left, right)
    }

    fn list(&mut self, left: &[SubschemaId], right: &[SubschemaId]) -> bool {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| self.id(*left, *right))
    }

    fn maybe(&mut self, left: Option<SubschemaId>, right: Option<SubschemaId>) -> bool {
        match (left, right) {
            (Some(left), Some(right)) => self.id(left, right),
            (None, None) => true,
            _ => false,
        }
    }

    fn rules(&mut self, left: &Subschema, right: &Subschema) -> bool {
        left.is_false == right.is_false
            && left.allowed == right.allowed
            && scalars(left) == scalars(right)
            && self.arrays(left.array.as_deref(), right.array.as_deref())
            && self.objects(left.object.as_deref(), right.object.as_deref())
            && left.applied.len() == right.applied.len()
            && left.applied.iter().zip(&right.applied).all(|(left, right)| self.applied(left, right))
            && self.maybe(left.unevaluated_items, right.unevaluated_items)
            && self.maybe(left.unevaluated_properties, right.unevaluated_properties)
    }

    fn applied(&mut self, left: &Applicator, right: &Applicator) -> bool {
        match (left, right) {
            (Applicator::Ref(left), Applicator::Ref(right)) | (Applicator::Not(left), Applicator::Not(right)) => {
                self.id(*left, *right)
            }
            (Applicator::All(left), Applicator::All(right))
            | (Applicator::Any(left), Applicator::Any(right))
            | (Applicator::One(left), Applicator::One(right)) => self.list(left, right),
            (
                Applicator::If { condition, then, otherwise },
                Applicator::If { condition: other, then: other_then, otherwise: other_otherwise },
            ) => {
                self.id(*condition, *other)
                    && self.maybe(*then, *other_then)
                    && self.maybe(*otherwise, *other_otherwise)
            }
            (Applicator::DynamicRef(left), Applicator::DynamicRef(right)) => {
                self.id(left.otherwise, right.otherwise)
                    && left.candidates.len() == right.candidates.len()
                    && left
                        .candidates
                        .iter()
                        .zip(&right.candidates)
                        .all(|((_, left), (_, right))| self.id(*left, *right))
            }
            _ => false,
        }
    }

    fn arrays(&mut self, left: Option<&ArrayRules>, right: Option<&ArrayRules>) -> bool {
        let (Some(left), Some(right)) = (left, right) else { return left.is_none() && right.is_none() };
        left.count == right.count
            && left.unique == right.unique
            && self.list(&left.prefix, &right.prefix)
            && self.maybe(left.rest, right.rest)
            && match (&left.contains, &right.contains) {
                (None, None) => true,
                (
                    Some(ContainsRule { rules: left, count, .. }),
                    Some(ContainsRule { rules: right, count: other, .. }),
                ) => count == other && self.id(*left, *right),
                _ => false,
            }
    }

    fn objects(&mut self, left: Option<&ObjectRules>, right: Option<&ObjectRules>) -> bool {
        let (Some(left), Some(right)) = (left, right) else { return left.is_none() && right.is_none() };
        let members = |object: &ObjectRules| -> Vec<_> {
            object.members.iter().map(|member| (member.name.clone(), member.is_required)).collect()
        };
        let rules = |object: &ObjectRules| object.members.iter().map(|member| member.rules).collect::<Vec<_>>();
        let patterns =
            |object: &ObjectRules| object.patterns.iter().map(|(pattern, _)| pattern.text.clone()).collect::<Vec<_>>();
        let of_patterns = |object: &ObjectRules| object.patterns.iter().map(|(_, id)| *id).collect::<Vec<_>>();
        left.count == right.count
            && members(left) == members(right)
            && rules(left).into_iter().zip(rules(right)).all(|(left, right)| self.maybe(left, right))
            && patterns(left) == patterns(right)
            && self.list(&of_patterns(left), &of_patterns(right))
            && self.maybe(left.additional, right.additional)
            && self.maybe(left.names, right.names)
            && left.dependents.len() == right.dependents.len()
            && left.dependents.iter().zip(&right.dependents).all(|(left, right)| self.dependents(left, right))
    }

    fn dependents(&mut self, left: &DependentRule, right: &DependentRule) -> bool {
        left.member == right.member
            && match (&left.needs, &right.needs) {
                (DependentNeeds::Members(left), DependentNeeds::Members(right)) => left == right,
                (DependentNeeds::Subschema(left), DependentNeeds::Subschema(right)) => self.id(*left, *right),
                _ => false,
            }
    }
}

/// What is said of values, numbers and strings, as text.
fn scalars(rules: &Subschema) -> String {
    let values = rules
        .values
        .as_ref()
        .map(|values| (&values.texts, values.others.iter().map(|other| other.text()).collect::<Vec<_>>()));
    let number = rules.number.as_ref().map(|number| {
        let bounds: Vec<_> = number.bounds.iter().map(|bound| (bound.side, &bound.limit.text)).collect();
        (bounds, number.multiple_of.as_ref().map(|divisor| &divisor.text))
    });
    let text =
        rules.text.as_ref().map(|text| (text.length, text.pattern.as_ref().map(|pattern| &pattern.text), text.format));
    format!("{values:?} {number:?} {text:?}")
}
