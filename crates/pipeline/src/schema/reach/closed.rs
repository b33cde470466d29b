//! What a schema never takes: members of objects that it closes, elements that it forbids, and parts of what has none.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::compile::Compiled;
use super::super::tree::{Allowed, Applied, ArrayRules, Id, Needs, ObjectRules, Rules};
use crate::pointer::Step;
use crate::values::Kind;

/// Why nothing stands at the end of some steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// How many of the steps lead to a value: the next one doesn't.
    pub(super) at: usize,
    pub(super) why: Why,
    /// Names that can stand in the place of the step.
    pub(super) known: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It was taken away.
    Gone,
    /// The value has no such part.
    Closed,
    /// The value has no parts: what it is, in words.
    Kind(String),
}

/// Values and alternatives within each other that are followed: each takes stack.
const DEPTH_MAX: usize = 300;

/// Looks at rules, as long as there is something left to spend. When there isn't, everything counts as possible.
pub(super) struct Look<'s> {
    compiled: &'s Compiled,
    left: usize,
    depth: usize,
}

impl<'s> Look<'s> {
    pub(super) const fn new(compiled: &'s Compiled, left: usize) -> Self {
        Self { compiled, left, depth: 0 }
    }

    pub(super) const fn left(&self) -> usize {
        self.left
    }

    /// Whether it was given up: then nothing that was found is certain.
    pub(super) const fn is_spent(&self) -> bool {
        self.left == 0
    }

    fn spend(&mut self, count: usize) -> bool {
        self.left = self.left.saturating_sub(count);
        self.left > 0
    }

    /// Why a value that all of these take has nothing behind these steps, if that is certain.
    pub(super) fn fault(&mut self, ids: &[Id], steps: &[Step], at: usize) -> Option<Fault> {
        self.fault_of(&[], ids, steps, at)
    }

    /// The same for all of `base` and `ids`, where the alternatives of `base` are looked at already.
    fn fault_of(&mut self, base: &[Id], ids: &[Id], steps: &[Step], at: usize) -> Option<Fault> {
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

    /// One of the alternatives holds: where none of them has such a place, there is none.
    fn fault_of_alternatives(&mut self, all: &[Id], ids: &[Id], steps: &[Step], at: usize) -> Option<Fault> {
        let compiled = self.compiled;
        let own = self.together(ids);
        let applied = own.iter().flat_map(|id| &compiled.rules[id.0].applied);
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

    /// The rules of what stands behind a step, where the value is an object, or an array, and not either.
    pub(super) fn below(&mut self, ids: &[Id], step: &Step) -> Option<Vec<Id>> {
        let all = self.together(ids);
        match (self.members(&all, step), self.elements(&all, step)) {
            (Some(below), None) | (None, Some(below)) => Some(below),
            _ => None,
        }
    }

    pub(super) fn may_be_array(&mut self, ids: &[Id]) -> bool {
        let all = self.together(ids);
        self.is_spent() || self.takes(&all, Kind::Array)
    }

    /// These rules, and those that hold with them whatever the value is.
    fn together(&mut self, ids: &[Id]) -> Vec<Id> {
        // Most often it is one that holds alone.
        if let [id] = ids
            && self.compiled.rules[id.0].applied.is_empty()
        {
            return if self.spend(1) { vec![*id] } else { Vec::new() };
        }
        let (mut all, mut next) = (BTreeSet::new(), ids.to_vec());
        while let Some(id) = next.pop() {
            if !self.spend(1) {
                break;
            }
            if !all.insert(id) {
                continue;
            }
            for applied in &self.compiled.rules[id.0].applied {
                match applied {
                    Applied::Ref(other) => next.push(*other),
                    Applied::All(others) => next.extend(others),
                    _ => {}
                }
            }
        }
        all.into_iter().collect()
    }

    fn takes(&mut self, all: &[Id], kind: Kind) -> bool {
        let first = if kind == Kind::Object { '{' } else { '[' };
        rules(self.compiled, all).all(|rules| {
            let listed = rules.values.as_ref().map(|values| &values.others);
            let is_listed = listed.is_none_or(|others| {
                self.spend(others.len());
                others.iter().any(|value| value.text.starts_with(first))
            });
            rules.allowed.takes(kind) && is_listed
        })
    }

    fn is_never(&mut self, ids: &[Id]) -> bool {
        let all = self.together(ids);
        rules(self.compiled, &all).any(|rules| rules.is_false)
    }

    /// What the member of a name must be; nothing where there is never one.
    fn members(&mut self, all: &[Id], step: &Step) -> Option<Vec<Id>> {
        if !self.takes(all, Kind::Object) {
            return None;
        }
        let mut said = Vec::new();
        for rules in rules(self.compiled, all) {
            if let Some(object) = &rules.object {
                if object.count.max == 0 {
                    return None;
                }
                self.spend(object.patterns.len());
                said.extend(of_member(object, &step.name));
            }
            if let Some(id) = rules.unevaluated_properties
                && !self.may_evaluate(rules, &|rules| evaluates_member(rules, &step.name))
            {
                said.push(id);
            }
        }
        (!self.is_never(&said)).then_some(said)
    }

    /// What the element must be; nothing where there is never one.
    fn elements(&mut self, all: &[Id], step: &Step) -> Option<Vec<Id>> {
        let index = step.index.filter(|_| self.takes(all, Kind::Array))?;
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
        (!self.is_never(&said)).then_some(said)
    }

    /// Whether any rules that may hold for the same value see to a part of it, so that it isn't unevaluated.
    fn may_evaluate(&mut self, rules: &'s Rules, evaluates: &dyn Fn(&Rules) -> bool) -> bool {
        if evaluates(rules) {
            return true;
        }
        let (mut met, mut next) = (BTreeSet::new(), vec![rules]);
        while let Some(rules) = next.pop() {
            let patterns = rules.object.as_ref().map_or(0, |object| object.patterns.len());
            let Some(following) = in_place(rules).filter(|_| self.spend(1 + patterns)) else { return true };
            for id in following.into_iter().filter(|id| met.insert(*id)) {
                let rules = &self.compiled.rules[id.0];
                let sees_to_all = rules.unevaluated_properties.is_some() || rules.unevaluated_items.is_some();
                if sees_to_all || evaluates(rules) {
                    return true;
                }
                next.push(rules);
            }
        }
        false
    }

    fn fault_at(&mut self, all: &[Id], at: usize) -> Fault {
        let has_parts = self.takes(all, Kind::Object) || self.takes(all, Kind::Array);
        if !has_parts {
            return Fault { at, why: Why::Kind(self.kinds(all)), known: Vec::new() };
        }
        let objects = || rules(self.compiled, all).filter_map(|rules| rules.object.as_deref());
        let named: Vec<(String, Vec<Id>)> = objects()
            .flat_map(|object| &object.members)
            .filter_map(|member| Some((member.name.to_string(), vec![member.rules?])))
            .collect();
        let known = named.into_iter().filter(|(_, ids)| !self.is_never(ids)).map(|(name, _)| name);
        Fault { at, why: Why::Closed, known: known.collect() }
    }

    /// What a value is that has no parts, in words.
    fn kinds(&self, all: &[Id]) -> String {
        if rules(self.compiled, all).any(|rules| rules.values.is_some()) {
            return "one of a few values".to_owned();
        }
        let all_take = |takes: &dyn Fn(Allowed) -> bool| rules(self.compiled, all).all(|rules| takes(rules.allowed));
        let takes = |kind: Kind| all_take(&|allowed| allowed.takes(kind));
        let takes_integers = all_take(&|allowed| allowed.takes(Kind::Number) || allowed.takes_integers());
        let names = [
            (takes(Kind::Null), "null"),
            (takes(Kind::Boolean), "a boolean"),
            (takes(Kind::Number), "a number"),
            (takes_integers && !takes(Kind::Number), "an integer"),
            (takes(Kind::Text), "a string"),
        ];
        let names: Vec<_> = names.into_iter().filter(|(is_one, _)| *is_one).map(|(_, name)| name).collect();
        if names.is_empty() { "nothing that has parts".to_owned() } else { names.join(" or ") }
    }
}

fn rules<'s>(compiled: &'s Compiled, all: &[Id]) -> impl Iterator<Item = &'s Rules> {
    all.iter().map(|id| &compiled.rules[id.0])
}

