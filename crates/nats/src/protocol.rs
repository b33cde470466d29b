//! NATS' protocol: encodes commands, and parses frames.

use std::ops::Range;

use bytes::Bytes;

use crate::error::Error;
use crate::message::{HEADERS, Message};

/// Bytes of a received message: a server accepts less, unless its limit of pending bytes is raised.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a line: the server's description of itself.
const LINE_BYTES_MAX: usize = 256 * 1024;

const INVALID_FRAME: Error =
    Error::Unexpected("the response isn't in NATS' protocol: check that `url` is the URL of a NATS server");

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
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

/// A command without a payload.
pub(crate) fn command(output: &mut Vec<u8>, words: &[&str]) {
    output.extend_from_slice(words.join(" ").as_bytes());
    output.extend_from_slice(b"\r\n");
}

/// A message to publish, with its headers if it has any: each with its line end.
pub fn publish(output: &mut Vec<u8>, subject: &[u8], reply: &[u8], headers: &[u8], payload: &[u8]) {
    let block = if headers.is_empty() { 0 } else { length_of_headers(headers.len()) };
    output.reserve(64 + subject.len() + reply.len() + block + payload.len());
    output.extend_from_slice(if block == 0 { b"PUB " } else { b"HPUB " });
    output.extend_from_slice(subject);
    if !reply.is_empty() {
        output.push(b' ');
        output.extend_from_slice(reply);
    }
    if block > 0 {
        number(output, block);
    }
    number(output, block + payload.len());
    output.extend_from_slice(b"\r\n");
    if block > 0 {
        for part in [HEADERS, b"\r\n", headers, b"\r\n"] {
            output.extend_from_slice(part);
        }
    }
    output.extend_from_slice(payload);
    output.extend_from_slice(b"\r\n");
}

/// A space and a number.
fn number(output: &mut Vec<u8>, mut number: usize) {
    let mut digits = [b' '; 21];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789"[number % 10];
        number /= 10;
        if number == 0 {
            break;
        }
    }
    output.extend_from_slice(&digits[at - 1..]);
}

/// The size of a block of headers whose lines have this many bytes.
#[must_use]
pub const fn length_of_headers(lines: usize) -> usize {
    HEADERS.len() + 2 + lines + 2
}

/// The frame at the beginning of `bytes` and its size; `None` if it is incomplete.
pub(crate) fn frame(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Error> {
    let within = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\n', within) else {
        return if within.len() == LINE_BYTES_MAX { Err(INVALID_FRAME) } else { Ok(None) };
    };
    let line = within[..end].strip_suffix(b"\r").ok_or(INVALID_FRAME)?;
    let verb_end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (verb, rest) = line.split_at(verb_end);
    let is = |name: &[u8]| verb.eq_ignore_ascii_case(name);
    let text = || String::from_utf8_lossy(rest.trim_ascii()).into_owned();
    let frame = match () {
        () if is(b"MSG") => return message(bytes, verb_end, end, false),
        () if is(b"HMSG") => return message(bytes, verb_end, end, true),
        () if is(b"PING") => Frame::Ping,
        () if is(b"PONG") => Frame::Pong,
        () if is(b"INFO") => Frame::Info(text()),
        () if is(b"-ERR") => Frame::Error(text().trim_matches('\'').to_owned()),
        () => return Err(INVALID_FRAME),
    };
    Ok(Some((frame, end + 1)))
}

/// A message whose first line is there, and whose end isn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun<'a> {
    pub(crate) subscription: u64,
    pub(crate) subject: &'a [u8],
    /// Bytes of the whole frame.
    pub(crate) length: usize,
}

/// The message that `bytes` begin with, after [`frame`] has found none that is complete.
pub(crate) fn begun(bytes: &[u8]) -> Option<Begun<'_>> {
    let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(LINE_BYTES_MAX)])?;
    let line = bytes[..end].strip_suffix(b"\r")?;
    let verb_end = line.iter().position(|byte| matches!(byte, b' ' | b'\t'))?;
    let head = head(bytes, verb_end, end, line[..verb_end].eq_ignore_ascii_case(b"HMSG")).ok()?;
    Some(Begun { subscription: head.subscription, subject: &bytes[head.subject], length: end + 1 + head.all + 2 })
}

/// The parts of a message's first line.
struct MessageLine {
    subscription: u64,
    subject: Range<usize>,
    reply: Range<usize>,
    /// Bytes of the headers, and of all.
    block: usize,
    all: usize,
}

/// Parses `SUBJECT ID [REPLY] [HEADERS] BYTES` from `start` to the line's `end`.
fn head(bytes: &[u8], start: usize, end: usize, has_headers: bool) -> Result<MessageLine, Error> {
    let (words, count) = words(&bytes[..end], start).ok_or(INVALID_FRAME)?;
    let number = |word: usize| decimal(&bytes[words[word].clone()]).ok_or(INVALID_FRAME);
    let lengths = 1 + usize::from(has_headers);
    if !(2 + lengths..=3 + lengths).contains(&count) {
        return Err(INVALID_FRAME);
    }
    let all = number(count - 1)?;
    let block = if has_headers { number(count - 2)? } else { 0 };
    if all > MESSAGE_BYTES_MAX || block > all {
        return Err(INVALID_FRAME);
    }
    let reply = if count == 3 + lengths { words[2].clone() } else { 0..0 };
    Ok(MessageLine { subscription: number(1)? as u64, subject: words[0].clone(), reply, block, all })
}

/// Parses a message's first line, and the content after it.
fn message(bytes: &[u8], start: usize, end: usize, has_headers: bool) -> Result<Option<(Frame, usize)>, Error> {
    let MessageLine { subscription, subject, reply, block, all } = head(bytes, start, end, has_headers)?;
    let (body, body_end) = (end + 1, end + 1 + all);
    let Some(frame) = bytes.get(..body_end + 2) else { return Ok(None) };
    if &frame[body_end..] != b"\r\n" {
        return Err(INVALID_FRAME);
    }
    let headers = body..body + block;
    let frame = Bytes::copy_from_slice(frame);
    let message = Message { subscription, subject, reply, headers, end: body_end, frame };
    Ok(Some((Frame::Message(message), body_end + 2)))
}

/// The words of a line from `start`; `None` if there are more than five.
fn words(line: &[u8], mut start: usize) -> Option<([Range<usize>; 5], usize)> {
    let (mut words, mut count) = ([const { 0..0 }; 5], 0);
    while start < line.len() {
        let rest = &line[start..];
        let length = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        if length > 0 {
            *words.get_mut(count)? = start..start + length;
            count += 1;
        }
        start += length + 1;
    }
    Some((words, count))
}

/// A number of digits, without a sign.
fn decimal(digits: &[u8]) -> Option<usize> {
    let add = |number: usize, digit: &u8| {
        number.checked_mul(10)?.checked_add(usize::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?))
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

#[cfg(test)]
mod tests;
