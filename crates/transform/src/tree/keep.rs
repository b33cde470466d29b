//! Removes everything except the values at some pointers.

use super::{NodeId, Shape, Tree, text};
use json::JsonPointer;
use json::pointer::PointerStep;

impl Tree {
    /// Keeps the values at the pointers, with the objects and arrays around them.
    pub(in super::super) fn keep(&mut self, pointers: &[JsonPointer]) {
        let paths: Vec<_> = pointers.iter().map(JsonPointer::steps).collect();
        if paths.iter().all(|path| !path.is_empty()) {
            self.keep_parts(NodeId::ROOT, &paths);
        }
    }

    /// Whether anything was kept. The recursion is as deep as the pointers are.
    fn keep_parts(&mut self, of: NodeId, paths: &[&[PointerStep]]) -> bool {
        let shape = self.open(of);
        if shape == Shape::Closed {
            return false;
        }
        if shape == Shape::Object {
            for step in paths.iter().filter_map(|path| path.first()) {
                self.sole_member(of, &step.name);
            }
        }
        let (mut kept, mut changed) = (false, false);
        self.retain(of, |tree, number, id| {
            let rest_of_paths = tree.rest_of_paths(shape, number, id, paths);
            let is_end = rest_of_paths.iter().any(|path| path.is_empty());
            let is_kept = is_end || (!rest_of_paths.is_empty() && tree.keep_parts(id, &rest_of_paths));
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
    fn rest_of_paths<'w>(
        &self,
        shape: Shape,
        number: usize,
        id: NodeId,
        paths: &[&'w [PointerStep]],
    ) -> Vec<&'w [PointerStep]> {
        self.pass(paths.len());
        let name = text::read_string(self.text(self.node(id).key));
        let is_this = |step: &PointerStep| match shape {
            Shape::Object => name.as_deref() == Some(step.name.as_str()),
            _ => step.index == Some(number),
        };
        paths
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(step, _)| is_this(step))
            .map(|(_, rest)| rest)
            .collect()
    }
}
