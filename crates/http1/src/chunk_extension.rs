//! The extensions of a chunk (RFC 9112 §7.1.1). They are ignored, but their end must be unambiguous: a quoted string may contain almost
//! anything, and a parser that doesn't know such strings finds another end.

use crate::syntax::{BadChunk, is_of_name, is_of_value};

/// The position in the extensions of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// After a `;`.
    NameStart,
    Name,
    /// After the spaces that follow a name.
    NameEnd,
    /// After a `=`.
    ValueStart,
    Token,
    Quoted,
    /// After a `\` in a quoted string.
    Escaped,
    QuotedEnd,
    /// After spaces, where only another extension may follow.
    Spaces,
}

impl Extension {
    /// Advances by a byte that isn't the line's end.
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
