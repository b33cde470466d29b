//! What a schema never accepts: members of closed objects, forbidden elements, and parts of values that have none.

use std::borrow::Cow;
use std::collections::BTreeSet;

use json::ValueKind;
use json::pointer::PointerStep;
use schema::CompiledSchema;
use schema::{AllowedTypes, Applicator, ArrayRules, Subschema, SubschemaId};

use crate::lookup::{member_rules, together};

/// Why there is no value at the end of some steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The number of steps that have a value: the next one doesn't.
    pub(super) at: usize,
    pub(super) why: Why,
    /// Names that are possible instead of the step.
    pub(super) known: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It was removed.
    Gone,
    /// The value has no such part.
    Closed,
    /// The value has no parts: a description of it.
    Kind(String),
}

/// The maximum depth of values and alternatives: each level uses stack.
const DEPTH_MAX: usize = 300;

/// Follows rules within a budget. When it is spent, everything counts as possible.
pub(super) struct Look<'s> {
    compiled: &'s CompiledSchema,
    left: usize,
    depth: usize,
}

impl<'s> Look<'s> {
    pub(super) const fn new(compiled: &'s CompiledSchema, left: usize) -> Self {
        Self { compiled, left, depth: 0 }
    }

    pub(super) const fn left(&self) -> usize {
        self.left
    }

    /// Whether the budget is spent: then nothing that was found is certain.
    pub(super) const fn is_spent(&self) -> bool {
        self.left == 0
    }

    fn spend(&mut self, count: usize) -> bool {
        self.left = self.left.saturating_sub(count);
        self.left > 0
    }

    /// Why a value that all of these accept certainly has no value at the end of these steps, if so.
    pub(super) fn fault(&mut self, ids: &[SubschemaId], steps: &[PointerStep], at: usize) -> Option<Fault> {
        self.fault_of(&[], ids, steps, at)
    }

    /// The same for all of `base` and `ids`, if the alternatives of `base` were followed already.
    fn fault_of(
        &mut self,
        base: &[SubschemaId],
        ids: &[SubschemaId],
        steps: &[PointerStep],
        at: usize,
    ) -> Option<Fault> {
        let (step, rest) = steps.split_first()?;
        if self.depth >= DEPTH_MAX {
            self.left = 0;
        }
        if self.is_spent() {
            return None;
        }
        self.depth += 1;
        let all = if base.is_empty() { self.together(ids) } else { self.together(&[base, ids].concat()) };
        let below = (self.members(&all, step), self.elements(&all, step));
        let fault = match below {
            (None, None) => Some(self.fault_at(&all, at)),
            (Some(below), None) | (None, Some(below)) => self.fault_of(&[], &below, rest, at + 1),
            (Some(member), Some(element)) => {
                let fault = self.fault_of(&[], &member, rest, at + 1);
                fault.filter(|_| self.fault_of(&[], &element, rest, at + 1).is_some())
            }
        };
        let fault = fault.or_else(|| self.fault_of_alternatives(&all, ids, steps, at));
        self.depth -= 1;
        fault.filter(|_| !self.is_spent())
    }

    /// One of the alternatives holds: if none of them has such a place, there is none.
    fn fault_of_alternatives(
        &mut self,
        all: &[SubschemaId],
        ids: &[SubschemaId],
        steps: &[PointerStep],
        at: usize,
    ) -> Option<Fault> {
        let compiled = self.compiled;
        let own = self.together(ids);
        let applied = own.iter().flat_map(|id| &compiled[*id].applied);
        for branches in applied.filter_map(alternatives) {
            let mut first = None;
            let mut known = Vec::new();
            let has_none = branches.iter().all(|branch| {
                if !self.spend(1) {
                    return false;
                }
                let Some(fault) = self.fault_of(all, &[*branch], steps, at) else { return false };
                known.extend(fault.known.iter().cloned());
                first.get_or_insert(fault);
                true
            });
            if let Some(fault) = first.filter(|_| has_none) {
                return Some(Fault { known, ..fault });
            }
        }
        None
    }

    /// The rules of the value after a step, if it is known whether the step is a member's name or an index.
    pub(super) fn below(&mut self, ids: &[SubschemaId], step: &PointerStep) -> Option<Vec<SubschemaId>> {
        let all = self.together(ids);
        match (self.members(&all, step), self.elements(&all, step)) {
            (Some(below), None) | (None, Some(below)) => Some(below),
            _ => None,
        }
    }

    pub(super) fn may_be_array(&mut self, ids: &[SubschemaId]) -> bool {
        let all = self.together(ids);
        self.is_spent() || self.takes(&all, ValueKind::Array)
    }

    /// These rules, and those that they always apply.
    fn together(&mut self, ids: &[SubschemaId]) -> Vec<SubschemaId> {
        // Usually it is a single one.
        if let [id] = ids
            && self.compiled[*id].applied.is_empty()
        {
            return if self.spend(1) { vec![*id] } else { Vec::new() };
        }
        together(self.compiled, ids, || self.spend(1))
    }

    fn takes(&mut self, all: &[SubschemaId], kind: ValueKind) -> bool {
        let first = if kind == ValueKind::Object { '{' } else { '[' };
        rules(self.compiled, all).all(|rules| {
            let listed = rules.values.as_ref().map(|values| &values.others);
            let is_listed = listed.is_none_or(|others| {
                self.spend(others.len());
                others.iter().any(|value| value.text().starts_with(first))
            });
            rules.allowed.takes(kind) && is_listed
        })
    }

    fn rejects_all(&mut self, ids: &[SubschemaId]) -> bool {
        let all = self.together(ids);
        rules(self.compiled, &all).any(|rules| rules.is_false)
    }

