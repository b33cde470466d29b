//! What a probe is, and the requests that most of them vary.

use std::fmt;

/// Bytes that a client sends, and the expected result.
pub(super) struct Probe {
    /// The section that says so.
    pub(super) section: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) outcome: Outcome,
}

/// The expected result of a probe that a valid request follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// One answer with one of these statuses; then the connection is closed, and nothing is stored.
    Refused(&'static [u16]),
    /// One answer, then the connection is closed: the client has asked for it.
    Last(u16),
    /// One response, and another to the request after it.
    Answered(u16),
}

impl fmt::Debug for Probe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.bytes[..self.bytes.len().min(200)].escape_ascii();
        write!(formatter, "{} {:?} `{shown}`", self.section, self.outcome)
    }
}

/// A request that isn't valid HTTP.
pub(super) fn bad(section: &'static str, bytes: impl Into<Vec<u8>>) -> Probe {
    refused(section, &[400], bytes)
}

pub(super) fn refused(section: &'static str, statuses: &'static [u16], bytes: impl Into<Vec<u8>>) -> Probe {
    Probe { section, bytes: bytes.into(), outcome: Outcome::Refused(statuses) }
}

pub(super) fn good(section: &'static str, bytes: impl Into<Vec<u8>>) -> Probe {
    answered(section, 200, bytes)
}

pub(super) fn answered(section: &'static str, status: u16, bytes: impl Into<Vec<u8>>) -> Probe {
    Probe { section, bytes: bytes.into(), outcome: Outcome::Answered(status) }
}

/// An event with these header lines and this body.
pub(super) fn post(fields: &str, body: &str) -> Vec<u8> {
    format!("POST /ingest/event HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n{body}").into()
}

/// An event whose request line, or anything before its length, is this.
pub(super) fn begun(start: &str) -> Vec<u8> {
    format!("{start}\r\nContent-Length: 5\r\n\r\n[1,2]").into()
}

/// An event in chunks.
pub(super) fn chunked(body: &str) -> Vec<u8> {
    post("Transfer-Encoding: chunked", body)
}

/// A valid event, after which the connection ends.
pub(super) fn last_post(payload: &str) -> Vec<u8> {
    let length = payload.len();
    let head = "POST /ingest/event HTTP/1.1\r\nHost: x\r\nConnection: close";
    format!("{head}\r\nContent-Length: {length}\r\n\r\n{payload}").into()
}
