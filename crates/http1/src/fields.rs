//! The header fields that are used. A field that may occur once is rejected if it occurs twice: two parsers might use different ones.

use httparse::Header;

use crate::error::RequestError;

use crate::error::bad;
use crate::framing::Framing;

/// The fields of a head, without the spaces around their values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields<'a> {
    /// `Content-Type`.
    pub content_type: Option<&'a [u8]>,
    /// `Content-Encoding`; `,` if there are several lines.
    pub content_encoding: Option<&'a [u8]>,
    /// `Accept`, its first line.
    pub accept: Option<&'a [u8]>,
    /// `Forebay-Type`.
    pub type_name: Option<&'a [u8]>,
    /// `Idempotency-Key`.
    pub key: Option<&'a [u8]>,
    /// `Forebay-Atomic`.
    pub atomic: Option<&'a [u8]>,
    /// `Forebay-Ack`.
    pub ack: Option<&'a [u8]>,
    /// `Authorization`.
    pub authorization: Option<&'a [u8]>,
    /// `X-Api-Key`.
    pub api_key: Option<&'a [u8]>,
    /// `Origin`: the web page whose script sends the request.
    pub origin: Option<&'a [u8]>,
    /// `Access-Control-Request-Method` of a preflight.
    pub method_wished: Option<&'a [u8]>,
    /// `If-None-Match`; empty if there are several lines.
    pub none_match: Option<&'a [u8]>,
    /// `Range`; empty if there are several lines.
    pub range: Option<&'a [u8]>,
    /// `If-Range`; empty if there are several lines.
    pub if_range: Option<&'a [u8]>,
    /// `traceparent`; empty if there are several lines, which is invalid.
    pub trace_parent: Option<&'a [u8]>,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) expect: Option<&'a [u8]>,
    length: Option<u64>,
    is_chunked: bool,
    pub(crate) asks_close: bool,
    pub(crate) asks_keep_alive: bool,
}

/// The number must fit 64 bits.
const LENGTH_DIGITS_MAX: usize = 18;

impl<'a> Fields<'a> {
    /// # Errors
    /// The fields contradict each other, or can't be read in one way only.
    pub(crate) fn find(headers: &[Header<'a>]) -> Result<Self, Box<RequestError>> {
        let mut fields = Self::default();
        headers.iter().try_for_each(|header| fields.take(header.name.as_bytes(), header.value.trim_ascii()))?;
        Ok(fields)
    }

    /// Most names differ in length, so few are compared byte by byte.
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Box<RequestError>> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            4 if is("host") => once(&mut self.host, value, "Host"),
            5 if is("range") => {
                only(&mut self.range, value);
                Ok(())
            }
            6 if is("expect") => once(&mut self.expect, value, "Expect"),
            6 if is("accept") => {
                self.accept.get_or_insert(value);
                Ok(())
            }
            6 if is("origin") => once(&mut self.origin, value, "Origin"),
            8 if is("if-range") => {
                only(&mut self.if_range, value);
                Ok(())
            }
            9 if is("x-api-key") => once(&mut self.api_key, value, "X-Api-Key"),
            10 if is("connection") => {
                self.take_connection(value);
                Ok(())
            }
            11 if is("traceparent") => {
                only(&mut self.trace_parent, value);
                Ok(())
            }
            11 if is("forebay-ack") => once(&mut self.ack, value, "Forebay-Ack"),
            // Some senders have it in their defaults and set it once more.
            12 if is("content-type") && self.content_type == Some(value) => Ok(()),
            12 if is("content-type") => once(&mut self.content_type, value, "Content-Type"),
            12 if is("forebay-type") => once(&mut self.type_name, value, "Forebay-Type"),
            13 if is("if-none-match") => {
                only(&mut self.none_match, value);
                Ok(())
            }
            13 if is("authorization") => once(&mut self.authorization, value, "Authorization"),
            14 if is("content-length") => self.take_length(value),
            14 if is("forebay-atomic") => once(&mut self.atomic, value, "Forebay-Atomic"),
            15 if is("idempotency-key") => once(&mut self.key, value, "Idempotency-Key"),
            16 if is("content-encoding") => {
                self.take_content_encoding(value);
                Ok(())
            }
            17 if is("transfer-encoding") => self.take_coding(value),
            29 if is("access-control-request-method") => {
                once(&mut self.method_wished, value, "Access-Control-Request-Method")
            }
            _ => Ok(()),
        }
    }

    /// Two lines are a list, as one line with a comma is. An empty one names no coding.
    fn take_content_encoding(&mut self, value: &'a [u8]) {
        if value.is_empty() {
            return;
        }
        self.content_encoding = Some(if self.content_encoding.is_none() { value } else { b"," });
    }

    fn take_connection(&mut self, value: &[u8]) {
        for token in value.split(|byte| *byte == b',') {
            let token = token.trim_ascii();
            self.asks_close |= token.eq_ignore_ascii_case(b"close");
            self.asks_keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn take_length(&mut self, value: &[u8]) -> Result<(), Box<RequestError>> {
        let is_number = !value.is_empty() && value.len() <= LENGTH_DIGITS_MAX && value.iter().all(u8::is_ascii_digit);
        if !is_number || self.length.is_some() {
            return Err(bad("invalid Content-Length: send it once, as a decimal number"));
        }
        self.length = Some(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')));
        Ok(())
    }

    fn take_coding(&mut self, value: &[u8]) -> Result<(), Box<RequestError>> {
        if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(bad("unsupported Transfer-Encoding: use `chunked`, once"));
        }
        self.is_chunked = true;
        Ok(())
    }

    /// How the body's end is found.
    pub(crate) fn framing(&self, is_http_11: bool) -> Result<Framing, Box<RequestError>> {
        match (self.is_chunked, self.length) {
            (true, Some(_)) => Err(bad("the request has both Content-Length and Transfer-Encoding: send one of them")),
            (true, None) if !is_http_11 => Err(bad("Transfer-Encoding needs HTTP/1.1: send Content-Length, or use \
                HTTP/1.1")),
            (true, None) => Ok(Framing::chunked()),
            (false, length) => Ok(Framing::Length(length.unwrap_or(0))),
        }
    }
}

/// Reads a field that may be ignored: it is, if it occurs twice.
fn only<'a>(place: &mut Option<&'a [u8]>, value: &'a [u8]) {
    *place = Some(if place.is_none() { value } else { b"" });
}

fn once<'a>(place: &mut Option<&'a [u8]>, value: &'a [u8], name: &str) -> Result<(), Box<RequestError>> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(bad(format!("the request has more than one {name}: send it once"))),
    }
}