    /// The rules of the member with a name; `None` if there is never one.
    fn members(&mut self, all: &[SubschemaId], step: &PointerStep) -> Option<Vec<SubschemaId>> {
        if !self.takes(all, ValueKind::Object) {
            return None;
        }
        let mut said = Vec::new();
        for rules in rules(self.compiled, all) {
            if let Some(object) = &rules.object {
                if object.count.max == 0 {
                    return None;
                }
                self.spend(object.patterns.len());
                said.extend(member_rules(object, &step.name));
            }
            if let Some(id) = rules.unevaluated_properties
                && !self.may_evaluate(rules, &|rules| evaluates_member(rules, &step.name))
            {
                said.push(id);
            }
        }
        (!self.rejects_all(&said)).then_some(said)
    }

    /// The rules of the element; `None` if there is never one.
    fn elements(&mut self, all: &[SubschemaId], step: &PointerStep) -> Option<Vec<SubschemaId>> {
        let index = step.index.filter(|_| self.takes(all, ValueKind::Array))?;
        let mut said = Vec::new();
        for rules in rules(self.compiled, all) {
            if let Some(array) = &rules.array {
                if array.count.max <= index {
                    return None;
                }
                said.extend(array.prefix.get(index).copied().or(array.rest));
            }
            if let Some(id) = rules.unevaluated_items
                && !self.may_evaluate(rules, &|rules| evaluates_element(rules, index))
            {
                said.push(id);
            }
        }
        (!self.rejects_all(&said)).then_some(said)
    }

    /// Whether any rules that may hold for the same value evaluate a part of it.
    fn may_evaluate(&mut self, rules: &'s Subschema, evaluates: &dyn Fn(&Subschema) -> bool) -> bool {
        if evaluates(rules) {
            return true;
        }
        let (mut met, mut next) = (BTreeSet::new(), vec![rules]);
        while let Some(rules) = next.pop() {
            let patterns = rules.object.as_ref().map_or(0, |object| object.patterns.len());
            let Some(following) = in_place(rules).filter(|_| self.spend(1 + patterns)) else { return true };
            for id in following.into_iter().filter(|id| met.insert(*id)) {
                let rules = &self.compiled[id];
                let sees_to_all = rules.unevaluated_properties.is_some() || rules.unevaluated_items.is_some();
                if sees_to_all || evaluates(rules) {
                    return true;
                }
                next.push(rules);
            }
        }
        false
    }

    fn fault_at(&mut self, all: &[SubschemaId], at: usize) -> Fault {
        let has_parts = self.takes(all, ValueKind::Object) || self.takes(all, ValueKind::Array);
        if !has_parts {
            return Fault { at, why: Why::Kind(self.kinds(all)), known: Vec::new() };
        }
        let objects = || rules(self.compiled, all).filter_map(|rules| rules.object.as_deref());
        let named: Vec<(String, Vec<SubschemaId>)> = objects()
            .flat_map(|object| &object.members)
            .filter_map(|member| Some((member.name.to_string(), vec![member.rules?])))
            .collect();
        let known = named.into_iter().filter(|(_, ids)| !self.rejects_all(ids)).map(|(name, _)| name);
        Fault { at, why: Why::Closed, known: known.collect() }
    }

    /// The description of a value that has no parts.
    fn kinds(&self, all: &[SubschemaId]) -> String {
        if rules(self.compiled, all).any(|rules| rules.values.is_some()) {
            return "one of a few values".to_owned();
        }
        let all_take =
            |takes: &dyn Fn(AllowedTypes) -> bool| rules(self.compiled, all).all(|rules| takes(rules.allowed));
        let takes = |kind: ValueKind| all_take(&|allowed| allowed.takes(kind));
        let takes_integers = all_take(&|allowed| allowed.takes(ValueKind::Number) || allowed.takes_integers());
        let names = [
            (takes(ValueKind::Null), "null"),
            (takes(ValueKind::Boolean), "a boolean"),
            (takes(ValueKind::Number), "a number"),
            (takes_integers && !takes(ValueKind::Number), "an integer"),
            (takes(ValueKind::Text), "a string"),
        ];
        let names: Vec<_> = names.into_iter().filter(|(is_one, _)| *is_one).map(|(_, name)| name).collect();
        if names.is_empty() { "never valid".to_owned() } else { names.join(" or ") }
    }
}

fn rules<'s>(compiled: &'s CompiledSchema, all: &[SubschemaId]) -> impl Iterator<Item = &'s Subschema> {
    all.iter().map(|id| &compiled[*id])
}

/// Rules of which one holds.
fn alternatives(applied: &Applicator) -> Option<Cow<'_, [SubschemaId]>> {
    match applied {
        Applicator::Any(branches) | Applicator::One(branches) => Some(branches.into()),
        Applicator::If { then: Some(then), otherwise: Some(otherwise), .. } => Some(vec![*then, *otherwise].into()),
        _ => None,
    }
}

fn evaluates_member(rules: &Subschema, name: &str) -> bool {
    rules.object.as_deref().is_some_and(|object| !member_rules(object, name).is_empty())
}

fn evaluates_element(rules: &Subschema, index: usize) -> bool {
    rules.array.as_deref().is_some_and(|array: &ArrayRules| {
        let contains = array.contains.as_ref().is_some_and(|contains| contains.marks);
        index < array.prefix.len() || array.rest.is_some() || contains
    })
}

/// The rules that may hold for the same value; `None` if that is known only during a check.
fn in_place(rules: &Subschema) -> Option<Vec<SubschemaId>> {
    let is_dynamic = |applied: &Applicator| matches!(applied, Applicator::DynamicRef(_));
    // What `not` evaluates doesn't count.
    let counts = |applied: &Applicator| !matches!(applied, Applicator::Not(_));
    (!rules.applied.iter().any(is_dynamic)).then(|| rules.in_place(counts))
}
