//! NATS' protocol: encodes commands, and parses frames.

use super::error::Failure;

/// Bytes of a received message: the longest one describes a stream.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a line: the server's description of itself.
const LINE_BYTES_MAX: usize = 256 * 1024;
/// The beginning of a block of headers.
const HEADERS: &[u8] = b"NATS/1.0";

const INVALID_FRAME: Failure =
    Failure::Unexpected("the response isn't in NATS' protocol: check that `url` is the URL of a NATS server");

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The server's description of itself, as JSON.
    Info(String),
    /// A message for this client.
    Message(Message),
    /// The server checks whether the client responds.
    Ping,
    /// The response to a ping.
    Pong,
    /// The server's error.
    Error(String),
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) subject: String,
    /// The text after the version in the first line of its headers.
    pub(super) status: String,
    pub(super) payload: Vec<u8>,
}

/// A command without a payload.
pub(super) fn command(output: &mut Vec<u8>, words: &[&str]) {
    output.extend_from_slice(words.join(" ").as_bytes());
    output.extend_from_slice(b"\r\n");
}

/// A message to publish, with its headers if it has any: each with its line end.
pub(super) fn publish(output: &mut Vec<u8>, subject: &str, reply: Option<&str>, headers: &[u8], payload: &[u8]) {
    let reply = reply.unwrap_or_default();
    let space = if reply.is_empty() { "" } else { " " };
    if headers.is_empty() {
        output.extend_from_slice(format!("PUB {subject} {reply}{space}{}\r\n", payload.len()).as_bytes());
    } else {
        let length = length_of_headers(headers.len());
        let all = length + payload.len();
        output.extend_from_slice(format!("HPUB {subject} {reply}{space}{length} {all}\r\n").as_bytes());
        for part in [HEADERS, b"\r\n", headers, b"\r\n"] {
            output.extend_from_slice(part);
        }
    }
    output.extend_from_slice(payload);
    output.extend_from_slice(b"\r\n");
}

/// The size of a block of headers whose lines have this many bytes.
pub(super) const fn length_of_headers(lines: usize) -> usize {
    HEADERS.len() + 2 + lines + 2
}

/// The frame at the beginning of `bytes` and its size; `None` if it is incomplete.
pub(super) fn frame(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Failure> {
    let within = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = within.windows(2).position(|pair| pair == b"\r\n") else {
        return if within.len() == LINE_BYTES_MAX { Err(INVALID_FRAME) } else { Ok(None) };
    };
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| INVALID_FRAME)?;
    let (verb, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim();
    let frame = match verb.to_ascii_uppercase().as_str() {
        "MSG" => return message(bytes, end + 2, rest, false),
        "HMSG" => return message(bytes, end + 2, rest, true),
        "PING" => Frame::Ping,
        "PONG" => Frame::Pong,
        "INFO" => Frame::Info(rest.to_owned()),
        "-ERR" => Frame::Error(rest.trim_matches('\'').to_owned()),
        _ => return Err(INVALID_FRAME),
    };
    Ok(Some((frame, end + 2)))
}

/// Parses `SUBJECT ID [REPLY] [HEADERS] BYTES`, and the content after the line.
fn message(bytes: &[u8], start: usize, line: &str, has_headers: bool) -> Result<Option<(Frame, usize)>, Failure> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let number = |word: Option<&&str>| word.and_then(|word| word.parse::<usize>().ok());
    let all = number(words.last()).filter(|all| *all <= MESSAGE_BYTES_MAX).ok_or(INVALID_FRAME)?;
    let lengths = 1 + usize::from(has_headers);
    if !(2 + lengths..=3 + lengths).contains(&words.len()) {
        return Err(INVALID_FRAME);
    }
    let headers = if has_headers { number(words.get(words.len() - 2)).ok_or(INVALID_FRAME)? } else { 0 };
    let Some(body) = bytes.get(start..start + all + 2) else { return Ok(None) };
    let (headers, payload) = body[..all].split_at_checked(headers).ok_or(INVALID_FRAME)?;
    if &body[all..] != b"\r\n" || has_headers != headers.starts_with(HEADERS) {
        return Err(INVALID_FRAME);
    }
    let first = headers.strip_prefix(HEADERS).unwrap_or_default().split(|byte| *byte == b'\r').next();
    let message = Message {
        subject: words[0].to_owned(),
        status: String::from_utf8_lossy(first.unwrap_or_default()).trim().to_owned(),
        payload: payload.to_vec(),
    };
    Ok(Some((Frame::Message(message), start + all + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_encoded_with_and_without_headers() {
        let mut output = Vec::new();
        command(&mut output, &["SUB", "a", "1"]);
        publish(&mut output, "a.b", Some("r"), b"", b"x\r\n");
        publish(&mut output, "a.b", None, b"K: v\r\n", b"x");
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "SUB a 1\r\nPUB a.b r 3\r\nx\r\n\r\nHPUB a.b 18 19\r\nNATS/1.0\r\nK: v\r\n\r\nx\r\n"
        );
    }

    #[test]
    fn frame_is_parsed_only_when_complete() {
        let message = |subject: &str, status: &str, payload: &[u8]| {
            Frame::Message(Message { subject: subject.into(), status: status.into(), payload: payload.into() })
        };
        for (text, expected) in [
            ("INFO {\"a\": 1} \r\n", Frame::Info("{\"a\": 1}".into())),
            ("PING\r\n", Frame::Ping),
            ("PONG\r\n", Frame::Pong),
            ("-ERR 'Stale Connection'\r\n", Frame::Error("Stale Connection".into())),
            ("MSG a.b 1 3\r\n\r\nx\r\n", message("a.b", "", b"\r\nx")),
            ("MSG a.b 1 reply 0\r\n\r\n", message("a.b", "", b"")),
            ("HMSG a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", message("a", "503", b"")),
            ("HMSG a 1 r 18 19\r\nNATS/1.0\r\nK: v\r\n\r\nx\r\n", message("a", "", b"x")),
        ] {
            for end in 0..text.len() {
                assert!(matches!(frame(&text.as_bytes()[..end]), Ok(None)), "{text} at {end}");
            }
            assert_eq!(frame(format!("{text}PI").as_bytes()).unwrap(), Some((expected, text.len())), "{text}");
        }
    }

    #[test]
    fn invalid_frame_fails_immediately() {
        let long = vec![b'I'; LINE_BYTES_MAX];
        for wrong in [
            &b"HTTP/1.1 400\r\n"[..],
            b"\r\n",
            b"MSG a 1 99999999999\r\n",
            b"MSG a 1 -2\r\n",
            b"MSG 1 2\r\n",
            b"MSG a 1 1\r\nxyz",
            b"HMSG a 1 3 2\r\nab\r\n",
            b"HMSG a 1 2 2\r\nab\r\n",
            b"HMSG a 1 2\r\nab\r\n",
            b"\xff\r\n",
            &long,
        ] {
            assert!(matches!(frame(wrong), Err(Failure::Unexpected(_))), "{:?}", &wrong[..wrong.len().min(20)]);
        }
    }
}
