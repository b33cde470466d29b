//! The rules that schemas apply together, and to one member.

use std::collections::BTreeSet;

use schema::{Applicator, CompiledSchema, ObjectRules, SubschemaId};

/// These rules, and those that they always apply, while `may_continue` allows each.
pub(super) fn together(
    compiled: &CompiledSchema,
    ids: &[SubschemaId],
    mut may_continue: impl FnMut() -> bool,
) -> Vec<SubschemaId> {
    let (mut all, mut next) = (BTreeSet::new(), ids.to_vec());
    while let Some(id) = next.pop().filter(|_| may_continue()) {
        if !all.insert(id) {
            continue;
        }
        for applied in &compiled[id].applied {
            match applied {
                Applicator::Ref(other) => next.push(*other),
                Applicator::All(others) => next.extend(others),
                _ => {}
            }
        }
    }
    all.into_iter().collect()
}

/// The rules of the member with a name.
pub(super) fn member_rules(object: &ObjectRules, name: &str) -> Vec<SubschemaId> {
    let own = object.members.find(name).and_then(|member| object.members[member].rules);
    let patterns = object.patterns.iter().filter(|(pattern, _)| pattern.is_in(name)).map(|(_, id)| *id);
    let said: Vec<SubschemaId> = own.into_iter().chain(patterns).collect();
    if said.is_empty() { object.additional.into_iter().collect() } else { said }
}
