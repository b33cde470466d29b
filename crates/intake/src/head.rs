//! The head of a request, as a protocol reads it.

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct IntakeHead<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// The path below the root of the intake, undecoded.
    pub path: &'a str,
    /// The query without its question mark; empty without one.
    pub query: &'a str,
    /// The path and the query as the sender has written them.
    pub target: &'a str,
    /// The request line and the header lines.
    pub lines: &'a [u8],
    /// Whether the connection has TLS.
    pub has_tls: bool,
    /// When it was received: microseconds since 1970, UTC.
    pub received_at: i64,
}

impl<'a> IntakeHead<'a> {
    /// The value of the first header of this name, in any case, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All headers whose values are text.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.lines.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
            let (name, value) = str::from_utf8(line).ok()?.split_once(':')?;
            Some((name, value.trim_ascii()))
        })
    }

    /// The media type without its parameters, in lower case; empty without one.
    #[must_use]
    pub fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase()
    }

    /// The decoded value of a parameter of the query.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = self.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| form_decoded(value))
    }
}

/// Decodes a name or a value of a form or a query (WHATWG URL, `application/x-www-form-urlencoded`).
#[must_use]
pub fn form_decoded(text: &str) -> String {
    text::percent::decode_lossy(&text.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_finds_headers_and_parameters() {
        let lines =
            b"POST /x?a=1&b=c%20d+e HTTP/1.1\r\nContent-Type: Application/JSON; charset=utf-8\r\nbad: \xff\r\n\r\n";
        let head = IntakeHead {
            method: "POST",
            path: "/x",
            query: "a=1&b=c%20d+e&flag",
            target: "/x?a=1&b=c%20d+e&flag",
            lines,
            has_tls: false,
            received_at: 0,
        };
        assert_eq!(head.media_type(), "application/json");
        assert_eq!([head.header("CONTENT-TYPE").is_some(), head.header("bad").is_some()], [true, false]);
        let values = ["a", "b", "flag", "c"].map(|name| head.parameter(name));
        assert_eq!(values, [Some("1".to_owned()), Some("c d e".to_owned()), Some(String::new()), None]);
    }
}
