//! Redis' protocol (RESP 2): encodes commands and parses responses.

use std::collections::HashMap;

use super::error::Failure;

/// Bytes of one response: the longest one has the reasons why each record of a script is rejected.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum depth of nested lists.
const DEPTH_MAX: usize = 4;
/// Bytes of a line: an error, a number, a length.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// A command that is being built.
pub(super) struct Command {
    words: usize,
    bytes: Vec<u8>,
}

impl Command {
    /// A command that begins with these arguments, the first of which is its name.
    pub(super) fn new(words: &[&str]) -> Self {
        let mut command = Self { words: 0, bytes: Vec::new() };
        words.iter().for_each(|word| command.word(word));
        command
    }

    /// Adds an argument, which may contain any bytes.
    pub(super) fn word(&mut self, word: impl AsRef<[u8]>) {
        let word = word.as_ref();
        self.words += 1;
        self.bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// The encoded command: the number of its arguments is first.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.splice(0..0, format!("*{}\r\n", self.words).into_bytes());
        self.bytes
    }
}

/// A server's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A text: a status, or a value.
    Text(String),
    /// An error: a word in capitals, and a message.
    Error(String),
    /// A whole number.
    Number(i64),
    /// No value.
    Nothing,
    /// Several.
    List(Vec<Answer>),
}

impl Answer {
    /// The text; `None` for anything else.
    pub(super) fn text(self) -> Option<String> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The texts of a list; `None` if anything in it is something else.
    pub(super) fn texts(self) -> Option<Vec<String>> {
        let Self::List(list) = self else { return None };
        list.into_iter().map(Self::text).collect()
    }

    /// The same for a list in which each name is followed by its value.
    pub(super) fn pairs(self) -> Option<HashMap<String, String>> {
        let mut texts = self.texts()?.into_iter();
        Some(std::iter::from_fn(|| Some((texts.next()?, texts.next()?))).collect())
    }
}

/// The response at the beginning of `bytes` and its size; `None` if it is incomplete.
pub(super) fn answer(bytes: &[u8]) -> Result<Option<(Answer, usize)>, Failure> {
    let mut reading = Reading { bytes, at: 0 };
    let answer = reading.answer(0)?;
    if answer.is_none() && bytes.len() > ANSWER_BYTES_MAX {
        return Err(Failure::Unexpected(
            "a response is longer than expected: check that `url` is the URL of a Redis server",
        ));
    }
    Ok(answer.map(|answer| (answer, reading.at)))
}

struct Reading<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reading<'a> {
    fn answer(&mut self, depth: usize) -> Result<Option<Answer>, Failure> {
        let Some(line) = self.line()? else { return Ok(None) };
        let (kind, rest) = line.split_at_checked(1).unwrap_or_default();
        let text = || String::from_utf8_lossy(rest).into_owned();
        Ok(match kind {
            b"+" => Some(Answer::Text(text())),
            b"-" => Some(Answer::Error(text())),
            b":" => Some(Answer::Number(number(rest)?)),
            b"$" => self.value(number(rest)?)?,
            b"*" if depth < DEPTH_MAX => self.list(number(rest)?, depth)?,
            _ => {
                return Err(Failure::Unexpected(
                    "the response isn't in Redis' protocol: check that `url` is the URL of a Redis server",
                ));
            }
        })
    }

    /// A line without its end.
    fn line(&mut self) -> Result<Option<&'a [u8]>, Failure> {
        let rest = &self.bytes[self.at..];
        let within = &rest[..rest.len().min(LINE_BYTES_MAX)];
        match within.windows(2).position(|pair| pair == b"\r\n") {
            Some(end) => {
                self.at += end + 2;
                Ok(Some(&rest[..end]))
            }
            None if rest.len() >= LINE_BYTES_MAX => Err(Failure::Unexpected(
                "the response isn't in Redis' protocol: check that `url` is the URL of a Redis server",
            )),
            None => Ok(None),
        }
    }

    fn value(&mut self, length: i64) -> Result<Option<Answer>, Failure> {
        let Some(length) = bounded(length)? else { return Ok(Some(Answer::Nothing)) };
        let Some(value) = self.bytes.get(self.at..self.at + length + 2) else { return Ok(None) };
        self.at += length + 2;
        Ok(Some(Answer::Text(String::from_utf8_lossy(&value[..length]).into_owned())))
    }

    fn list(&mut self, count: i64, depth: usize) -> Result<Option<Answer>, Failure> {
        let Some(count) = bounded(count)? else { return Ok(Some(Answer::Nothing)) };
        let mut answers = Vec::new();
        for _ in 0..count {
            let Some(answer) = self.answer(depth + 1)? else { return Ok(None) };
            answers.push(answer);
        }
        Ok(Some(Answer::List(answers)))
    }
}

fn number(text: &[u8]) -> Result<i64, Failure> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or(Failure::Unexpected(
        "a response contains an invalid number: check that `url` is the URL of a Redis server",
    ))
}

/// A length; `None` for the length that means no value.
fn bounded(length: i64) -> Result<Option<usize>, Failure> {
    match usize::try_from(length) {
        Ok(length) if length <= ANSWER_BYTES_MAX => Ok(Some(length)),
        Err(_) if length == -1 => Ok(None),
        _ => Err(Failure::Unexpected(
            "a response is longer than expected: check that `url` is the URL of a Redis server",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_encoded_as_a_list() {
        let command = Command::new(&["SET", "k\r\n", ""]);
        assert_eq!(command.into_bytes(), b"*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
    }

    #[test]
    fn response_is_parsed_only_when_complete() {
        let whole = b"*6\r\n+OK\r\n-ERR no\r\n:-7\r\n$-1\r\n$4\r\na\r\nb\r\n*1\r\n$0\r\n\r\n";
        for end in 0..whole.len() {
            assert!(matches!(answer(&whole[..end]), Ok(None)), "at {end}");
        }
        let expected = Answer::List(vec![
            Answer::Text("OK".into()),
            Answer::Error("ERR no".into()),
            Answer::Number(-7),
            Answer::Nothing,
            Answer::Text("a\r\nb".into()),
            Answer::List(vec![Answer::Text(String::new())]),
        ]);
        let mut and_more = whole.to_vec();
        and_more.extend_from_slice(b"+");
        assert_eq!(answer(&and_more).unwrap(), Some((expected, whole.len())));
    }

    #[test]
    fn invalid_response_fails_immediately() {
        let nested = "*1\r\n".repeat(DEPTH_MAX + 1);
        let long = vec![b'+'; LINE_BYTES_MAX];
        for wrong in
            [b"HTTP/1.1 400\r\n", &b"$99999999999\r\n"[..], b"$-2\r\n", b":x\r\n", b"\r\n", nested.as_bytes(), &long]
        {
            assert!(matches!(answer(wrong), Err(Failure::Unexpected(_))), "{:?}", &wrong[..wrong.len().min(20)]);
        }
    }
}
