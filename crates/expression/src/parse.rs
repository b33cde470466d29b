//! Parses an expression: the supported part of CEL's grammar.

mod call;
mod primary;

use limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX};

use super::InvalidExpression;
use super::token::{self, Token, TokenKind};
use super::tree::{Binary, Node, NodeKind};

/// An expression that was read.
pub(super) struct Parsed {
    pub(super) root: Node,
    /// The members of the document that it names.
    pub(super) fields: Vec<String>,
    /// Whether it names the document itself.
    pub(super) names_document: bool,
}

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Parsed, InvalidExpression> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let message =
            format!("an expression has at most {EXPRESSION_BYTES_MAX} bytes, but this one has {}", text.len());
        return Err(InvalidExpression::new(text, EXPRESSION_BYTES_MAX..text.len(), message));
    }
    let tokens = token::tokens(text)?;
    let mut parser =
        Parser { text, tokens, at: 0, fields: Vec::new(), names_document: false, variables: Vec::new(), depth: 0 };
    let root = parser.expression()?;
    match parser.peek() {
        TokenKind::End => Ok(Parsed { root, fields: parser.fields, names_document: parser.names_document }),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

type Read<T = Node> = Result<T, InvalidExpression>;

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    at: usize,
    /// Members of the document that were named so far.
    fields: Vec<String>,
    names_document: bool,
    /// Variables of the macros around.
    variables: Vec<&'t str>,
    /// Expressions around.
    depth: usize,
}

/// An operator between two operands, and its precedence.
#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    Binary(Binary),
}

impl Operator {
    fn of(token: &TokenKind<'_>) -> Option<(Self, u8)> {
        let text = match token {
            TokenKind::Symbol("||") => return Some((Self::Or, 0)),
            TokenKind::Symbol("&&") => return Some((Self::And, 1)),
            TokenKind::Symbol(text) | TokenKind::Name(text) => *text,
            _ => return None,
        };
        let (binary, _, strength) = Binary::ALL.into_iter().find(|(_, symbol, _)| *symbol == text)?;
        Some((Self::Binary(binary), strength))
    }
}

impl<'t> Parser<'t> {
    /// `a ? b : c`, or an expression without it.
    fn expression(&mut self) -> Read {
        self.nested(|parser| {
            let start = parser.start();
            let condition = parser.operation(0)?;
            if !parser.take("?") {
                return Ok(condition);
            }
            let then = parser.operation(0)?;
            parser.expect(":")?;
            let otherwise = parser.expression()?;
            parser.node(NodeKind::Choice(Box::new([condition, then, otherwise])), start)
        })
    }

    /// Operands with operators between them that have at least this precedence.
    fn operation(&mut self, least: u8) -> Read {
        let start = self.start();
        let mut left = self.unary()?;
        while let Some((operator, strength)) = Operator::of(self.peek()).filter(|(_, strength)| *strength >= least) {
            let kind = match operator {
                Operator::Or => NodeKind::Or(self.chain(left, "||", strength)?),
                Operator::And => NodeKind::And(self.chain(left, "&&", strength)?),
                Operator::Binary(binary) => {
                    self.at += 1;
                    NodeKind::Binary(binary, Box::new(left), Box::new(self.operation(strength + 1)?))
                }
            };
            left = self.node(kind, start)?;
        }
        Ok(left)
    }

    /// The operands of a chain: it may be long without being deep.
    fn chain(&mut self, first: Node, operator: &str, strength: u8) -> Read<Vec<Node>> {
        let mut parts = vec![first];
        while self.take(operator) {
            parts.push(self.operation(strength + 1)?);
        }
        Ok(parts)
    }

    fn unary(&mut self) -> Read {
        let start = self.start();
        if self.take("!") {
            let operand = self.nested(Self::unary)?;
            return self.node(NodeKind::Not(Box::new(operand)), start);
        }
        if self.take("-") {
            let operand = self.nested(Self::unary)?;
            return self.node(NodeKind::Negate(Box::new(operand)), start);
        }
        self.operand()
    }

    /// A value with its suffixes: `.member`, `.method(…)`, `[index]`.
    fn operand(&mut self) -> Read {
        let start = self.start();
        let mut node = self.primary()?;
        loop {
            let kind = if self.take(".") {
                let place = self.tokens[self.at].place.clone();
                let name = self.name("a member's name")?;
                if self.take("(") {
                    self.method(node, name, place)?
                } else {
                    NodeKind::Member(Box::new(node), name.into())
                }
            } else if self.take("[") {
                let index = self.expression()?;
                self.expect("]")?;
                NodeKind::Index(Box::new(node), Box::new(index))
            } else {
                return Ok(node);
            };
            node = self.node(kind, start)?;
        }
    }

    /// Expressions up to a bracket, which follows the last one.
    fn list(&mut self, close: &'static str) -> Read<Vec<Node>> {
        let mut nodes = Vec::new();
        while !self.take(close) {
            nodes.push(self.expression()?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(nodes)
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Read) -> Read {
        if self.depth == EXPRESSION_DEPTH_MAX {
            return Err(self.too_deep(self.start()));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// A node of everything that was read since `start`.
    fn node(&self, kind: NodeKind, start: usize) -> Read {
        let end = self.at.checked_sub(1).map_or(start, |last| self.tokens[last].place.end);
        Node::new(kind, start..end).ok_or_else(|| self.too_deep(start))
    }

    fn too_deep(&self, at: usize) -> InvalidExpression {
        let message = format!("more than {EXPRESSION_DEPTH_MAX} nested levels or operators: simplify it");
        InvalidExpression::new(self.text, at..at + 1, message)
    }

    /// The next token; after the last one it stays at the end.
    fn peek(&self) -> &TokenKind<'t> {
        &self.tokens[self.at].kind
    }

    /// The offset of the next token.
    fn start(&self) -> usize {
        self.tokens[self.at].place.start
    }

    fn take(&mut self, symbol: &str) -> bool {
        let is_it = matches!(self.peek(), TokenKind::Symbol(next) if *next == symbol);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, symbol: &'static str) -> Read<()> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    fn name(&mut self, what: &str) -> Read<&'t str> {
        let TokenKind::Name(name) = *self.peek() else { return Err(self.unexpected(what)) };
        self.at += 1;
        Ok(name)
    }

    /// The error that another token was expected.
    fn unexpected(&self, wanted: &str) -> InvalidExpression {
        let hint = match self.peek() {
            TokenKind::Name("and" | "AND") => "; for `and`, write `&&`",
            TokenKind::Name("or" | "OR") => "; for `or`, write `||`",
            TokenKind::Name("not" | "NOT") => "; for `not`, write `!`",
            _ => "",
        };
        self.error(format!("expected {wanted}{hint}"))
    }

    /// An error about the next token.
    fn error(&self, message: String) -> InvalidExpression {
        InvalidExpression::new(self.text, self.tokens[self.at].place.clone(), message)
    }
}
