//! Splits the text of an expression into tokens.

use std::ops::Range;

use super::InvalidExpression;
use super::literal::{self, NumberToken};

/// A token, with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind<'t>,
    pub(super) place: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'t> {
    Int(i128),
    Double(f64),
    Text(String),
    Name(&'t str),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

/// The longer ones first: the first match counts.
const SYMBOLS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ",", ".", "(", ")", "[", "]",
];

/// All tokens of a text; the last one is its end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, InvalidExpression> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        at = text.len() - skip_blanks(&text[at..]).len();
        let (kind, length) = token(text, at)?;
        let is_end = kind == TokenKind::End;
        found.push(Token { kind, place: at..at + length });
        if is_end {
            return Ok(found);
        }
        at += length;
    }
}

/// The text after the white space and the comments.
fn skip_blanks(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        match text.strip_prefix("//") {
            Some(comment) => text = comment.find('\n').map_or("", |end| &comment[end..]),
            None => return text,
        }
    }
}

fn token(text: &str, at: usize) -> Result<(TokenKind<'_>, usize), InvalidExpression> {
    let rest = &text[at..];
    let fail = |place: Range<usize>, message: String| InvalidExpression::new(text, place, message);
    let Some(first) = rest.chars().next() else { return Ok((TokenKind::End, 0)) };
    if literal::begins_number(rest) {
        let length = literal::number_length(rest);
        let number = literal::number(&rest[..length]).map_err(|message| fail(at..at + length, message.into()))?;
        let kind = match number {
            NumberToken::Int(number) => TokenKind::Int(number),
            NumberToken::Double(number) => TokenKind::Double(number),
        };
        return Ok((kind, length));
    }
    if let Some(string) = literal::begin_string(rest) {
        let (value, length) = string.read(rest).map_err(|(from, message)| fail(at + from..at + from + 1, message))?;
        return Ok((TokenKind::Text(value), length));
    }
    if is_name_start(first) {
        let length = rest.find(|other: char| !is_name_start(other) && !other.is_ascii_digit()).unwrap_or(rest.len());
        return Ok((TokenKind::Name(&rest[..length]), length));
    }
    if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
        return Ok((TokenKind::Symbol(symbol), symbol.len()));
    }
    let hint = match first {
        '=' => "to compare, write `==`",
        '&' => "for `and`, write `&&`",
        '|' => "for `or`, write `||`",
        '{' | '}' => "an expression can read maps, but not create them: remove the braces",
        '`' => "to read a member with such a name, write `payload[\"its name\"]`",
        _ => "this character is only allowed in quotes",
    };
    Err(fail(at..at + first.len_utf8(), hint.to_owned()))
}

const fn is_name_start(character: char) -> bool {
    character == '_' || character.is_ascii_alphabetic()
}
