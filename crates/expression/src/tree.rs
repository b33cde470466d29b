//! An expression as a tree. It is as deep as [`EXPRESSION_DEPTH_MAX`] at most: working it out takes stack for each level.

use std::ops::Range;

use event::limits::EXPRESSION_DEPTH_MAX;

use pattern::Pattern;

/// A part of an expression, and where it stands in the text.
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
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
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
    /// Each with how many arguments it takes, and whether it is written behind the first, before all, or either.
    pub(super) const ALL: &[(Self, usize, Form)] = &[
        (Self::Size, 1, Form::Either),
        (Self::Contains, 2, Form::Method),
        (Self::StartsWith, 2, Form::Method),
        (Self::EndsWith, 2, Form::Method),
        (Self::LowerAscii, 1, Form::Method),
        (Self::UpperAscii, 1, Form::Method),
        (Self::Trim, 1, Form::Method),
        (Self::Int, 1, Form::Global),
        (Self::Double, 1, Form::Global),
        (Self::String, 1, Form::Global),
        (Self::Bool, 1, Form::Global),
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::LowerAscii => "lowerAscii",
            Self::UpperAscii => "upperAscii",
            Self::Trim => "trim",
            Self::Int => "int",
            Self::Double => "double",
            Self::String => "string",
            Self::Bool => "bool",
        }
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

/// A macro that goes over a list, or over the names of an object's members.
#[derive(Clone, Debug)]
pub(super) struct Macro {
    pub(super) kind: MacroKind,
    pub(super) over: Node,
    /// Which elements `map` takes.
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
    /// None where the tree would become too deep.
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
