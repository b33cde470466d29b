//! Removes everything except the values at some pointers.

use super::{NodeId, Shape, Tree, text};
use json::JsonPointer;
use json::pointer::PointerStep;

impl Tree {
    /// Keeps the values at the pointers, with the objects and arrays around them.
    pub(in super::super) fn keep(&mut self, pointers: &[JsonPointer]) {
        let ways: Vec<_> = pointers.iter().map(JsonPointer::steps).collect();
        if ways.iter().all(|way| !way.is_empty()) {
            self.keep_parts(NodeId::ROOT, &ways);
        }
    }

    /// Whether anything was kept. The recursion is as deep as the pointers are.
    fn keep_parts(&mut self, of: NodeId, ways: &[&[PointerStep]]) -> bool {
        let shape = self.open(of);
        if shape == Shape::Closed {
            return false;
        }
        if shape == Shape::Object {
            for step in ways.iter().filter_map(|way| way.first()) {
                self.sole_member(of, &step.name);
            }
        }
        let (mut kept, mut changed) = (false, false);
        self.retain(of, |tree, number, id| {
            let onward = tree.onward(shape, number, id, ways);
            let is_end = onward.iter().any(|way| way.is_empty());
            let is_kept = is_end || (!onward.is_empty() && tree.keep_parts(id, &onward));
            kept |= is_kept;
            changed |= tree.node(id).stale;
            is_kept
        });
        if changed {
            self.make_one_stale(of);
        }
        kept
    }

    /// The rest of the paths that go through this part.
    fn onward<'w>(
        &self,
        shape: Shape,
        number: usize,
        id: NodeId,
        ways: &[&'w [PointerStep]],
    ) -> Vec<&'w [PointerStep]> {
        self.pass(ways.len());
        let name = text::read_string(self.text(self.node(id).key));
        let is_this = |step: &PointerStep| match shape {
            Shape::Object => name.as_deref() == Some(step.name.as_str()),
            _ => step.index == Some(number),
        };
        ways.iter()
            .filter_map(|way| way.split_first())
            .filter(|(step, _)| is_this(step))
            .map(|(_, rest)| rest)
            .collect()
    }
}
