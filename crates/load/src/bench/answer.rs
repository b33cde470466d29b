//! Finds the end of an answer in the bytes received so far.

use std::borrow::Cow;

use httparse::{EMPTY_HEADER, Header, Response, Status};

/// Far above what Forebay and the proxies in front of it send.
pub(crate) const HEADERS_MAX: usize = 64;

/// A whole answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    /// Whether the server closes the connection after it.
    pub(super) closes: bool,
    pub(super) body: Cow<'a, [u8]>,
    /// How many of the bytes belong to it.
    pub(super) length: usize,
}

/// Bytes that are no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server's response is not HTTP/1.1 with a Content-Length: check that the URL is Forebay's")]
pub(crate) struct Malformed;

/// The first answer in `bytes`; none while its end isn't there.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Answer<'_>>, Malformed> {
    let mut before = 0;
    loop {
        let Some((head, facts)) = parse_head(&bytes[before..])? else { return Ok(None) };
        let start = before + head;
        // 100 Continue and its like only announce the answer.
        if (100..200).contains(&facts.status) {
            before = start;
            continue;
        }
        let Some((body, taken)) = body(&bytes[start..], &facts)? else { return Ok(None) };
        let Facts { status, closes, .. } = facts;
        return Ok(Some(Answer { status, closes, body, length: start + taken }));
    }
}

/// The content of a head.
pub(crate) struct Facts {
    pub(crate) status: u16,
    /// Whether the server closes the connection after the answer.
    pub(crate) closes: bool,
    pub(crate) framing: Option<Framing>,
}

/// How the end of a body is found.
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// The first head in `bytes`, and its length; none while its end isn't there.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Option<(usize, Facts)>, Malformed> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut response = Response::new(&mut headers);
    let Status::Complete(length) = response.parse(bytes).map_err(|_| Malformed)? else { return Ok(None) };
    let status = response.code.ok_or(Malformed)?;
    // HTTP/1.0 closes by default, and its exceptions aren't worth reading.
    let mut facts = Facts { status, closes: response.version != Some(1), framing: None };
    for header in &*response.headers {
        take_header(&mut facts, header)?;
    }
    if matches!(status, 204 | 304) {
        facts.framing = Some(Framing::Length(0));
    }
    Ok(Some((length, facts)))
}

fn take_header(facts: &mut Facts, header: &Header<'_>) -> Result<(), Malformed> {
    let value = header.value.trim_ascii();
    let number = || std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
    let is = |name: &str| header.name.eq_ignore_ascii_case(name);
    if is("content-length") {
        let length = number().and_then(|length| usize::try_from(length).ok()).ok_or(Malformed)?;
        facts.framing.get_or_insert(Framing::Length(length));
    } else if is("transfer-encoding") {
        facts.framing = Some(Framing::Chunked);
    } else if is("connection") {
        facts.closes |= value.eq_ignore_ascii_case(b"close");
    }
    Ok(())
}

type Body<'a> = Option<(Cow<'a, [u8]>, usize)>;

fn body<'a>(bytes: &'a [u8], facts: &Facts) -> Result<Body<'a>, Malformed> {
    match facts.framing {
        Some(Framing::Length(length)) => Ok(bytes.get(..length).map(|body| (Cow::Borrowed(body), length))),
        Some(Framing::Chunked) => chunks(bytes),
        None => Err(Malformed),
    }
}

fn chunks(bytes: &[u8]) -> Result<Body<'_>, Malformed> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Status::Complete((line, size)) = httparse::parse_chunk_size(&bytes[at..]).map_err(|_| Malformed)? else {
            return Ok(None);
        };
        let start = at + line;
        if size == 0 {
            // Trailers are skipped: the request asks for none.
            let mut trailers = [EMPTY_HEADER; HEADERS_MAX];
            let parsed = httparse::parse_headers(&bytes[start..], &mut trailers).map_err(|_| Malformed)?;
            let Status::Complete((end, _)) = parsed else { return Ok(None) };
            return Ok(Some((Cow::Owned(body), start + end)));
        }
        let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size)).ok_or(Malformed)?;
        let Some(chunk) = bytes.get(start..end) else { return Ok(None) };
        body.extend_from_slice(chunk);
        at = end + 2;
        if at > bytes.len() {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cut anywhere before its end, an answer is incomplete; bytes after its end don't belong to it.
    fn check(text: &str, expected: (u16, bool, &str)) {
        for end in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..end]), Ok(None), "{:?}", &text[..end]);
        }
        let more = format!("{text}HTTP/1.1 200 OK");
        let answer = parse(more.as_bytes()).unwrap().unwrap();
        assert_eq!(answer.length, text.len());
        let body = std::str::from_utf8(&answer.body).unwrap();
        assert_eq!((answer.status, answer.closes, body), expected);
    }

    #[test]
    fn answer_ends_where_its_head_says() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", (200, false, "hi"));
        check("HTTP/1.1 503 No\r\nConnection: Close\r\nContent-Length:0\r\n\r\n", (503, true, ""));
        check("HTTP/1.1 204 No Content\r\n\r\n", (204, false, ""));
        check("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", (200, true, "x"));
        check(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 207 M\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n",
            (207, false, "abcd"),
        );
    }

    #[test]
    fn response_without_length_is_malformed() {
        for text in ["SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
            assert_eq!(parse(text.as_bytes()), Err(Malformed), "{text}");
        }
    }
}
