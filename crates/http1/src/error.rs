//! Why a request can't be read. It travels boxed: it is rare, and each connection's future has room for one.

use std::borrow::Cow;

/// Why a request can't be read. The service that the transport calls maps it to a status and a body.
#[derive(Debug)]
pub struct RequestError {
    /// The stable reason.
    pub kind: RequestErrorKind,
    /// A title, if the reason's own isn't exact enough.
    pub title: Option<&'static str>,
    /// What is wrong, and what the client should do.
    pub detail: Cow<'static, str>,
}

/// The kinds of errors of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestErrorKind {
    /// The request is not valid HTTP.
    BadRequest,
    /// The connection ended before the body did.
    BodyIncomplete,
    /// The body can't be decoded.
    Encoding,
    /// The value of `Expect` isn't supported.
    Expectation,
    /// The request line and the headers have too many bytes or lines.
    HeaderTooLarge,
    /// The request line has too many bytes.
    TargetTooLong,
    /// The request arrives too slowly.
    Timeout,
    /// The body has too many bytes.
    TooLarge,
}

impl RequestError {
    pub(crate) fn boxed(kind: RequestErrorKind, detail: impl Into<Cow<'static, str>>) -> Box<Self> {
        Box::new(Self { kind, title: None, detail: detail.into() })
    }

    pub(crate) fn titled(title: &'static str, detail: impl Into<Cow<'static, str>>) -> Box<Self> {
        Box::new(Self { title: Some(title), ..*bad(detail) })
    }
}

/// The request is not valid HTTP.
pub(crate) fn bad(detail: impl Into<Cow<'static, str>>) -> Box<RequestError> {
    RequestError::boxed(RequestErrorKind::BadRequest, detail)
}