/// Rules of which one holds.
fn alternatives(applied: &Applied) -> Option<Cow<'_, [Id]>> {
    match applied {
        Applied::Any(branches) | Applied::One(branches) => Some(branches.into()),
        Applied::If { then: Some(then), otherwise: Some(otherwise), .. } => Some(vec![*then, *otherwise].into()),
        _ => None,
    }
}

/// All that is said of the member of a name.
fn of_member(object: &ObjectRules, name: &str) -> Vec<Id> {
    let own = object.members.find(name).and_then(|member| object.members[member].rules);
    let patterns = object.patterns.iter().filter(|(pattern, _)| pattern.is_in(name)).map(|(_, id)| *id);
    let said: Vec<Id> = own.into_iter().chain(patterns).collect();
    if said.is_empty() { object.additional.into_iter().collect() } else { said }
}

fn evaluates_member(rules: &Rules, name: &str) -> bool {
    rules.object.as_deref().is_some_and(|object| !of_member(object, name).is_empty())
}

fn evaluates_element(rules: &Rules, index: usize) -> bool {
    rules.array.as_deref().is_some_and(|array: &ArrayRules| {
        let contains = array.contains.as_ref().is_some_and(|contains| contains.marks);
        index < array.prefix.len() || array.rest.is_some() || contains
    })
}

/// The rules that may hold for the same value; nothing where that is known only on the way.
fn in_place(rules: &Rules) -> Option<Vec<Id>> {
    let mut next = Vec::new();
    for applied in &rules.applied {
        match applied {
            Applied::Ref(id) => next.push(*id),
            Applied::Dynamic(_) => return None,
            Applied::All(list) | Applied::Any(list) | Applied::One(list) => next.extend(list),
            Applied::If { condition, then, otherwise } => {
                next.push(*condition);
                next.extend(then.iter().chain(otherwise));
            }
            // What it evaluates doesn't count.
            Applied::Not(_) => {}
        }
    }
    let dependents = rules.object.iter().flat_map(|object| &object.dependents);
    next.extend(dependents.filter_map(|dependent| match dependent.needs {
        Needs::Rules(id) => Some(id),
        Needs::Members(_) => None,
    }));
    Some(next)
}
