//! Changes of a tree: what is put, renamed and taken away.

use event::limits::JSON_DEPTH_MAX;

use super::{EditError, Node, NodeId, Shape, Span, Tree, text};
use crate::json::scan::too_deep;
use crate::pointer::{JsonPointer, Step};

impl Tree {
    /// Puts a JSON text where the pointer says. Objects that are missing on the way are made; in an array the number
    /// behind its last element, or `-`, adds one. Earlier members of the same name go.
    pub(in super::super) fn put(&mut self, pointer: &JsonPointer, json: &str) -> Result<(), EditError> {
        if let Some(found) = self.find(pointer) {
            let node = self.node(found);
            if !node.stale && self.text(node.value) == json {
                return Ok(());
            }
        }
        check_depth(pointer, json)?;
        let Some((last, way)) = pointer.steps().split_last() else {
            let value = self.add(json)?;
            self.node_mut(NodeId::ROOT).replace(value);
            return Ok(());
        };
        self.check_way(pointer)?;
        let value = self.add(json)?;
        let mut at = NodeId::ROOT;
        for step in way {
            at = self.enter(at, step)?;
        }
        self.set_part(at, last, value)
    }

    /// Takes away what stands at the pointer, with all members of that name; the whole document can't be taken away.
    pub(in super::super) fn remove(&mut self, pointer: &JsonPointer) {
        let Some((last, way)) = pointer.steps().split_last() else { return };
        if self.find(pointer).is_none() {
            return;
        }
        let mut at = NodeId::ROOT;
        for step in way {
            self.node_mut(at).stale = true;
            let Some(next) = self.part(at, step) else { return };
            at = next;
        }
        match self.node(at).shape {
            Shape::Object => self.remove_members(at, &last.name, None),
            _ => self.remove_element(at, last.index),
        }
    }

    /// Gives the member at the pointer another name, where it stands. Other members of the new name go.
    pub(in super::super) fn rename(&mut self, pointer: &JsonPointer, name: &str) -> Result<(), EditError> {
        let (Some(found), Some((last, way))) = (self.find(pointer), pointer.steps().split_last()) else {
            return Ok(());
        };
        let mut at = NodeId::ROOT;
        for step in way {
            self.node_mut(at).stale = true;
            let Some(next) = self.part(at, step) else { return Ok(()) };
            at = next;
        }
        if self.node(at).shape != Shape::Object || last.name == name {
            return Ok(());
        }
        let key = text::string(name);
        let span = self.add(&key)?;
        self.remove_members(at, &last.name, Some(found));
        self.remove_members(at, name, None);
        self.node_mut(at).stale = true;
        let node = self.node_mut(found);
        (node.key, node.whole, node.escaped) = (span, false, key.contains('\\'));
        Ok(())
    }

    /// Whether everything that stands on the way is an array or object, or missing: before anything is changed.
    fn check_way(&mut self, pointer: &JsonPointer) -> Result<(), EditError> {
        let mut at = NodeId::ROOT;
        for (number, step) in pointer.steps().iter().enumerate() {
            let shape = self.open(at);
            let value = self.text(self.node(at).value);
            if shape == Shape::Closed && !(value == "null" && number > 0) {
                return Err(EditError::NoContainer(place(pointer, number), text::kind(value)));
            }
            match self.part(at, step) {
                Some(next) => at = next,
                None if shape == Shape::Array => return self.check_new_element(at, step),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn check_new_element(&self, of: NodeId, step: &Step) -> Result<(), EditError> {
        let count = self.parts(of).count();
        let is_next = step.name == "-" || step.index == Some(count);
        if is_next { Ok(()) } else { Err(EditError::NoSuchElement(count)) }
    }

    /// The part, which becomes an object if there is none; the node around is changed with it.
    fn enter(&mut self, of: NodeId, step: &Step) -> Result<NodeId, EditError> {
        self.node_mut(of).stale = true;
        let id = match self.part(of, step) {
            Some(id) => id,
            None => {
                let empty = self.add("{}")?;
                self.append(of, step, empty)?
            }
        };
        if self.open(id) == Shape::Closed {
            let empty = self.add("{}")?;
            self.node_mut(id).replace(empty);
            self.open(id);
        }
        Ok(id)
    }

    fn set_part(&mut self, of: NodeId, step: &Step, value: Span) -> Result<(), EditError> {
        self.open(of);
        self.node_mut(of).stale = true;
        let Some(found) = self.part(of, step) else {
            return self.append(of, step, value).map(|_| ());
        };
        self.node_mut(found).replace(value);
        if self.node(of).shape == Shape::Object {
            self.remove_members(of, &step.name, Some(found));
        }
        Ok(())
    }

    fn append(&mut self, of: NodeId, step: &Step, value: Span) -> Result<NodeId, EditError> {
        let mut node = Node::closed(Span::default(), value);
        if self.node(of).shape == Shape::Object {
            let key = text::string(&step.name);
            node.key = self.add(&key)?;
            node.escaped = key.contains('\\');
        }
        let last = self.parts(of).last();
        let id = NodeId(super::offset(self.nodes.len()));
        self.nodes.push(node);
        match last {
            Some(last) => self.node_mut(last).next = Some(id),
            None => self.node_mut(of).first = Some(id),
        }
        Ok(id)
    }

    fn remove_members(&mut self, of: NodeId, name: &str, but: Option<NodeId>) {
        self.retain(of, |tree, _, id| Some(id) == but || !tree.has_name(tree.node(id), name));
    }

    fn remove_element(&mut self, of: NodeId, index: Option<usize>) {
        self.retain(of, |_, number, _| Some(number) != index);
    }

    /// Keeps the parts that the function wants, which sees the number and the node of each.
    pub(super) fn retain(&mut self, of: NodeId, mut wanted: impl FnMut(&mut Self, usize, NodeId) -> bool) {
        let (mut before, mut next, mut number) = (None, self.node(of).first, 0);
        while let Some(id) = next {
            next = self.node(id).next;
            if wanted(self, number, id) {
                before = Some(id);
            } else {
                match before {
                    Some(before) => self.node_mut(before).next = next,
                    None => self.node_mut(of).first = next,
                }
                self.node_mut(of).stale = true;
            }
            number += 1;
        }
    }
}

impl Node {
    const fn replace(&mut self, value: Span) {
        self.value = value;
        self.shape = Shape::Closed;
        self.first = None;
        self.stale = false;
        self.whole = false;
    }
}

/// The place after so many steps, in words.
fn place(pointer: &JsonPointer, steps: usize) -> String {
    let until: String = pointer.as_str().split_inclusive('/').take(steps + 1).collect();
    match until.strip_suffix('/').unwrap_or(&until) {
        "" => "the payload".to_owned(),
        until => format!("`{until}`"),
    }
}

/// What stands at a pointer is so much deeper as the pointer has steps.
fn check_depth(pointer: &JsonPointer, json: &str) -> Result<(), EditError> {
    let left = JSON_DEPTH_MAX - pointer.steps().len();
    match too_deep(json.as_bytes(), left) {
        Some(_) => Err(EditError::TooDeep),
        None => Ok(()),
    }
}
