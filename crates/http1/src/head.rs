//! Parses the request line and headers. httparse implements the grammar; heads that it accepts although two parsers could read them
//! differently are rejected here.

use std::mem::MaybeUninit;
use std::net::Ipv6Addr;

use httparse::{Header, Request, Status};
use limits::HEADER_BYTES_MAX;

use crate::error::{RequestError, RequestErrorKind};

use crate::error::bad;
use crate::fields::Fields;
use crate::framing::Framing;
use crate::target::{self, Target};

/// Header lines of a request: no real client sends more within [`HEADER_BYTES_MAX`].
const HEADERS_MAX: usize = 100;
/// Empty lines that may precede a request (RFC 9112 §2.2 requires that one is ignored).
const EMPTY_LINES_MAX: usize = 4;
pub(crate) const EMPTY_LINE_BYTES: usize = 2;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// To read.
    Get,
    /// To read, but for the body.
    Head,
    /// To send a body.
    Post,
    /// To learn the allowed methods.
    Options,
    /// To replace a resource.
    Put,
    /// To change a resource.
    Patch,
    /// To remove a resource.
    Delete,
    /// Another method, which isn't supported.
    Other,
}

impl Method {
    /// The method as clients write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Options => "OPTIONS",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Other => "other",
        }
    }
}

/// What happens to the connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// It stays open, the default of HTTP/1.1.
    Open,
    /// It stays open at the client's request, which the response confirms: HTTP/1.0 needs that, and with HTTP/1.1 the client learns for how
    /// long.
    KeptAlive,
    /// It is closed.
    Close,
}

/// A head that is complete and valid.
#[derive(Debug)]
pub struct Head<'a> {
    /// The method.
    pub method: Method,
    /// The target.
    pub target: Target<'a>,
    /// The header fields.
    pub fields: Fields<'a>,
    /// The received bytes of the head.
    pub bytes: &'a [u8],
    pub(crate) framing: Framing,
    pub(crate) persistence: Persistence,
    /// The client waits for a go-ahead before it sends the body.
    pub(crate) expects_continue: bool,
}

impl<'a> Head<'a> {
    /// The host that the request goes to, with its port if there is one; `None` only with HTTP/1.0.
    #[must_use]
    pub fn host(&self) -> Option<&'a [u8]> {
        self.target.authority.map(str::as_bytes).or(self.fields.host)
    }
}

/// The result of parsing the start of the received bytes.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it is matched immediately, and nearly always a head")]
pub(crate) enum Parsed<'a> {
    /// A head of so many bytes.
    Head(Head<'a>, usize),
    /// So many empty lines, and nothing else.
    EmptyLines(usize),
    /// Part of a head.
    Part,
}

/// Parses the head at the start of `bytes`, before which so many empty lines were skipped.
///
/// # Errors
/// The head is ambiguous, not HTTP, or too long.
pub(crate) fn parse(bytes: &[u8], empty_lines: usize) -> Result<Parsed<'_>, Box<RequestError>> {
    let start = skip_empty_lines(bytes, empty_lines)?;
    if start > 0 && start == bytes.len() {
        return Ok(Parsed::EmptyLines(start / EMPTY_LINE_BYTES));
    }
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
    let mut request = Request::new(&mut []);
    let status = request
        .parse_with_uninit_headers(&bytes[start..], &mut headers)
        .map_err(|error| of_parse(error, &bytes[start..]))?;
    let length = match status {
        Status::Complete(length) => start + length,
        Status::Partial => bytes.len(),
    };
    if length > HEADER_BYTES_MAX {
        return Err(too_long(&bytes[start..]));
    }
    if status.is_partial() {
        return Ok(Parsed::Part);
    }
    check_line_ends(&bytes[start..length], request.headers.len() + 2)?;
    Ok(Parsed::Head(head(&request, &bytes[start..length])?, length))
}

fn too_long(bytes: &[u8]) -> Box<RequestError> {
    let line = &bytes[..bytes.len().min(HEADER_BYTES_MAX)];
    if memchr::memchr(b'\n', line).is_none() {
        let detail = format!("the request line is longer than {HEADER_BYTES_MAX} bytes: shorten the URL");
        return RequestError::boxed(RequestErrorKind::TargetTooLong, detail);
    }
    let detail =
        format!("the request line and headers are longer than {HEADER_BYTES_MAX} bytes: send fewer or shorter headers");
    RequestError::boxed(RequestErrorKind::HeaderTooLarge, detail)
}

/// Whether a head may end in bytes of which the first `known` are known to contain no end. It is cheap, so a head that arrives byte by byte
/// isn't parsed again for each byte.
pub(crate) fn may_end(bytes: &[u8], known: usize) -> bool {
    let tail = &bytes[known.saturating_sub(2)..];
    let ends = |at: usize| matches!(&tail[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]);
    bytes.len() > HEADER_BYTES_MAX || memchr::memchr_iter(b'\n', tail).any(ends)
}

fn skip_empty_lines(bytes: &[u8], before: usize) -> Result<usize, Box<RequestError>> {
    let lines = bytes.chunks_exact(EMPTY_LINE_BYTES).take_while(|line| line == b"\r\n").count();
    if before + lines > EMPTY_LINES_MAX || bytes.get(EMPTY_LINE_BYTES * lines) == Some(&b'\n') {
        return Err(bad("too many empty lines before the request, or one that ends without CR: send none"));
    }
    Ok(EMPTY_LINE_BYTES * lines)
}

