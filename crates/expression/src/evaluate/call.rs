//! Functions of texts and sizes.

use std::borrow::Cow;
use std::rc::Rc;

use super::{BYTES_PER_STEP, Evaluated, Evaluation, stop};
use crate::convert::convert;
use crate::error::Fault;
use crate::tree::{Function, Node};
use crate::value::Computed;
use json::parts;

impl<'a> Evaluation<'a> {
    pub(super) fn call(
        &mut self,
        function: Function,
        arguments: &'a [Node],
        node: &'a Node,
    ) -> Evaluated<Computed<'a>> {
        match (function, arguments) {
            (Function::Size, [of]) => self.size(of, node),
            (Function::Int | Function::Double | Function::String | Function::Bool, [from]) => {
                let value = self.made(from)?;
                self.spend(text_bytes(&value) / BYTES_PER_STEP, node)?;
                convert(function, value).map_err(|fault| stop(node, fault))
            }
            (_, [text, part]) => self.compare_texts(function, text, part, node),
            (_, [text]) => self.change_text(function, text, node),
            // Their number was checked when the expression was read.
            _ => Ok(Computed::Null),
        }
    }

    fn compare_texts(
        &mut self,
        function: Function,
        text: &'a Node,
        part: &'a Node,
        node: &Node,
    ) -> Evaluated<Computed<'a>> {
        let (text, part) = (self.text(text, function.name())?, self.text(part, function.name())?);
        self.spend((text.len() + part.len()) / BYTES_PER_STEP, node)?;
        Ok(Computed::Bool(match function {
            Function::StartsWith => text.starts_with(part.as_ref()),
            Function::EndsWith => text.ends_with(part.as_ref()),
            _ => text.contains(part.as_ref()),
        }))
    }

    fn change_text(&mut self, function: Function, text: &'a Node, node: &Node) -> Evaluated<Computed<'a>> {
        let text = self.text(text, function.name())?;
        self.spend(text.len() / BYTES_PER_STEP, node)?;
        Ok(Computed::Text(match (function, text) {
            (Function::LowerAscii, text) => Cow::Owned(text.to_ascii_lowercase()),
            (Function::UpperAscii, text) => Cow::Owned(text.to_ascii_uppercase()),
            (_, Cow::Borrowed(text)) => Cow::Borrowed(text.trim()),
            (_, Cow::Owned(text)) => Cow::Owned(text.trim().to_owned()),
        }))
    }

    /// A value that must be a string.
    pub(super) fn text(&mut self, node: &'a Node, function: &'static str) -> Evaluated<Cow<'a, str>> {
        match self.made(node)? {
            Computed::Text(text) => Ok(text),
            other => Err(stop(node, Fault::Operand(function, other.kind()))),
        }
    }

    /// Characters of a string, elements of a list, members of an object.
    fn size(&mut self, of: &'a Node, node: &Node) -> Evaluated<Computed<'a>> {
        let made = self.made(of)?;
        self.spend(text_bytes(&made) / BYTES_PER_STEP, node)?;
        let size = match &made {
            Computed::Text(text) => text.chars().count(),
            Computed::List(elements) => elements.len(),
            Computed::Array(json) => parts::elements(json).count(),
            Computed::Object(json) => self.members(json, node)?.len(),
            other => return Err(stop(node, Fault::Operand("size", other.kind()))),
        };
        Ok(Computed::Int(size as i128))
    }

    /// Two strings or two lists as one.
    pub(super) fn concatenate(
        &mut self,
        left: Computed<'a>,
        right: Computed<'a>,
        node: &Node,
    ) -> Evaluated<Computed<'a>> {
        if let (Computed::Text(left), Computed::Text(right)) = (&left, &right) {
            self.spend((left.len() + right.len()) / BYTES_PER_STEP, node)?;
            return Ok(Computed::Text(Cow::Owned(format!("{left}{right}"))));
        }
        let parts = [self.items(left, node)?, self.items(right, node)?];
        Ok(Computed::List(Rc::new(parts.into_iter().flatten().flatten().collect())))
    }
}

/// The bytes of a text, of an array or of an object.
fn text_bytes(value: &Computed<'_>) -> usize {
    match value {
        Computed::Text(text) => text.len(),
        Computed::Array(json) | Computed::Object(json) => json.len(),
        _ => 0,
    }
}
