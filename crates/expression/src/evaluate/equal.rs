//! Equality, and the functions that are based on it.

use std::cmp::Ordering;

use super::{BYTES_PER_STEP, Evaluated, Evaluation, stop};
use crate::error::Fault;
use crate::number;
use crate::tree::Node;
use crate::value::{Computed, Kind, Value};

impl<'a> Evaluation<'a> {
    /// Whether a list has an element, or an object a member of that name.
    pub(super) fn evaluate_in(&mut self, element: &Computed<'a>, over: Computed<'a>, node: &Node) -> Evaluated<bool> {
        if over.kind() == Kind::Map {
            return match element {
                Computed::Text(name) => self.member(&over, name, node).map(|found| found.is_some()),
                _ => Ok(false),
            };
        }
        let kind = over.kind();
        let Some(items) = self.items(over, node)? else {
            return Err(stop(node, Fault::Operands("in", element.kind(), kind)));
        };
        for item in items {
            let item = self.read(item, node)?;
            if self.equal(element, &item, node)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Values of different kinds are unequal; an int and a double are compared as numbers.
    pub(super) fn equal(&mut self, left: &Computed<'a>, right: &Computed<'a>, node: &Node) -> Evaluated<bool> {
        self.spend(1, node)?;
        match (left, right) {
            (Computed::Null, Computed::Null) => Ok(true),
            (Computed::Text(left), Computed::Text(right)) => {
                self.spend(left.len().min(right.len()) / BYTES_PER_STEP, node)?;
                Ok(left == right)
            }
            (Computed::Object(left), Computed::Object(right)) => self.equal_objects(left, right, node),
            (Computed::List(_) | Computed::Array(_), Computed::List(_) | Computed::Array(_)) => {
                self.equal_lists(left, right, node)
            }
            _ => Ok(number::compare(left, right) == Some(Some(Ordering::Equal))),
        }
    }

    fn equal_objects(&mut self, left: &'a str, right: &'a str, node: &Node) -> Evaluated<bool> {
        let (left, right) = (self.members(left, node)?, self.members(right, node)?);
        if !left.keys().eq(right.keys()) {
            return Ok(false);
        }
        let pairs = left.into_values().map(Value::Json).zip(right.into_values().map(Value::Json));
        self.equal_pairs(pairs, node)
    }

    fn equal_lists(&mut self, left: &Computed<'a>, right: &Computed<'a>, node: &Node) -> Evaluated<bool> {
        match (self.items(left.clone(), node)?, self.items(right.clone(), node)?) {
            (Some(left), Some(right)) if left.remaining() == right.remaining() => {
                self.equal_pairs(left.zip(right), node)
            }
            _ => Ok(false),
        }
    }

    fn equal_pairs(&mut self, pairs: impl Iterator<Item = (Value<'a>, Value<'a>)>, node: &Node) -> Evaluated<bool> {
        for (left, right) in pairs {
            let (left, right) = (self.read(left, node)?, self.read(right, node)?);
            if !self.equal(&left, &right, node)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
