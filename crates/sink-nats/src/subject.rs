//! Subjects: those of events and of cursors, and whether a stream accepts them.

use std::fmt;
use std::str::FromStr;

use event::Lane;
use text::rfc3339;

use super::stream_name::StreamName;
use sink::Record;

/// Bytes of a pattern: with the longest type for each placeholder, a subject is far below the server's limit of 4 KiB.
const PATTERN_BYTES_MAX: usize = 160;
/// The first token of Forebay's own subjects.
const OWN: &str = "forebay";

/// A part of a subject between two dots.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    Type,
    Day,
    Hour,
}

/// A subject, in which `{type}` is replaced by the event's type, and `{day}` and `{hour}` by its time. Payloads and the
/// time of delivery never become parts of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectPattern {
    text: String,
    tokens: Vec<Token>,
}

/// Why a text isn't a pattern of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubjectPattern {
    /// It is empty or too long.
    #[error("a subject must have 1 to {PATTERN_BYTES_MAX} bytes")]
    Length,
    /// Two consecutive dots, or one at an end.
    #[error("a part between dots, before the first or after the last one is empty")]
    Empty,
    /// A character that has a meaning in subjects, or that tools reject.
    #[error("{0:?} isn't allowed in a subject: use A to Z, a to z, 0 to 9, `-`, `_` and `.`")]
    Character(char),
    /// Braces without a known placeholder, or with other characters in the token.
    #[error("only {{type}}, {{day}} and {{hour}} are allowed in braces, as a whole part between dots")]
    Braces,
    /// The stream would accept every subject, including the server's own.
    #[error("a subject must begin with a text, as in events.{{type}}")]
    Beginning,
    /// It begins like Forebay's own subjects.
    #[error("a subject can't begin with `{OWN}.`, as those of cursors do")]
    Own,
}

impl FromStr for SubjectPattern {
    type Err = InvalidSubjectPattern;

    fn from_str(text: &str) -> Result<Self, InvalidSubjectPattern> {
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(InvalidSubjectPattern::Length);
        }
        let tokens: Vec<Token> = text.split('.').map(token).collect::<Result<_, _>>()?;
        match tokens.first() {
            Some(Token::Text(first)) if first == OWN => Err(InvalidSubjectPattern::Own),
            Some(Token::Text(_)) => Ok(Self { text: text.to_owned(), tokens }),
            _ => Err(InvalidSubjectPattern::Beginning),
        }
    }
}

fn token(text: &str) -> Result<Token, InvalidSubjectPattern> {
    match text {
        "" => Err(InvalidSubjectPattern::Empty),
        "{type}" => Ok(Token::Type),
        "{day}" => Ok(Token::Day),
        "{hour}" => Ok(Token::Hour),
        _ if text.contains(['{', '}']) => Err(InvalidSubjectPattern::Braces),
        _ => match text.chars().find(|c| !is_allowed(*c)) {
            Some(other) => Err(InvalidSubjectPattern::Character(other)),
            None => Ok(Token::Text(text.to_owned())),
        },
    }
}

const fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

impl SubjectPattern {
    /// The subject of an event. A type's dots divide it further.
    pub(super) fn of(&self, record: &Record<'_>) -> String {
        let has_time = self.tokens.iter().any(|token| matches!(token, Token::Day | Token::Hour));
        let (day, hour) = if has_time { rfc3339::day_and_hour(record.naming_time()) } else { Default::default() };
        let part = |token: &Token| match token {
            Token::Text(text) => text.clone(),
            Token::Type => record.type_name.to_owned(),
            Token::Day => day.clone(),
            Token::Hour => hour.clone(),
        };
        self.tokens.iter().map(part).collect::<Vec<_>>().join(".")
    }

    /// The subject filter a stream needs to accept all of them. A type may have several tokens.
    pub(super) fn wildcard(&self) -> String {
        let mut parts = Vec::new();
        for token in &self.tokens {
            match token {
                Token::Text(text) => parts.push(text.as_str()),
                Token::Day | Token::Hour => parts.push("*"),
                Token::Type => {
                    parts.push(">");
                    break;
                }
            }
        }
        parts.join(".")
    }
}

