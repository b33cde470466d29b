//! From nodes back to text. Unchanged text is copied as one piece with its neighbours.

use limits::TRANSFORM_BYTES_MAX;

use super::{EditError, Node, NodeId, Shape, Span, Tree};

impl Tree {
    /// Writes the whole document.
    pub(in super::super) fn write_document(&self, out: &mut String) {
        self.write(NodeId::ROOT, out);
    }

    /// Writes the text of a node from its parts.
    pub(super) fn refresh(&mut self, id: NodeId) -> Result<(), EditError> {
        if !self.node(id).stale {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.spare);
        text.clear();
        self.write(id, &mut text);
        let span = self.add(&text);
        self.spare = text;
        let value = span?;
        let node = self.node_mut(id);
        (node.value, node.stale, node.whole) = (value, false, false);
        Ok(())
    }

    /// Puts a text into the ground.
    pub(super) fn add(&mut self, text: &str) -> Result<Span, EditError> {
        let start = self.ground.len();
        if start - self.source + text.len() > TRANSFORM_BYTES_MAX {
            return Err(EditError::TooLong);
        }
        self.ground.push_str(text);
        Ok(Span::new(start, self.ground.len()))
    }

    /// The tree is as deep as a pointer has steps: so is the recursion.
    fn write(&self, id: NodeId, out: &mut String) {
        let node = self.node(id);
        match node.shape {
            _ if !node.stale => out.push_str(self.text(node.value)),
            Shape::Closed => out.push_str(self.text(node.value)),
            Shape::Object => self.write_parts(id, out, ['{', '}']),
            Shape::Array => self.write_parts(id, out, ['[', ']']),
        }
    }

    fn write_parts(&self, of: NodeId, out: &mut String, [open, close]: [char; 2]) {
        out.push(open);
        let (mut next, mut is_first) = (self.parts_of(of).first, true);
        while let Some(id) = next {
            if !is_first {
                out.push(',');
            }
            is_first = false;
            next = match self.run(id) {
                Some((span, next)) => {
                    out.push_str(self.text(span));
                    next
                }
                None => {
                    self.write_part(id, out);
                    self.node(id).next
                }
            };
        }
        out.push(close);
    }

    fn write_part(&self, id: NodeId, out: &mut String) {
        let node = self.node(id);
        if node.key.start != node.key.end {
            out.push_str(self.text(node.key));
            out.push(':');
        }
        self.write(id, out);
    }

    /// Parts from this one on that are in the ground as they will be written, with a comma between, and the part after
    /// them.
    fn run(&self, first: NodeId) -> Option<(Span, Option<NodeId>)> {
        let node = self.node(first);
        if !node.is_verbatim() {
            return None;
        }
        let (mut end, mut next) = (node.value.end, node.next);
        while let Some(id) = next {
            let node = self.node(id);
            if !node.is_verbatim() || node.key.start != end + 1 {
                break;
            }
            (end, next) = (node.value.end, node.next);
        }
        Some((Span { start: node.key.start, end }, next))
    }
}

impl Node {
    const fn is_verbatim(&self) -> bool {
        self.whole && !self.stale
    }
}
