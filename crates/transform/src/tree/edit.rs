//! Changes of a tree: setting, renaming and removing parts.

use limits::JSON_DEPTH_MAX;

use super::{EditError, Found, Node, NodeId, Shape, Span, Tree, text};
use json::JsonPointer;
use json::pointer::PointerStep;
use json::too_deep;

impl Tree {
    /// Sets a JSON text at the pointer. Missing objects on the path are created; in an array the number after its last
    /// element, or `-`, adds one. Earlier members of the same name are removed.
    pub(in super::super) fn put(&mut self, pointer: &JsonPointer, json: &str) -> Result<(), EditError> {
        check_depth(pointer, json)?;
        let Some((last, way)) = pointer.steps().split_last() else {
            return self.set_document(json);
        };
        let at = match self.follow(way) {
            Some(at) if self.open(at) != Shape::Closed => at,
            _ => {
                self.check_path(pointer)?;
                way.iter().try_fold(NodeId::ROOT, |at, step| self.enter(at, step))?
            }
        };
        if self.put_part(at, last, json)? {
            // By its own number: `-` refers to no existing element.
            self.make_one_stale(at);
            self.make_stale(way);
        }
        Ok(())
    }

    fn set_document(&mut self, json: &str) -> Result<(), EditError> {
        if self.nodes[0].stale || self.text(self.nodes[0].value) != json {
            let value = self.add(json)?;
            self.node_mut(NodeId::ROOT).replace(value);
        }
        Ok(())
    }

    /// Puts a part of an array or object that is open; whether that changed anything.
    fn put_part(&mut self, of: NodeId, step: &PointerStep, json: &str) -> Result<bool, EditError> {
        let search = match self.node(of).shape {
            Shape::Object => self.member(of, &step.name),
            _ => self.element(of, step)?,
        };
        if let Some(found) = search.found {
            let node = self.node(found);
            if !node.stale && self.text(node.value) == json {
                return Ok(false);
            }
            let value = self.add(json)?;
            self.node_mut(found).replace(value);
        } else {
            let value = self.add(json)?;
            self.append(of, &step.name, value)?;
        }
        if search.is_repeated {
            self.remove_members(of, &step.name, search.found);
        }
        Ok(true)
    }

    /// Finds an element; fails if it is neither there nor the next.
    fn element(&self, of: NodeId, step: &PointerStep) -> Result<Found, EditError> {
        let found = step.index.and_then(|index| self.each_part(of).nth(index));
        let count = self.parts_of(of).count;
        self.pass(count);
        let is_next = step.name == "-" || step.index == Some(count);
        if found.is_none() && !is_next {
            return Err(EditError::NoSuchElement(count));
        }
        Ok(Found { found, is_repeated: false })
    }

    fn follow(&mut self, way: &[PointerStep]) -> Option<NodeId> {
        way.iter().try_fold(NodeId::ROOT, |at, step| self.part(at, step))
    }

    /// Removes the value at the pointer, with all members of that name; the whole document can't be removed.
    pub(in super::super) fn remove(&mut self, pointer: &JsonPointer) {
        let Some((last, way)) = pointer.steps().split_last() else { return };
        let Some(at) = self.follow_sole(way) else { return };
        if self.part(at, last).is_none() {
            return;
        }
        match self.node(at).shape {
            Shape::Object => self.remove_members(at, &last.name, None),
            _ => self.retain(at, |_, number, _| Some(number) != last.index),
        }
        self.make_stale(way);
    }

    /// Renames the member at the pointer, which keeps its position. Other members of the new name are removed.
    pub(in super::super) fn rename(&mut self, pointer: &JsonPointer, name: &str) -> Result<(), EditError> {
        let Some((last, way)) = pointer.steps().split_last() else { return Ok(()) };
        let Some(at) = self.follow_sole(way) else { return Ok(()) };
        if self.open(at) != Shape::Object || last.name == name {
            return Ok(());
        }
        let search = self.member(at, &last.name);
        let Some(found) = search.found else { return Ok(()) };
        if search.is_repeated {
            self.remove_members(at, &last.name, Some(found));
        }
        if self.member(at, name).found.is_some() {
            self.remove_members(at, name, None);
        }
        self.give_name(found, name)?;
        self.make_stale(way);
        Ok(())
    }

    /// Whether everything on the path is an array or object, or missing: before anything is changed.
    fn check_path(&mut self, pointer: &JsonPointer) -> Result<(), EditError> {
        let mut at = NodeId::ROOT;
        for (number, step) in pointer.steps().iter().enumerate() {
            let shape = self.open(at);
            let value = self.text(self.node(at).value);
            if shape == Shape::Closed && !(value == "null" && number > 0) {
                return Err(EditError::NoContainer(place(pointer, number), text::kind(value)));
            }
            match self.part(at, step) {
                Some(next) => at = next,
                None if shape == Shape::Array => return self.element(at, step).map(|_| ()),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// The part, which becomes an object if there is none; the node around is changed with it.
    fn enter(&mut self, of: NodeId, step: &PointerStep) -> Result<NodeId, EditError> {
        self.open(of);
        self.make_one_stale(of);
        let id = match self.part(of, step) {
            Some(id) => id,
            None => {
                let empty = self.add("{}")?;
                self.pass(self.parts_of(of).count);
                self.append(of, &step.name, empty)?
            }
        };
        if self.open(id) == Shape::Closed {
            let empty = self.add("{}")?;
            self.node_mut(id).replace(empty);
            self.open(id);
        }
        Ok(id)
    }
}

impl Node {
    const fn replace(&mut self, value: Span) {
        self.value = value;
        self.shape = Shape::Closed;
        self.stale = false;
        self.whole = false;
    }
}

/// The place after this many steps, in words.
fn place(pointer: &JsonPointer, steps: usize) -> String {
    let until: String = pointer.as_str().split_inclusive('/').take(steps + 1).collect();
    match until.strip_suffix('/').unwrap_or(&until) {
        "" => "the payload".to_owned(),
        until => format!("`{until}`"),
    }
}

/// The value at a pointer is as much deeper as the pointer has steps.
fn check_depth(pointer: &JsonPointer, json: &str) -> Result<(), EditError> {
    let left = JSON_DEPTH_MAX - pointer.steps().len();
    match too_deep(json.as_bytes(), left) {
        Some(_) => Err(EditError::TooDeep),
        None => Ok(()),
    }
}
