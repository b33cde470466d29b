//! Errors of an expression, and of its evaluation on a document.

use std::fmt;
use std::ops::Range;

use super::value::Kind;

/// Characters of a line that are shown on either side of the wrong place.
const SHOWN: usize = 60;

/// Why a text is no expression. As text: the reason, the line, and a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}\n  {line}\n  {caret}")]
pub struct InvalidExpression {
    message: String,
    place: Range<usize>,
    line: String,
    caret: String,
}

impl InvalidExpression {
    pub(super) fn new(text: &str, place: Range<usize>, message: String) -> Self {
        let at = text.floor_char_boundary(place.start.min(text.len()));
        let line_start = text[..at].rfind('\n').map_or(0, |before| before + 1);
        let before = text[line_start..at].chars().rev().take(SHOWN).map(visible).collect::<Vec<_>>();
        let after = text[at..].lines().next().unwrap_or("").chars().take(SHOWN).map(visible);
        let end = text.floor_char_boundary(place.end.clamp(at, text.len()));
        let marked = text[at..end].lines().next().unwrap_or("").chars().count().clamp(1, SHOWN);
        Self {
            caret: " ".repeat(before.len()) + &"^".repeat(marked),
            line: before.into_iter().rev().chain(after).collect(),
            message,
            place,
        }
    }

    /// The reason, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The bytes of the text that are wrong.
    #[must_use]
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }
}

/// Each character takes one column, and none has an effect on a terminal.
fn visible(character: char) -> char {
    if character.is_control() { ' ' } else { character }
}

/// Why an expression has no value on a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvaluationError<'e> {
    /// The part of the expression without a value.
    pub(super) part: &'e str,
    pub(super) fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// An operator can't be applied to these two.
    Operands(&'static str, Kind, Kind),
    /// An operator, a function or a macro can't be applied to this.
    Operand(&'static str, Kind),
    /// The result isn't true or false.
    NoCondition(Kind),
    Overflow,
    DivisionByZero,
    /// The argument of a function has the right kind, but can't be converted.
    Inconvertible(&'static str),
    TooManySteps,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operands(operator, left, right) => write!(f, "{operator} can't be applied to {left} and {right}")?,
            Self::Operand(operator, operand) => write!(f, "{operator} can't be applied to {operand}")?,
            Self::NoCondition(kind) => write!(f, "the result is {kind}, but should be true or false")?,
            Self::Overflow => f.write_str("the result is an integer of more than 128 bits")?,
            Self::DivisionByZero => f.write_str("division by zero")?,
            Self::Inconvertible(function) => write!(f, "{function}() can't convert this value")?,
            Self::TooManySteps => f.write_str("the expression takes too many steps for this event: simplify it")?,
        }
        let takes_null = match self {
            Self::Operands(_, left, right) => *left == Kind::Null || *right == Kind::Null,
            Self::Operand(_, kind) | Self::NoCondition(kind) => *kind == Kind::Null,
            _ => false,
        };
        if takes_null { f.write_str("; a member that is absent is null: write `x != null && …`") } else { Ok(()) }
    }
}

impl EvaluationError<'_> {
    /// Whether it would have needed more steps than allowed.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.fault == Fault::TooManySteps
    }

    /// The reason, without the part.
    #[must_use]
    pub fn reason(&self) -> String {
        self.fault.to_string()
    }
}

impl fmt::Display for EvaluationError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part: String = self.part.chars().take(SHOWN).map(visible).collect();
        let more = if part.len() < self.part.len() { "…" } else { "" };
        write!(f, "`{part}{more}`: {}", self.fault)
    }
}

impl std::error::Error for EvaluationError<'_> {}
