//! The extensions of a chunk (RFC 9112 §7.1.1): they mean nothing here, but where they end must be sure. In a quoted
//! string there may be nearly everything, and a reader that doesn't know of such strings ends elsewhere.

use crate::syntax::{BadChunk, is_of_name, is_of_value};

/// Where in the extensions of a chunk we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Behind a `;`.
    NameStart,
    Name,
    /// Behind the spaces that follow a name.
    NameEnd,
    /// Behind a `=`.
    ValueStart,
    Token,
    Quoted,
    /// Behind a `\` in a quoted string.
    Escaped,
    QuotedEnd,
    /// Behind spaces, where only another extension may come.
    Spaces,
}

impl Extension {
    /// Goes on by a byte that isn't the line's end.
    pub(crate) fn step(self, byte: u8) -> Result<Self, BadChunk> {
        let is_space = matches!(byte, b' ' | b'\t');
        match (self, byte) {
            (Self::NameStart | Self::NameEnd | Self::ValueStart | Self::Spaces, _) if is_space => Ok(self),
            (Self::NameStart | Self::Name, _) if is_of_name(byte) => Ok(Self::Name),
            (Self::Name, _) if is_space => Ok(Self::NameEnd),
            (Self::Name | Self::NameEnd, b'=') => Ok(Self::ValueStart),
            (Self::ValueStart, b'"') | (Self::Escaped, _) if is_of_value(byte) => Ok(Self::Quoted),
            (Self::ValueStart | Self::Token, _) if is_of_name(byte) => Ok(Self::Token),
            (Self::Quoted, b'"') => Ok(Self::QuotedEnd),
            (Self::Quoted, b'\\') => Ok(Self::Escaped),
            (Self::Quoted, _) if is_of_value(byte) => Ok(Self::Quoted),
            (Self::Token | Self::QuotedEnd, _) if is_space => Ok(Self::Spaces),
            (Self::Name | Self::NameEnd | Self::Token | Self::QuotedEnd | Self::Spaces, b';') => Ok(Self::NameStart),
            _ => Err(BadChunk),
        }
    }

    /// Whether the line may end here.
    pub(crate) const fn may_end(self) -> bool {
        matches!(self, Self::Name | Self::Token | Self::QuotedEnd)
    }
}
