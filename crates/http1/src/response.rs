//! Responses, and how they are written.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use event::object::Pieces;
use http::StatusCode;

use crate::head::Persistence;

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: Option<&'static str>,
    /// After how many seconds the request may be sent again.
    pub retry_after: Option<u32>,
    /// The methods that the path takes.
    pub allow: Option<&'static str>,
    /// More lines, as they are sent.
    pub lines: &'static str,
    /// Lines of this answer alone, as they are sent.
    pub fields: Option<Box<str>>,
    /// Whether another `Origin` may get another answer.
    pub varies: bool,
    /// The CORS lines, as they are sent.
    pub cors: Option<Arc<str>>,
    /// The body.
    pub body: Vec<u8>,
    /// A body that isn't in memory as a whole, instead of `body`.
    pub streamed: Option<StreamedBody>,
    /// Counts the memory that the body takes. It is dropped when the client has received the response.
    pub reservation: Option<Box<dyn Any + Send>>,
}

/// A body that arrives piece by piece.
pub struct StreamedBody {
    /// How many bytes it has.
    pub bytes: u64,
    /// `None` for HEAD, or while they are being written.
    pub pieces: Option<Box<dyn Pieces>>,
}

impl fmt::Debug for StreamedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedBody").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// How a response is written to one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteOptions<'a> {
    /// The value of `Date`.
    pub(crate) date: &'a str,
    /// The lines that say that the connection is kept.
    pub(crate) kept_alive: &'a str,
    pub(crate) persistence: Persistence,
    /// Without its body, but with the length that the body has: HEAD.
    pub(crate) is_head: bool,
}

/// Makes a client send the body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Response {
    /// 200 without a body.
    pub const fn ok() -> Self {
        Self {
            status: StatusCode::OK,
            content_type: None,
            retry_after: None,
            allow: None,
            lines: "",
            fields: None,
            varies: false,
            cors: None,
            body: Vec::new(),
            streamed: None,
            reservation: None,
        }
    }

    /// 204 with the methods that may be used.
    pub fn with_methods(methods: &'static str) -> Self {
        Self { status: StatusCode::NO_CONTENT, allow: Some(methods), ..Self::ok() }
    }

    /// An answer with a body.
    pub fn with_body(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Self {
        Self { status, content_type: Some(content_type), body, ..Self::ok() }
    }

    pub(crate) fn write(&self, manner: WriteOptions<'_>, bytes: &mut Vec<u8>) {
        let mut text = |parts: &[&str]| parts.iter().for_each(|part| bytes.extend_from_slice(part.as_bytes()));
        match self.status {
            StatusCode::OK => text(&["HTTP/1.1 200 OK\r\n"]),
            status => text(&["HTTP/1.1 ", status.as_str(), " ", status.canonical_reason().unwrap_or_default(), "\r\n"]),
        }
        match self.streamed.as_ref().map_or(self.body.len() as u64, |streamed| streamed.bytes) {
            // RFC 9110 §8.6: it has none, and no length of none.
            0 if matches!(self.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => {}
            0 => text(&["content-length: 0\r\n"]),
            length => text(&["content-length: ", &length.to_string(), "\r\n"]),
        }
        text(&["date: ", manner.date, "\r\n"]);
        if let Some(content_type) = self.content_type {
            text(&["content-type: ", content_type, "\r\n"]);
        }
        if let Some(seconds) = self.retry_after {
            text(&["retry-after: ", &seconds.to_string(), "\r\n"]);
        }
        if let Some(methods) = self.allow {
            text(&["allow: ", methods, "\r\n"]);
        }
        text(&[self.lines, self.fields.as_deref().unwrap_or_default()]);
        if self.varies {
            text(&["vary: origin\r\n"]);
        }
        if let Some(lines) = &self.cors {
            text(&[lines]);
        }
        match manner.persistence {
            Persistence::Open => {}
            Persistence::KeptAlive => text(&[manner.kept_alive]),
            Persistence::Close => text(&["connection: close\r\n"]),
        }
        text(&["\r\n"]);
        if !manner.is_head {
            bytes.extend_from_slice(&self.body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(response: &Response, persistence: Persistence, is_head: bool) -> String {
        let mut bytes = b"before ".to_vec();
        response.write(WriteOptions { date: "D", kept_alive: "k: a\r\n", persistence, is_head }, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn response_has_only_needed_headers() {
        let short = "before HTTP/1.1 200 OK\r\ncontent-length: 0\r\ndate: D\r\n\r\n";
        assert_eq!(written(&Response::ok(), Persistence::Open, false), short);
        let full = Response {
            retry_after: Some(7),
            allow: Some("GET"),
            lines: "w: z\r\n",
            varies: true,
            cors: Some("x: y\r\n".into()),
            ..Response::with_body(StatusCode::NOT_FOUND, "a/b", b"what".to_vec())
        };
        let head = concat!(
            "before HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\ndate: D\r\ncontent-type: a/b\r\n",
            "retry-after: 7\r\nallow: GET\r\nw: z\r\nvary: origin\r\nx: y\r\nconnection: close\r\n\r\n",
        );
        assert_eq!(written(&full, Persistence::Close, true), head);
        assert_eq!(written(&full, Persistence::Close, false), head.to_owned() + "what");
        let methods = "before HTTP/1.1 204 No Content\r\ndate: D\r\nallow: GET\r\n\r\n";
        assert_eq!(written(&Response::with_methods("GET"), Persistence::Open, false), methods);
        assert!(written(&full, Persistence::KeptAlive, false).contains("\r\nk: a\r\n"));
    }
}
