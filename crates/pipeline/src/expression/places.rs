//! The places of a document that an expression names outright: `user.name`, `tags[0]`, `payload["a b"]`.

use std::ops::Range;

use super::Expression;
use super::tree::{Node, NodeKind};
use crate::pointer::JsonPointer;

impl Expression {
    /// Each with the bytes of the text that name it. What depends on a value, as in `items[n]`, is left out.
    pub(crate) fn places(&self) -> Vec<(Range<usize>, JsonPointer)> {
        let mut found = Vec::new();
        self.gather(&self.root, &mut found);
        found
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