impl fmt::Display for SubjectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The subject of a lane's cursor.
pub(super) fn of_cursor(stream: &StreamName, lane: &Lane) -> String {
    let mut sink = String::new();
    for c in lane.sink.chars() {
        // Names of sinks have no other characters; a name with one still becomes a single, unique token.
        if is_allowed(c) { sink.push(c) } else { sink.push_str(&format!("={:x}=", u32::from(c))) }
    }
    format!("{OWN}.cursors.{stream}.{}.{}.{sink}", lane.origin, lane.shard)
}

/// The subject of a stream's store id, which no lane's cursor has.
pub(super) fn of_mark(stream: &StreamName) -> String {
    format!("{OWN}.cursors.{stream}.mark")
}

/// The subject filter a stream needs to accept its cursors.
pub(super) fn of_cursors(stream: &StreamName) -> String {
    format!("{OWN}.cursors.{stream}.>")
}

/// Whether a listener of `wildcard` gets `subject`, where `*` is any token and `>` all following ones, at least one.
/// `subject` may have wildcards too: then all that they match must match.
pub(super) fn accepts(wildcard: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in wildcard.split('.') {
        match (wanted, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(token)) if token != ">" => {}
            (wanted, Some(token)) if wanted == token && token != ">" => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(type_name: &str) -> Record<'_> {
        Record {
            sequence: 1,
            id: event::EventId([0; 16]),
            type_name,
            source: "",
            received_at: 1_760_000_000_000_000,
            event_time: None,
            write: sink::Write::Insert,
            payload: b"1",
        }
    }

    #[test]
    fn subjects_contain_only_type_and_time() {
        for (pattern, type_name, subject, wildcard) in [
            ("events.{type}", "access", "events.access", "events.>"),
            ("events.{type}", "access.hits", "events.access.hits", "events.>"),
            ("a.{day}.{hour}.{type}.x", "b", "a.2025-10-09.08.b.x", "a.*.*.>"),
            ("orders", "access", "orders", "orders"),
        ] {
            let parsed: SubjectPattern = pattern.parse().unwrap();
            assert_eq!((parsed.of(&record(type_name)).as_str(), parsed.wildcard().as_str()), (subject, wildcard));
            assert_eq!(parsed.to_string(), pattern);
        }
        for (wrong, why) in [
            ("", InvalidSubjectPattern::Length),
            (&"a".repeat(161), InvalidSubjectPattern::Length),
            ("a..b", InvalidSubjectPattern::Empty),
            (".a", InvalidSubjectPattern::Empty),
            ("a.", InvalidSubjectPattern::Empty),
            ("a.*", InvalidSubjectPattern::Character('*')),
            ("a.>", InvalidSubjectPattern::Character('>')),
            ("a b", InvalidSubjectPattern::Character(' ')),
            ("$JS.a", InvalidSubjectPattern::Character('$')),
            ("a.x{type}", InvalidSubjectPattern::Braces),
            ("a.{id}", InvalidSubjectPattern::Braces),
            ("{type}", InvalidSubjectPattern::Beginning),
            ("forebay.{type}", InvalidSubjectPattern::Own),
        ] {
            assert_eq!(wrong.parse::<SubjectPattern>(), Err(why), "{wrong}");
        }
    }

    #[test]
    fn lanes_cursors_have_unique_subjects() {
        let lane = |sink: &str| Lane { origin: event::Origin([7; 16]), shard: 3, sink: sink.into() };
        let stream: StreamName = "EVENTS".parse().unwrap();
        let subject = |sink| of_cursor(&stream, &lane(sink));
        assert_eq!(subject("live-dead"), format!("forebay.cursors.EVENTS.{}.3.live-dead", "07".repeat(16)));
        assert_eq!(subject("a.b*"), format!("forebay.cursors.EVENTS.{}.3.a=2e=b=2a=", "07".repeat(16)));
        assert!(accepts(&of_cursors(&stream), &subject("a")));
    }

    #[test]
    fn stream_accepts_matching_subjects() {
        for (wildcard, subject, is_taken) in [
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.b.c", "a.b", false),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
            ("a.>", "a.>", true),
            ("a.*", "a.>", false),
            ("a.*", "a.*", true),
            ("a.b", "a.*", false),
        ] {
            assert_eq!(accepts(wildcard, subject), is_taken, "{wildcard} {subject}");
        }
    }
}
