//! Why a record is rejected, in the form of the response to its sender.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::{JsonError, JsonErrorKind};

/// The stable name of a reason. Clients match on [`RejectionCode::as_str`]: a name is never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectionCode {
    /// The text is no JSON.
    Json,
    /// The text is not UTF-8.
    Utf8,
    /// Arrays and objects nest deeper than allowed.
    Depth,
    /// A `\u` escape names half of a surrogate pair: no text has such a character.
    Surrogate,
    /// The record has more bytes than an event may have, or the body more than a batch.
    TooLarge,
    /// The body has more records than a batch may have.
    TooManyRecords,
    /// The record isn't what its sender's protocol describes.
    Record,
}

impl RejectionCode {
    /// Every code.
    pub const ALL: [Self; 7] =
        [Self::Json, Self::Utf8, Self::Depth, Self::Surrogate, Self::TooLarge, Self::TooManyRecords, Self::Record];

    /// The name as clients see it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Utf8 => "utf8",
            Self::Depth => "depth",
            Self::Surrogate => "surrogate",
            Self::TooLarge => "too_large",
            Self::TooManyRecords => "too_many_records",
            Self::Record => "record",
        }
    }
}

impl Serialize for RejectionCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl From<JsonErrorKind> for RejectionCode {
    fn from(kind: JsonErrorKind) -> Self {
        match kind {
            JsonErrorKind::Syntax => Self::Json,
            JsonErrorKind::Utf8 => Self::Utf8,
            JsonErrorKind::Depth => Self::Depth,
            JsonErrorKind::Surrogate => Self::Surrogate,
        }
    }
}

/// A record that is rejected: which one, the place, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordRejection {
    /// The line or element, from 1; 0 for a single payload.
    pub line: u32,
    /// The place in the value, as a JSON pointer; `None` if the text has no value yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The reason as a stable name.
    pub code: RejectionCode,
    /// The reason as a message.
    pub detail: Cow<'static, str>,
    /// The place in the text of the line or element, in bytes from 0; `None` if the reason has no such place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
}

impl RecordRejection {
    /// The rejection of record `line` because its text is not valid JSON.
    #[must_use]
    pub fn of_json(line: u32, error: JsonError) -> Self {
        let JsonError { offset, kind, detail } = error;
        Self { line, pointer: None, code: kind.into(), detail, offset: Some(offset) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_snake_case_and_differ() {
        let names: Vec<_> = RejectionCode::ALL.iter().map(|code| code.as_str()).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')), "{name}");
            assert!(!names[..at].contains(name), "{name}");
        }
    }

    #[test]
    fn rejection_is_written_as_in_the_response() {
        let error = crate::check(b"[1,\n 2").unwrap_err();
        let written = serde_json::to_string(&RecordRejection::of_json(3, error)).unwrap();
        assert_eq!(
            written,
            r#"{"line":3,"code":"json","detail":"the text ends within an array, before its closing `]`","offset":6}"#
        );
    }
}
