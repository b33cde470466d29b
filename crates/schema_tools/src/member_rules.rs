//! What an object's rules say of one member.

use schema::{ObjectRules, SubschemaId};

/// All that is said of the member of a name.
pub(super) fn member_rules(object: &ObjectRules, name: &str) -> Vec<SubschemaId> {
    let own = object.members.find(name).and_then(|member| object.members[member].rules);
    let patterns = object.patterns.iter().filter(|(pattern, _)| pattern.is_in(name)).map(|(_, id)| *id);
    let said: Vec<SubschemaId> = own.into_iter().chain(patterns).collect();
    if said.is_empty() { object.additional.into_iter().collect() } else { said }
}
