//! Whether two schemas say the same in the same words.

use super::compile::Compiled;
use super::tree::{Applied, ArrayRules, Contains, Dependent, Id, Needs, ObjectRules, Rules};

type One<'s, T> = (&'s Compiled, T);

/// Whether two lists of rules say the same, in the same order.
pub(super) fn sets(left: One<'_, &Vec<&Rules>>, right: One<'_, &Vec<&Rules>>) -> bool {
    let mut same = Same { left: left.0, right: right.0, open: Vec::new() };
    left.1.len() == right.1.len() && left.1.iter().zip(right.1).all(|(left, right)| same.rules(left, right))
}

pub(super) fn ids(left: One<'_, Id>, right: One<'_, Id>) -> bool {
    Same { left: left.0, right: right.0, open: Vec::new() }.id(left.1, right.1)
}

pub(super) fn applied(left: One<'_, &Applied>, right: One<'_, &Applied>) -> bool {
    Same { left: left.0, right: right.0, open: Vec::new() }.applied(left.1, right.1)
}

struct Same<'s> {
    left: &'s Compiled,
    right: &'s Compiled,
    /// Those that are the same unless something else is found.
    open: Vec<(Id, Id)>,
}

/// Pairs of schemas that are looked at: more are taken for different.
const PAIRS_MAX: usize = 2_000;

impl Same<'_> {
    fn id(&mut self, left: Id, right: Id) -> bool {
        if self.open.contains(&(left, right)) {
            return true;
        }
        if self.open.len() >= PAIRS_MAX {
            return false;
        }
        self.open.push((left, right));
        let (left, right) = (&self.left.rules[left.0], &self.right.rules[right.0]);
        self.rules(left, right)
    }

    fn list(&mut self, left: &[Id], right: &[Id]) -> bool {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| self.id(*left, *right))
    }

    fn maybe(&mut self, left: Option<Id>, right: Option<Id>) -> bool {
        match (left, right) {
            (Some(left), Some(right)) => self.id(left, right),
            (None, None) => true,
            _ => false,
        }
    }

    fn rules(&mut self, left: &Rules, right: &Rules) -> bool {
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

    fn applied(&mut self, left: &Applied, right: &Applied) -> bool {
        match (left, right) {
            (Applied::Ref(left), Applied::Ref(right)) | (Applied::Not(left), Applied::Not(right)) => {
                self.id(*left, *right)
            }
            (Applied::All(left), Applied::All(right))
            | (Applied::Any(left), Applied::Any(right))
            | (Applied::One(left), Applied::One(right)) => self.list(left, right),
            (
                Applied::If { condition, then, otherwise },
                Applied::If { condition: other, then: other_then, otherwise: other_otherwise },
            ) => {
                self.id(*condition, *other)
                    && self.maybe(*then, *other_then)
                    && self.maybe(*otherwise, *other_otherwise)
            }
            (Applied::Dynamic(left), Applied::Dynamic(right)) => {
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
                (Some(Contains { rules: left, count, .. }), Some(Contains { rules: right, count: other, .. })) => {
                    count == other && self.id(*left, *right)
                }
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

    fn dependents(&mut self, left: &Dependent, right: &Dependent) -> bool {
        left.member == right.member
            && match (&left.needs, &right.needs) {
                (Needs::Members(left), Needs::Members(right)) => left == right,
                (Needs::Rules(left), Needs::Rules(right)) => self.id(*left, *right),
                _ => false,
            }
    }
}

/// What is said of values, numbers and strings, as text.
fn scalars(rules: &Rules) -> String {
    let values = rules
        .values
        .as_ref()
        .map(|values| (&values.texts, values.others.iter().map(|other| &other.text).collect::<Vec<_>>()));
    let number = rules.number.as_ref().map(|number| {
        let bounds: Vec<_> = number.bounds.iter().map(|bound| (bound.side, &bound.limit.text)).collect();
        (bounds, number.multiple_of.as_ref().map(|divisor| &divisor.text))
    });
    let text =
        rules.text.as_ref().map(|text| (text.length, text.pattern.as_ref().map(|pattern| &pattern.text), text.format));
    format!("{values:?} {number:?} {text:?}")
}
