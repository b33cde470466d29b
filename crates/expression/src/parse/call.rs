//! Functions, methods and macros. The opening bracket has been read.

use std::ops::Range;

use super::{Parser, Read};
use crate::InvalidExpression;
use crate::tree::{Form, Function, Macro, MacroKind, Node, NodeKind};
use pattern::{InvalidPattern, Pattern};

impl<'t> Parser<'t> {
    /// `f(x)`; its name is at `place`.
    pub(super) fn function(&mut self, name: &str, place: Range<usize>) -> Read<NodeKind> {
        if name == "has" {
            return self.has();
        }
        let arguments = self.list(")")?;
        self.call(name, place, arguments, Form::Global)
    }

    /// `x.f()`; its name is at `place`.
    pub(super) fn method(&mut self, subject: Node, name: &str, place: Range<usize>) -> Read<NodeKind> {
        let name = if name == "existsOne" { MacroKind::ExistsOne.name() } else { name };
        if let Some(kind) = MacroKind::ALL.into_iter().find(|kind| kind.name() == name) {
            return self.macro_over(kind, subject);
        }
        let mut arguments = vec![subject];
        arguments.extend(self.list(")")?);
        self.call(name, place, arguments, Form::Method)
    }

    fn call(&self, name: &str, place: Range<usize>, arguments: Vec<Node>, form: Form) -> Read<NodeKind> {
        let fail = |message| Err(InvalidExpression::new(self.text, place.clone(), message));
        let written = usize::from(form == Form::Method);
        let wrong_count = |count: usize| {
            let found = arguments.len() - written;
            fail(format!("{name}() takes {} arguments in its brackets, and here it has {found}", count - written))
        };
        if name == "matches" {
            let Ok([subject, pattern]) = <[Node; 2]>::try_from(arguments) else {
                return fail("write text.matches('pattern')".to_owned());
            };
            let pattern = self.pattern(&pattern)?;
            return Ok(NodeKind::Matches(Box::new(subject), pattern));
        }
        let known = Function::ALL.into_iter().find(|(_, known, ..)| *known == name);
        let Some((function, _, count, known_form)) = known else { return fail(unknown(name, form)) };
        match (known_form, form) {
            (Form::Method, Form::Global) => fail(format!("{name}() is written after its value: x.{name}(…)")),
            (Form::Global, Form::Method) => fail(format!("{name}() is written around its value: {name}(x)")),
            _ if arguments.len() == count => Ok(NodeKind::Call(function, arguments)),
            _ => wrong_count(count),
        }
    }

    /// `has(a.b)`: the only way to distinguish an absent member from one that is null.
    fn has(&mut self) -> Read<NodeKind> {
        let node = self.expression()?;
        self.expect(")")?;
        match node.kind {
            NodeKind::Member(of, name) => Ok(NodeKind::Has(of, name)),
            NodeKind::Field(number) => Ok(NodeKind::HasField(number)),
            _ => {
                let message = "has() takes a member: has(a.b)".to_owned();
                Err(InvalidExpression::new(self.text, node.place, message))
            }
        }
    }

    /// `over.all(x, …)` and similar macros.
    fn macro_over(&mut self, kind: MacroKind, over: Node) -> Read<NodeKind> {
        let variable = self.name("the name of a variable for the elements")?;
        self.variables.push(variable);
        let parts = self.macro_parts(kind);
        self.variables.pop();
        let (only, body) = parts?;
        Ok(NodeKind::Macro(Box::new(Macro { kind, over, only, body })))
    }

    fn macro_parts(&mut self, kind: MacroKind) -> Read<(Option<Node>, Node)> {
        self.expect(",")?;
        let first = self.expression()?;
        let parts =
            if kind == MacroKind::Map && self.take(",") { (Some(first), self.expression()?) } else { (None, first) };
        self.expect(")")?;
        Ok(parts)
    }

    /// A pattern must be a literal in the expression, so it is compiled once and can't come from a document.
    fn pattern(&self, node: &Node) -> Read<Pattern> {
        let fail = |message| Err(InvalidExpression::new(self.text, node.place.clone(), message));
        let NodeKind::Text(text) = &node.kind else {
            return fail("matches() takes a pattern in quotes, not a computed value".to_owned());
        };
        text.parse().or_else(|invalid: InvalidPattern| fail(invalid.to_string()))
    }
}

fn unknown(name: &str, form: Form) -> String {
    let fits = |other: Form| other == form || other == Form::Either;
    let functions = Function::ALL.iter().filter(|(.., other)| fits(*other)).map(|(_, name, ..)| *name);
    let macros = MacroKind::ALL.iter().map(|kind| kind.name()).filter(|_| form == Form::Method);
    let more = if form == Form::Method { "matches" } else { "has" };
    let names = functions.chain(macros).chain([more]).collect::<Vec<_>>().join(", ");
    format!("there is no function {name}(); known are {names}")
}
