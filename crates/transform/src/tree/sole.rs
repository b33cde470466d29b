//! Members of the same name on the path of a step that hides. Parsers choose different ones, so the step leaves only
//! the last: then no parser sees a value that the step was to hide.

use super::{EditError, NodeId, Shape, Tree};
use json::JsonPointer;
use json::pointer::PointerStep;
use json::store_compat::{self, Incompatibilities};

impl Tree {
    /// The value at the pointer as text, as [`Tree::get`] gives it. At each level of the path, all but the last member of a name are
    /// removed, also if there is nothing at the pointer.
    pub(in super::super) fn get_sole(&mut self, pointer: &JsonPointer) -> Result<Option<&str>, EditError> {
        let Some(id) = self.follow_sole(pointer.steps()) else { return Ok(None) };
        self.refresh(id)?;
        Ok(Some(self.text(self.node(id).value)))
    }

    /// The node at the end of the path, on which one member of each name remains.
    pub(super) fn follow_sole(&mut self, way: &[PointerStep]) -> Option<NodeId> {
        let mut at = NodeId::ROOT;
        for (depth, step) in way.iter().enumerate() {
            if self.open(at) != Shape::Object {
                at = self.part(at, step)?;
                continue;
            }
            let (found, has_removed) = self.sole_member(at, &step.name);
            if has_removed {
                self.make_stale(&way[..depth]);
            }
            at = found?;
        }
        Some(at)
    }

    /// The last member of a name in an open object, and whether there were others, which are removed.
    pub(super) fn sole_member(&mut self, of: NodeId, name: &str) -> (Option<NodeId>, bool) {
        let search = self.member(of, name);
        if search.is_repeated {
            self.remove_members(of, name, search.found);
        }
        (search.found, search.is_repeated)
    }

    /// Whether a name occurs twice on the path to the pointer or, if `with_parts`, within the value there.
    pub(in super::super) fn check_ambiguous(
        &mut self,
        pointer: &JsonPointer,
        with_parts: bool,
    ) -> Result<bool, EditError> {
        let mut at = NodeId::ROOT;
        for step in pointer.steps() {
            let found = if self.open(at) == Shape::Object {
                let search = self.member(at, &step.name);
                if search.is_repeated {
                    return Ok(true);
                }
                search.found
            } else {
                self.part(at, step)
            };
            let Some(found) = found else { return Ok(false) };
            at = found;
        }
        if !with_parts {
            return Ok(false);
        }
        self.refresh(at)?;
        let value = self.text(self.node(at).value);
        self.pass(value.len());
        Ok(store_compat::find(value, Incompatibilities::DUPLICATE_KEYS).is_some())
    }
}
