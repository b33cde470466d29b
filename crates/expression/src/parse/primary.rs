//! The beginning of an operand: a literal, a name, or an expression in brackets.

use super::{Parser, Read};
use crate::ROOT;
use crate::token::TokenKind;
use crate::tree::NodeKind;

/// Words that CEL reserves.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Read {
        let start = self.start();
        let kind = match self.peek().clone() {
            TokenKind::Int(number) => NodeKind::Int(number),
            TokenKind::Double(number) => NodeKind::Double(number),
            TokenKind::Text(text) => NodeKind::Text(text),
            TokenKind::Name(name) => return self.named(name),
            TokenKind::Symbol("(") => {
                self.at += 1;
                let node = self.expression()?;
                self.expect(")")?;
                return Ok(node);
            }
            TokenKind::Symbol("[") => {
                self.at += 1;
                let elements = self.list("]")?;
                return self.node(NodeKind::List(elements), start);
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        self.node(kind, start)
    }

    /// A literal that is a word, a function, a variable, or a member of the document.
    fn named(&mut self, name: &str) -> Read {
        let start = self.start();
        if RESERVED.contains(&name) {
            let hint = format!("`{name}` is reserved; write `{ROOT}.{name}` to read the member");
            return Err(self.error(hint));
        }
        let place = self.tokens[self.at].place.clone();
        self.at += 1;
        let kind = match name {
            "true" => NodeKind::Bool(true),
            "false" => NodeKind::Bool(false),
            "null" => NodeKind::Null,
            name if self.take("(") => self.function(name, place)?,
            name => self.variable(name),
        };
        self.node(kind, start)
    }

    /// The innermost variable of that name, the document, or its member.
    fn variable(&mut self, name: &str) -> NodeKind {
        if let Some(depth) = self.variables.iter().rposition(|variable| *variable == name) {
            return NodeKind::Variable(depth);
        }
        if name == ROOT {
            self.names_document = true;
            return NodeKind::Document;
        }
        let known = self.fields.iter().position(|field| field == name);
        NodeKind::Field(known.unwrap_or_else(|| {
            self.fields.push(name.to_owned());
            self.fields.len() - 1
        }))
    }
}
