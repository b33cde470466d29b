//! A response, as a protocol writes it.

use std::fmt::Write;

use crate::{Problem, ProblemKind};

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// `Content-Type`; `None` without a body.
    pub content_type: Option<&'static str>,
    /// More header lines, each with its CRLF.
    pub lines: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The media type of JSON.
pub const JSON: &str = "application/json";
/// The media type of plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";

impl Reply {
    /// A response without a body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// A response in JSON.
    #[must_use]
    pub fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: Some(JSON), body: body.into(), ..Self::default() }
    }

    /// A response in plain text.
    #[must_use]
    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: Some(TEXT), body: body.into(), ..Self::default() }
    }

    /// The same with a header. A value that isn't printable ASCII is left out: it could be another header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            // Writing to a string can't fail.
            let _ = write!(self.lines, "{name}: {value}\r\n");
        }
        self
    }

    /// The same for a rejected request: temporary trouble says when to retry.
    #[must_use]
    pub fn of_problem(self, problem: &Problem) -> Self {
        let this = Self { status: problem.status(), ..self };
        match problem.kind {
            ProblemKind::Unavailable => this.with_header("retry-after", "1"),
            _ => this,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_no_line_ends() {
        let reply = Reply::empty(200).with_header("a", "b c").with_header("x", "y\r\nz: 1").with_header("u", "é");
        assert_eq!(reply.lines, "a: b c\r\n");
    }
}
