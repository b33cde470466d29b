//! HTTP/1.1 messages, read whole and kept as their bytes, so a proxy passes them unchanged.

use std::io::{self, BufRead, Read};

/// No head and no line of a test is longer.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// A request or a response.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// All bytes.
    pub(super) bytes: Vec<u8>,
    /// The request line or the status line.
    pub(super) first_line: String,
    /// The body without the frame of chunks.
    pub(super) body: Vec<u8>,
    headers: Vec<(String, String)>,
}

impl Message {
    /// Reads a message. `None`: the stream ended before it began. `answered` is the method of the request, if the message is a response.
    pub(super) fn read(stream: &mut impl BufRead, answered: Option<&str>) -> io::Result<Option<Self>> {
        let Some(mut message) = Self::read_head(stream)? else { return Ok(None) };
        message.read_body(stream, answered)?;
        Ok(Some(message))
    }

    /// Reads the first line and the headers.
    pub(super) fn read_head(stream: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut message = Self::default();
        message.first_line = message.line(stream)?;
        if message.bytes.is_empty() {
            return Ok(None);
        }
        loop {
            let line = message.line(stream)?;
            let Some((name, value)) = line.split_once(':') else { return Ok(Some(message)) };
            message.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Reads the body.
    pub(super) fn read_body(&mut self, stream: &mut impl BufRead, answered: Option<&str>) -> io::Result<()> {
        if answered == Some("HEAD") || (answered.is_some() && matches!(self.status(), 100..=199 | 204 | 304)) {
            return Ok(());
        }
        if self.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return self.read_chunks(stream);
        }
        let length = self.header("content-length").map(str::parse).transpose().map_err(io::Error::other)?;
        let body = match length {
            Some(length) => exactly(stream, length)?,
            None if answered.is_some() => to_end(stream)?,
            None => Vec::new(),
        };
        self.bytes.extend(&body);
        self.body = body;
        Ok(())
    }

    fn read_chunks(&mut self, stream: &mut impl BufRead) -> io::Result<()> {
        loop {
            let line = self.line(stream)?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
            let chunk = exactly(stream, length)?;
            self.bytes.extend(&chunk);
            self.body.extend(&chunk);
            if length == 0 {
                // Trailers, until an empty line.
                while !self.line(stream)?.is_empty() {}
                return Ok(());
            }
            self.line(stream)?;
        }
    }

    /// One line, without its end.
    fn line(&mut self, stream: &mut impl BufRead) -> io::Result<String> {
        let begin = self.bytes.len();
        stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.bytes)?;
        let line = String::from_utf8_lossy(&self.bytes[begin..]);
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// The value of the first header of this name, which is in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The method of a request.
    pub(super) fn method(&self) -> &str {
        self.first_line.split(' ').next().unwrap_or_default()
    }

    /// The status of a response; 0 if it has none.
    pub(super) fn status(&self) -> u16 {
        self.first_line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    /// Whether the connection ends after it.
    pub(super) fn is_last(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

fn exactly(stream: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn to_end(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_one_after_another() {
        let text = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x\r\nd\r\n0\r\n\r\n\
                     PUT /b HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /c HTTP/1.1\r\n\r\n";
        let mut stream = &text[..];
        let mut read = || Message::read(&mut stream, None).unwrap();
        let first = read().unwrap();
        assert_eq!((first.method(), &first.body[..]), ("POST", &b"abcd"[..]));
        assert_eq!(read().unwrap().body, b"hi");
        assert_eq!(read().unwrap().method(), "GET");
        assert!(read().is_none());
    }

    #[test]
    fn responses_end_as_their_request_says() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n";
        let message = Message::read(&mut &head[..], Some("HEAD")).unwrap().unwrap();
        assert_eq!((message.status(), message.body.len(), message.is_last()), (200, 0, true));
        let text = b"HTTP/1.1 200 OK\r\n\r\nto the end";
        assert_eq!(Message::read(&mut &text[..], Some("GET")).unwrap().unwrap().body, b"to the end");
    }
}
