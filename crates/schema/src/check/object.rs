//! Objects.

use super::scalar::BYTES_PER_STEP;
use super::{Check, Checked};
use crate::subschema::{DependentNeeds, DependentRule, ObjectRules, Subschema};

/// Which of the members that rules name are there.
struct Seen {
    first: u128,
    /// Those beyond the first 128.
    others: Vec<bool>,
}

impl Seen {
    fn new(names: usize) -> Self {
        Self { first: 0, others: vec![false; names.saturating_sub(128)] }
    }

    fn add(&mut self, member: usize) {
        match member.checked_sub(128) {
            None => self.first |= 1 << member,
            Some(beyond) => self.others[beyond] = true,
        }
    }

    fn has(&self, member: usize) -> bool {
        match member.checked_sub(128) {
            None => self.first & (1 << member) != 0,
            Some(beyond) => self.others[beyond],
        }
    }
}

impl<'s> Check<'s, '_> {
    pub(super) fn object(&mut self, rules: &'s Subschema, object: &'s ObjectRules, at: usize) -> Checked {
        let mut seen = Seen::new(object.members.len());
        let mut count = 0;
        for (name_at, value) in self.view.members(at) {
            count += 1;
            self.member(object, &mut seen, name_at, value)?;
        }
        self.count(rules, object.count, count, at, ("minProperties", "maxProperties", "members"))?;
        if object.required > 0 {
            self.required(rules, object, &seen, at)?;
        }
        object.dependents.iter().try_for_each(|dependent| self.dependent(rules, object, dependent, &seen, at))
    }

    fn member(&mut self, object: &'s ObjectRules, seen: &mut Seen, name_at: usize, value: usize) -> Checked {
        let name = self.view.text(name_at);
        let known = object.members.find(&name);
        let own = known.and_then(|member| object.members[member].rules);
        if let Some(member) = known {
            seen.add(member);
        }
        let mut is_evaluated = own.is_some();
        if let Some(id) = own {
            self.descend(id, value)?;
        }
        for (pattern, id) in &object.patterns {
            self.spend(pattern.steps(name.len()))?;
            if pattern.is_in(&name) {
                is_evaluated = true;
                self.descend(*id, value)?;
            }
        }
        if let Some(id) = object.additional.filter(|_| !is_evaluated) {
            is_evaluated = true;
            self.additional(id, name_at, value)?;
        }
        if is_evaluated {
            self.mark(value);
        }
        match object.names {
            Some(id) => self.descend(id, name_at),
            None => self.spend(1 + name.len() / BYTES_PER_STEP),
        }
    }

    /// A member that isn't named. If none may be, the violation names the member.
    fn additional(&mut self, id: crate::ids::SubschemaId, name_at: usize, value: usize) -> Checked {
        let rules = &self.compiled[id];
        if !rules.is_false {
            return self.descend(id, value);
        }
        let name = self.view.raw(name_at);
        self.fail(rules, "", value, || format!("no member {name}"))
    }

    fn required(&mut self, rules: &Subschema, object: &ObjectRules, seen: &Seen, at: usize) -> Checked {
        for (number, member) in object.members.iter().enumerate() {
            if member.is_required && !seen.has(number) {
                self.fail(rules, "required", at, || format!("a member \"{}\"", member.name))?;
            }
        }
        self.spend(object.members.len() / BYTES_PER_STEP)
    }

    fn dependent(
        &mut self,
        rules: &Subschema,
        object: &ObjectRules,
        dependent: &DependentRule,
        seen: &Seen,
        at: usize,
    ) -> Checked {
        if !seen.has(dependent.member) {
            return Ok(());
        }
        let needed = match &dependent.needs {
            DependentNeeds::Subschema(id) => return self.apply(*id, at),
            DependentNeeds::Members(needed) => needed,
        };
        self.spend(needed.len())?;
        for missing in needed.iter().filter(|member| !seen.has(**member)) {
            let (name, because) = (&object.members[*missing].name, &object.members[dependent.member].name);
            self.fail(rules, dependent.keyword, at, || format!("a member \"{name}\", since there is \"{because}\""))?;
        }
        Ok(())
    }
}
