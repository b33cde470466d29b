//! An expression as a tree. It is as deep as [`EXPRESSION_DEPTH_MAX`] at most: evaluating it needs stack for each
//! level.

use std::ops::Range;

use limits::EXPRESSION_DEPTH_MAX;

use pattern::Pattern;

/// A part of an expression, and its place in the text.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) place: Range<usize>,
    height: usize,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Null,
    Bool(bool),
    Int(i128),
    Double(f64),
    Text(String),
    List(Vec<Node>),
    /// The whole document.
    Document,
    /// A member of the document, by its number among those that the expression names.
    Field(usize),
    /// A variable of a macro, by its depth.
    Variable(usize),
    Member(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    Has(Box<Node>, String),
    /// Whether the document has the member, by its number among those that the expression names.
    HasField(usize),
    Not(Box<Node>),
    Negate(Box<Node>),
    /// All parts of a chain of `&&`.
    And(Vec<Node>),
    /// All parts of a chain of `||`.
    Or(Vec<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    /// Condition, then, else.
    Choice(Box<[Node; 3]>),
    Call(Function, Vec<Node>),
    Matches(Box<Node>, Pattern),
    Macro(Box<Macro>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    /// Each in its order, with its text and its precedence.
    pub(super) const ALL: [(Self, &str, u8); 12] = [
        (Self::Equal, "==", 2),
        (Self::Unequal, "!=", 2),
        (Self::Less, "<", 2),
        (Self::LessOrEqual, "<=", 2),
        (Self::Greater, ">", 2),
        (Self::GreaterOrEqual, ">=", 2),
        (Self::In, "in", 2),
        (Self::Add, "+", 3),
        (Self::Subtract, "-", 3),
        (Self::Multiply, "*", 4),
        (Self::Divide, "/", 4),
        (Self::Remainder, "%", 4),
    ];

    pub(super) const fn symbol(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    LowerAscii,
    UpperAscii,
    Trim,
    Int,
    Double,
    String,
    Bool,
}

impl Function {
    /// Each in its order, with its name, its number of arguments, and whether it is written after the first, before
    /// all, or either.
    pub(super) const ALL: [(Self, &str, usize, Form); 11] = [
        (Self::Size, "size", 1, Form::Either),
        (Self::Contains, "contains", 2, Form::Method),
        (Self::StartsWith, "startsWith", 2, Form::Method),
        (Self::EndsWith, "endsWith", 2, Form::Method),
        (Self::LowerAscii, "lowerAscii", 1, Form::Method),
        (Self::UpperAscii, "upperAscii", 1, Form::Method),
        (Self::Trim, "trim", 1, Form::Method),
        (Self::Int, "int", 1, Form::Global),
        (Self::Double, "double", 1, Form::Global),
        (Self::String, "string", 1, Form::Global),
        (Self::Bool, "bool", 1, Form::Global),
    ];

    pub(super) const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// How a function is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `f(x)`
    Global,
    /// `x.f()`
    Method,
    Either,
}

/// A macro over a list, or over the names of an object's members.
#[derive(Clone, Debug)]
pub(super) struct Macro {
    pub(super) kind: MacroKind,
    pub(super) over: Node,
    /// The elements that `map` uses.
    pub(super) only: Option<Node>,
    pub(super) body: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MacroKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl MacroKind {
    pub(super) const ALL: [Self; 5] = [Self::All, Self::Exists, Self::ExistsOne, Self::Filter, Self::Map];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Exists => "exists",
            Self::ExistsOne => "exists_one",
            Self::Filter => "filter",
            Self::Map => "map",
        }
    }
}

impl Node {
    /// `None` if the tree would become too deep.
    pub(super) fn new(kind: NodeKind, place: Range<usize>) -> Option<Self> {
        let height = 1 + kind.children().map(|child| child.height).max().unwrap_or(0);
        (height <= EXPRESSION_DEPTH_MAX).then_some(Self { kind, place, height })
    }
}

impl NodeKind {
    pub(super) fn children(&self) -> Box<dyn Iterator<Item = &Node> + '_> {
        match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Double(_) | Self::Text(_) => Box::new([].into_iter()),
            Self::Document | Self::Field(_) | Self::HasField(_) | Self::Variable(_) => Box::new([].into_iter()),
            Self::Member(node, _) | Self::Has(node, _) | Self::Matches(node, _) => Box::new([&**node].into_iter()),
            Self::Not(node) | Self::Negate(node) => Box::new([&**node].into_iter()),
            Self::Index(left, right) | Self::Binary(_, left, right) => Box::new([&**left, &**right].into_iter()),
            Self::List(nodes) | Self::And(nodes) | Self::Or(nodes) | Self::Call(_, nodes) => Box::new(nodes.iter()),
            Self::Choice(nodes) => Box::new(nodes.iter()),
            Self::Macro(parts) => Box::new([&parts.over, &parts.body].into_iter().chain(&parts.only)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_kinds() {
        assert!(Binary::ALL.iter().enumerate().all(|(number, (binary, ..))| *binary as usize == number));
        assert!(Function::ALL.iter().enumerate().all(|(number, (function, ..))| *function as usize == number));
    }
}
