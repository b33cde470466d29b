//! Whether two values are equal: numbers by their value, objects regardless of the order of their members.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher};

use super::number;
use json::{ValueKind, ValueView};

/// Whether two values, of one text or of two, are equal.
pub(super) fn equal(left: ValueView<'_>, at: usize, right: ValueView<'_>, other: usize) -> bool {
    let kind = left.kind(at);
    if kind != right.kind(other) {
        return false;
    }
    match kind {
        ValueKind::Null => true,
        ValueKind::Boolean => left.raw(at) == right.raw(other),
        ValueKind::Number => number::equal(left.raw(at), right.raw(other)),
        ValueKind::Text => left.text(at) == right.text(other),
        ValueKind::Array => {
            let mut others = right.children(other);
            left.children(at).all(|child| others.next().is_some_and(|other| equal(left, child, right, other)))
                && others.next().is_none()
        }
        ValueKind::Object => {
            let (members, others) = (sorted(left, at), sorted(right, other));
            let same = |((name, value), (other_name, other)): (&Member<'_>, &Member<'_>)| {
                name == other_name && equal(left, *value, right, *other)
            };
            members.len() == others.len() && members.iter().zip(&others).all(same)
        }
    }
}

type Member<'d> = (Cow<'d, str>, usize);

fn sorted(view: ValueView<'_>, at: usize) -> Vec<Member<'_>> {
    let mut members: Vec<_> = view.members(at).map(|(name, value)| (view.text(name), value)).collect();
    members.sort();
    members
}

/// Equal values have equal hashes. `state` is random, so a client can't send many values with one hash.
pub(super) fn hash(view: ValueView<'_>, at: usize, state: &impl BuildHasher) -> u64 {
    let mut hasher = state.build_hasher();
    let kind = view.kind(at);
    (kind as u8).hash(&mut hasher);
    match kind {
        ValueKind::Null => {}
        ValueKind::Boolean => view.raw(at).hash(&mut hasher),
        ValueKind::Number => number::hash(view.raw(at), &mut hasher),
        ValueKind::Text => view.text(at).hash(&mut hasher),
        ValueKind::Array => view.children(at).for_each(|child| hash(view, child, state).hash(&mut hasher)),
        ValueKind::Object => {
            let member = |(name, value)| state.hash_one((view.text(name), hash(view, value, state)));
            view.members(at).map(member).fold(0, u64::wrapping_add).hash(&mut hasher);
        }
    }
    hasher.finish()
}
