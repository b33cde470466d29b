//! The items of a macro, one after the other.

use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map};
use std::rc::Rc;
use std::vec;

use super::{BYTES_PER_STEP, Evaluated, Evaluation};
use crate::tree::Node;
use crate::value::{Computed, Value};
use json::parts;

/// A member takes memory in a map, and a search for its place there.
const STEPS_PER_MEMBER: usize = 4;

/// The elements of a list, or the names of an object's members.
pub(super) enum Items<'a> {
    Array(vec::IntoIter<&'a str>),
    Names(btree_map::IntoKeys<Cow<'a, str>, &'a str>),
    /// A list and the number of the next element.
    List(Rc<Vec<Value<'a>>>, usize),
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        match self {
            Self::Array(elements) => elements.next().map(Value::Json),
            Self::Names(names) => names.next().map(|name| Value::Computed(Computed::Text(name))),
            Self::List(elements, next) => {
                *next += 1;
                elements.get(*next - 1).cloned()
            }
        }
    }
}

impl Items<'_> {
    /// How many remain.
    pub(super) fn remaining(&self) -> usize {
        match self {
            Self::Array(elements) => elements.len(),
            Self::Names(names) => names.len(),
            Self::List(elements, next) => elements.len() - next,
        }
    }
}

impl<'a> Evaluation<'a> {
    /// The items; none if the value is neither a list nor an object.
    pub(super) fn items(&mut self, over: Computed<'a>, node: &Node) -> Evaluated<Option<Items<'a>>> {
        let items = match over {
            Computed::List(elements) => {
                let bytes: usize = elements.iter().map(owned_bytes).sum();
                self.spend(bytes / BYTES_PER_STEP, node)?;
                Items::List(elements, 0)
            }
            Computed::Array(json) => {
                self.spend(json.len() / BYTES_PER_STEP, node)?;
                Items::Array(parts::elements(json).collect::<Vec<_>>().into_iter())
            }
            Computed::Object(json) => Items::Names(self.members(json, node)?.into_keys()),
            _ => return Ok(None),
        };
        self.spend(items.remaining(), node)?;
        Ok(Some(items))
    }

    pub(super) fn members(&mut self, json: &'a str, node: &Node) -> Evaluated<BTreeMap<Cow<'a, str>, &'a str>> {
        // Sorting them costs about as much as reading them.
        self.spend(json.len() / BYTES_PER_STEP * 2, node)?;
        let members = parts::members_by_name(json);
        self.spend(members.len() * STEPS_PER_MEMBER, node)?;
        Ok(members)
    }
}

/// The bytes that a copy of the value copies in addition to the value itself.
pub(super) const fn owned_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Computed(Computed::Text(Cow::Owned(text))) => text.len(),
        _ => 0,
    }
}
