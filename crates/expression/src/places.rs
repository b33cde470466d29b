//! The places of a document that an expression names literally: `user.name`, `tags[0]`, `payload["a b"]`.

use std::ops::Range;

use super::Expression;
use super::tree::{Binary, Node, NodeKind};
use json::JsonPointer;

impl Expression {
    /// Each with the bytes of the text that name it. Places that depend on a value, as in `items[n]`, are left out.
    #[must_use]
    pub fn places(&self) -> Vec<(Range<usize>, JsonPointer)> {
        let mut found = Vec::new();
        self.gather(&self.root, &mut found);
        found
    }

    /// The places without which it is true on no document. If that isn't certain, a place isn't among them.
    #[must_use]
    pub fn needed(&self) -> Vec<(Range<usize>, JsonPointer)> {
        let mut found = Vec::new();
        self.gather_needed(&self.root, &mut found);
        found
    }

    /// Every place of a document that is read, and whether all within it is read too.
    #[must_use]
    pub fn reads(&self) -> Vec<(JsonPointer, bool)> {
        let mut found = Vec::new();
        self.gather_reads(&self.root, &mut found);
        found
    }

    /// The recursion is as deep as expressions may be.
    fn gather_reads(&self, node: &Node, found: &mut Vec<(JsonPointer, bool)>) {
        match self.place(node) {
            Some(pointer) => found.push((pointer, !matches!(node.kind, NodeKind::HasField(_) | NodeKind::Has(..)))),
            None => node.kind.children().for_each(|child| self.gather_reads(child, found)),
        }
    }

    fn gather_needed(&self, node: &Node, found: &mut Vec<(Range<usize>, JsonPointer)>) {
        let mut add = |node: &Node| {
            let place = self.place(node).filter(|pointer| !pointer.as_str().is_empty());
            found.extend(place.map(|pointer| (node.place.clone(), pointer)));
        };
        match &node.kind {
            NodeKind::And(parts) => parts.iter().for_each(|part| self.gather_needed(part, found)),
            NodeKind::Field(_) | NodeKind::HasField(_) | NodeKind::Member(..) | NodeKind::Has(..) => add(node),
            NodeKind::Matches(subject, _) => add(subject),
            NodeKind::Binary(operator, left, right) => {
                let is_null = |node: &Node| matches!(node.kind, NodeKind::Null);
                let is_plain = |node: &Node| {
                    matches!(node.kind, NodeKind::Bool(_) | NodeKind::Int(_) | NodeKind::Double(_) | NodeKind::Text(_))
                };
                // An absent value is null.
                let is_needed = |other: &Node| match operator {
                    Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual => true,
                    Binary::Equal => is_plain(other),
                    Binary::Unequal => is_null(other),
                    _ => false,
                };
                for (side, other) in [(left, right), (right, left)] {
                    if is_needed(other) {
                        add(side);
                    }
                }
            }
            _ => {}
        }
    }

    /// The recursion is as deep as expressions may be.
    fn gather(&self, node: &Node, found: &mut Vec<(Range<usize>, JsonPointer)>) {
        match self.place(node) {
            Some(pointer) if pointer.as_str().is_empty() => {}
            Some(pointer) => found.push((node.place.clone(), pointer)),
            None => node.kind.children().for_each(|child| self.gather(child, found)),
        }
    }

    /// The place that a node names.
    fn place(&self, node: &Node) -> Option<JsonPointer> {
        let member = |of: &Node, name: &str| self.place(of)?.member(name).ok();
        match &node.kind {
            NodeKind::Document => Some(JsonPointer::WHOLE),
            NodeKind::Field(number) | NodeKind::HasField(number) => {
                JsonPointer::WHOLE.member(self.fields.get(*number)?).ok()
            }
            NodeKind::Member(of, name) | NodeKind::Has(of, name) => member(of, name),
            NodeKind::Index(of, index) => match &index.kind {
                NodeKind::Text(name) => member(of, name),
                NodeKind::Int(index) => member(of, &index.to_string()),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needed_places_must_exist() {
        for (text, wanted) in [
            ("has(method) && status >= 100", &["/method", "/status"][..]),
            ("kind == 'a' && 7 == n && other == null && order != null", &["/kind", "/n", "/order"]),
            ("user.is_new && path.matches('^/a')", &["/user/is_new", "/path"]),
            ("!has(order) || has(method)", &[]),
            ("a != 1 && b == c && size(payload) > 1 && d in [null] && (has(x) ? has(y) : has(z))", &[]),
        ] {
            let expression: Expression = text.parse().unwrap();
            let found: Vec<_> = expression.needed().into_iter().map(|(_, pointer)| pointer.to_string()).collect();
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn places_are_those_that_are_named_outright() {
        for (text, wanted) in [
            ("status >= 500", &["status /status"][..]),
            ("user.name == 'a' && !has(user.age)", &["user.name /user/name", "has(user.age) /user/age"]),
            ("payload['a/b'].c + tags[0]", &["payload['a/b'].c /a~1b/c", "tags[0] /tags/0"]),
            ("items[n].x", &["items /items", "n /n"]),
            ("items.exists(i, i.id == id)", &["items /items", "id /id"]),
            ("size(payload) > 1 ? a : b.c.size()", &["a /a", "b.c /b/c"]),
            ("has(x) || 'x' in payload", &["has(x) /x"]),
            ("path.matches('^/a')", &["path /path"]),
        ] {
            let expression: Expression = text.parse().unwrap();
            let found: Vec<_> =
                expression.places().into_iter().map(|(at, pointer)| format!("{} {pointer}", &text[at])).collect();
            assert_eq!(found, wanted, "{text}");
        }
    }
}