fn of_parse(error: httparse::Error, bytes: &[u8]) -> Box<RequestError> {
    match error {
        // The parser treats a space in the target as its end, and doesn't describe other invalid bytes.
        httparse::Error::Version | httparse::Error::Token if let Some(target) = target::of_broken_line(bytes) => {
            bad(target::explain(target))
        }
        httparse::Error::TooManyHeaders => RequestError::boxed(
            RequestErrorKind::HeaderTooLarge,
            format!("the request has more than {HEADERS_MAX} header lines: send fewer"),
        ),
        httparse::Error::Version => bad("the version must be HTTP/1.1 or HTTP/1.0"),
        httparse::Error::NewLine => bad(LINE_END),
        error => bad(format!("the request line or headers violate RFC 9112: {error}")),
    }
}

const LINE_END: &str = "a line of the head must end in CR LF and have no other CR or LF";

/// httparse accepts a bare LF as the end of a line, and no CR within a line. So if the lines, each with one LF, have as many CRs, each ends
/// in CR LF.
fn check_line_ends(head: &[u8], lines: usize) -> Result<(), Box<RequestError>> {
    if memchr::memchr_iter(b'\r', head).count() == lines { Ok(()) } else { Err(bad(LINE_END)) }
}

fn head<'a>(request: &Request<'_, 'a>, bytes: &'a [u8]) -> Result<Head<'a>, Box<RequestError>> {
    let is_http_11 = request.version == Some(1);
    let fields = Fields::find(request.headers)?;
    let target = request.path.unwrap_or_default();
    let target = Target::parse(target).ok_or_else(|| bad(target::explain(target.as_bytes())))?;
    let method_name = request.method.unwrap_or_default();
    check_form(method_name, target)?;
    check_host(&fields, target, is_http_11)?;
    Ok(Head {
        method: method(method_name),
        target,
        framing: fields.framing(is_http_11)?,
        persistence: persistence(&fields, is_http_11),
        expects_continue: expects_continue(&fields, is_http_11)?,
        fields,
        bytes,
    })
}

/// Some methods need a certain form of the target (RFC 9112 §3.2.3, §3.2.4).
fn check_form(method: &str, target: Target<'_>) -> Result<(), Box<RequestError>> {
    match (method, target.path) {
        ("CONNECT", _) => Err(bad("CONNECT is not supported: this server is not a proxy")),
        (method, "*") if method != "OPTIONS" => Err(bad("the target `*` is only valid with OPTIONS")),
        _ => Ok(()),
    }
}

fn method(name: &str) -> Method {
    match name {
        "POST" => Method::Post,
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "OPTIONS" => Method::Options,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        _ => Method::Other,
    }
}

/// RFC 9112 §9.3.
fn persistence(fields: &Fields<'_>, is_http_11: bool) -> Persistence {
    match (fields.asks_close, is_http_11) {
        (true, _) => Persistence::Close,
        (false, _) if fields.asks_keep_alive => Persistence::KeptAlive,
        (false, true) => Persistence::Open,
        (false, false) => Persistence::Close,
    }
}

fn check_host(fields: &Fields<'_>, target: Target<'_>, is_http_11: bool) -> Result<(), Box<RequestError>> {
    let of_target = target.authority.map(str::as_bytes);
    if [fields.host, of_target].into_iter().flatten().any(|host| !is_host(host)) {
        return Err(bad("a host must be a name or an address, with a port or without"));
    }
    match (fields.host, of_target) {
        (None, _) if is_http_11 => Err(bad("HTTP/1.1 requests need the header Host")),
        (Some(host), Some(of_target)) if !of_target.eq_ignore_ascii_case(host) => {
            Err(bad("Host and the target name different hosts: send the same host in both"))
        }
        _ => Ok(()),
    }
}

/// `uri-host [ ":" port ]` (RFC 9110 §7.2); an empty one is valid too.
fn is_host(text: &[u8]) -> bool {
    let end = match text {
        [b'[', address @ ..] => match memchr::memchr(b']', address) {
            Some(end) if is_ipv6(&address[..end]) => end + 2,
            _ => return false,
        },
        _ => text.iter().position(|byte| !is_of_name(*byte)).unwrap_or(text.len()),
    };
    match &text[end..] {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn is_ipv6(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// RFC 3986 §3.2.2, without escapes, which no host has.
const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&'..=b',' | b';' | b'=')
}

/// An expectation of HTTP/1.0 is ignored (RFC 9110 §10.1.1).
fn expects_continue(fields: &Fields<'_>, is_http_11: bool) -> Result<bool, Box<RequestError>> {
    match fields.expect {
        Some(value) if is_http_11 => match value.eq_ignore_ascii_case(b"100-continue") {
            true => Ok(true),
            false => Err(RequestError::boxed(RequestErrorKind::Expectation, "unsupported Expect: use `100-continue`")),
        },
        _ => Ok(false),
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
#[path = "head/tests.rs"]
mod tests;
