//! Objects.

use std::collections::BTreeSet;

use super::{All, Comparison};
use crate::equivalence;
use crate::lookup::member_rules;
use json::pointer::push_step;
use schema::{DependentNeeds, DependentRule, ObjectRules, SubschemaId};

type Objects<'s> = Vec<&'s ObjectRules>;

impl<'s> Comparison<'s> {
    pub(super) fn objects(&mut self, olds: &All<'s>, news: &All<'s>, place: &str) {
        let rules = |all: &All<'s>| all.iter().filter_map(|rules| rules.object.as_deref()).collect::<Objects<'s>>();
        let (olds, news) = (rules(olds), rules(news));
        let counts = (olds.iter().map(|object| object.count), news.iter().map(|object| object.count));
        self.spans(counts, place, "an object of", "members");
        for name in required(&news).difference(&required(&olds)) {
            self.certain(place, &format!("an object without \"{name}\""));
        }
        let members = olds.iter().chain(&news).flat_map(|object| &object.members);
        let named: BTreeSet<&str> = members.map(|member| &*member.name).collect();
        for name in named {
            let mut below = place.to_owned();
            push_step(&mut below, name);
            self.compare(&member(&olds, name), &member(&news, name), &below);
        }
        self.other_members(&olds, &news, place);
        self.dependents(&olds, &news, place);
        for names in news.iter().filter_map(|object| object.names) {
            let mut before = olds.iter().filter_map(|object| object.names);
            if !before.any(|old| equivalence::ids((self.old, old), (self.new, names))) {
                self.unsure(place, "`propertyNames` is new, or has changed");
            }
        }
    }

    /// Members that no schema names. With patterns of names, only single schemas with the same patterns on both sides can be compared.
    fn other_members(&mut self, olds: &Objects<'s>, news: &Objects<'s>, place: &str) {
        let others = format!("{place}/*");
        if patterns(olds).is_empty() && patterns(news).is_empty() {
            return self.compare(&additional(olds), &additional(news), &others);
        }
        if is_closed(self.old, olds) || (patterns(news).is_empty() && additional(news).is_empty()) {
            return;
        }
        if patterns(olds) != patterns(news) || olds.len() > 1 || news.len() > 1 {
            return self.unsure(&others, "the patterns of names have changed, or occur in several schemas");
        }
        for text in patterns(news) {
            self.compare(&of_pattern(olds, text), &of_pattern(news, text), &others);
        }
        self.compare(&additional(olds), &additional(news), &others);
    }

    fn dependents(&mut self, olds: &Objects<'s>, news: &Objects<'s>, place: &str) {
        for object in news {
            for dependent in &object.dependents {
                let is_in = |old: &&ObjectRules| {
                    old.dependents.iter().any(|other| self.is_same((old, other), (object, dependent)))
                };
                if !olds.iter().any(is_in) {
                    let name = &object.members[dependent.member].name;
                    self.unsure(place, &format!("the requirement for objects with \"{name}\" is new, or has changed"));
                }
            }
        }
    }

    fn is_same(
        &self,
        (old, other): (&ObjectRules, &DependentRule),
        (new, dependent): (&ObjectRules, &DependentRule),
    ) -> bool {
        if old.members[other.member].name != new.members[dependent.member].name {
            return false;
        }
        match (&other.needs, &dependent.needs) {
            (DependentNeeds::Subschema(left), DependentNeeds::Subschema(right)) => {
                equivalence::ids((self.old, *left), (self.new, *right))
            }
            (DependentNeeds::Members(left), DependentNeeds::Members(right)) => {
                let has = |name: &str| left.iter().any(|member| *old.members[*member].name == *name);
                right.iter().all(|member| has(&new.members[*member].name))
            }
            _ => false,
        }
    }
}

fn required<'s>(objects: &Objects<'s>) -> BTreeSet<&'s str> {
    let members = objects.iter().flat_map(|object| &object.members);
    members.filter(|member| member.is_required).map(|member| &*member.name).collect()
}

fn patterns<'s>(objects: &Objects<'s>) -> BTreeSet<&'s str> {
    objects.iter().flat_map(|object| &object.patterns).map(|(pattern, _)| &*pattern.text).collect()
}

fn of_pattern(objects: &Objects<'_>, text: &str) -> Vec<SubschemaId> {
    let all = objects.iter().flat_map(|object| &object.patterns);
    all.filter(|(pattern, _)| *pattern.text == *text).map(|(_, id)| *id).collect()
}

fn additional(objects: &Objects<'_>) -> Vec<SubschemaId> {
    objects.iter().filter_map(|object| object.additional).collect()
}

/// Whether only the named members are accepted.
fn is_closed(compiled: &schema::CompiledSchema, objects: &Objects<'_>) -> bool {
    let closes =
        |object: &&ObjectRules| object.patterns.is_empty() && object.additional.is_some_and(|id| compiled[id].is_false);
    objects.iter().any(closes)
}

fn member(objects: &Objects<'_>, name: &str) -> Vec<SubschemaId> {
    objects.iter().flat_map(|object| member_rules(object, name)).collect()
}
