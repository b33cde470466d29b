//! Subjects: what messages of events and of cursors are published under, and whether a stream takes them.

use std::fmt;
use std::str::FromStr;

use event::Lane;
use text::rfc3339;

use super::stream_name::StreamName;
use sink::Record;

/// Bytes of a pattern: with the longest type in each of its places, a subject stays far below the 4 KiB that a server takes.
const PATTERN_BYTES_MAX: usize = 160;
/// What subjects of Forebay's own begin with.
const OWN: &str = "forebay";

/// A part of a subject between two dots.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    Type,
    Day,
    Hour,
}

/// A subject, in which `{type}` stands for the event's type, `{day}` and `{hour}` for its time. Nothing of a payload can get into
/// a subject, and neither can the time of the delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectPattern {
    text: String,
    tokens: Vec<Token>,
}

/// Why a text is no pattern of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubject {
    /// It has no bytes or too many.
    #[error("a subject has 1 to {PATTERN_BYTES_MAX} bytes here")]
    Length,
    /// Two dots behind one another, or one at an end.
    #[error("between dots, before the first and behind the last one something must stand")]
    Empty,
    /// A character that means something else in subjects, or that tools don't take.
    #[error("{0:?} can't stand in a subject here: A to Z, a to z, 0 to 9, `-`, `_` and `.` can")]
    Character(char),
    /// Braces without a known name, or with something beside them.
    #[error("braces stand between dots alone, around `type`, `day` or `hour`")]
    Braces,
    /// The stream would take every subject, the server's own among them.
    #[error("a subject begins with a text of its own, as in events.{{type}}")]
    Beginning,
    /// As Forebay's own subjects begin.
    #[error("a subject can't begin with `{OWN}.`: those of cursors do")]
    Own,
}

impl FromStr for SubjectPattern {
    type Err = InvalidSubject;

    fn from_str(text: &str) -> Result<Self, InvalidSubject> {
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(InvalidSubject::Length);
        }
        let tokens: Vec<Token> = text.split('.').map(token).collect::<Result<_, _>>()?;
        match tokens.first() {
            Some(Token::Text(first)) if first == OWN => Err(InvalidSubject::Own),
            Some(Token::Text(_)) => Ok(Self { text: text.to_owned(), tokens }),
            _ => Err(InvalidSubject::Beginning),
        }
    }
}

fn token(text: &str) -> Result<Token, InvalidSubject> {
    match text {
        "" => Err(InvalidSubject::Empty),
        "{type}" => Ok(Token::Type),
        "{day}" => Ok(Token::Day),
        "{hour}" => Ok(Token::Hour),
        _ if text.contains(['{', '}']) => Err(InvalidSubject::Braces),
        _ => match text.chars().find(|c| !can_stand(*c)) {
            Some(other) => Err(InvalidSubject::Character(other)),
            None => Ok(Token::Text(text.to_owned())),
        },
    }
}

const fn can_stand(c: char) -> bool {
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

    /// What a stream must listen to so that it takes all of them: a type may be several tokens.
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
        // Names of sinks have no others; what has them all the same stays one token, and its own.
        if can_stand(c) { sink.push(c) } else { sink.push_str(&format!("={:x}=", u32::from(c))) }
    }
    format!("{OWN}.cursors.{stream}.{}.{}.{sink}", lane.origin, lane.shard)
}

/// The subject of a stream's mark, which no lane's cursor has.
pub(super) fn of_mark(stream: &StreamName) -> String {
    format!("{OWN}.cursors.{stream}.mark")
}

/// What a stream must listen to so that it takes its cursors.
pub(super) fn of_cursors(stream: &StreamName) -> String {
    format!("{OWN}.cursors.{stream}.>")
}

/// Whether what listens to `wildcard` gets `subject`, where `*` is any token and `>` all that follow, of which there is one at least.
/// `subject` may have wildcards too: then it must get all that they stand for.
pub(super) fn takes(wildcard: &str, subject: &str) -> bool {
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
    fn subjects_take_the_type_and_the_time_and_nothing_else() {
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
            ("", InvalidSubject::Length),
            (&"a".repeat(161), InvalidSubject::Length),
            ("a..b", InvalidSubject::Empty),
            (".a", InvalidSubject::Empty),
            ("a.", InvalidSubject::Empty),
            ("a.*", InvalidSubject::Character('*')),
            ("a.>", InvalidSubject::Character('>')),
            ("a b", InvalidSubject::Character(' ')),
            ("$JS.a", InvalidSubject::Character('$')),
            ("a.x{type}", InvalidSubject::Braces),
            ("a.{id}", InvalidSubject::Braces),
            ("{type}", InvalidSubject::Beginning),
            ("forebay.{type}", InvalidSubject::Own),
        ] {
            assert_eq!(wrong.parse::<SubjectPattern>(), Err(why), "{wrong}");
        }
    }

    #[test]
    fn a_lanes_cursor_has_a_subject_that_no_other_lane_has() {
        let lane = |sink: &str| Lane { origin: event::Origin([7; 16]), shard: 3, sink: sink.into() };
        let stream: StreamName = "EVENTS".parse().unwrap();
        let subject = |sink| of_cursor(&stream, &lane(sink));
        assert_eq!(subject("live-dead"), format!("forebay.cursors.EVENTS.{}.3.live-dead", "07".repeat(16)));
        assert_eq!(subject("a.b*"), format!("forebay.cursors.EVENTS.{}.3.a=2e=b=2a=", "07".repeat(16)));
        assert!(takes(&of_cursors(&stream), &subject("a")));
    }

    #[test]
    fn a_stream_takes_what_its_subjects_stand_for() {
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
            assert_eq!(takes(wildcard, subject), is_taken, "{wildcard} {subject}");
        }
    }
}
