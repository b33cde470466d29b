//! Names of indices and data streams, derived from an event.

use std::fmt;
use std::str::FromStr;

use text::rfc3339;

use sink::Record;

/// Bytes of a pattern: with the longest type in it, a name is below the store's limit of 255 bytes.
const PATTERN_BYTES_MAX: usize = 160;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Type,
    Day,
    Hour,
}

/// The name of an index, in which `{type}` is replaced by the event's type, and `{day}` and `{hour}` by its time.
/// Payloads and the time of delivery never become parts of a name: a duplicate finds its first copy in the same index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPattern {
    text: String,
    parts: Vec<Part>,
}

/// Why a text isn't a pattern of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIndex {
    /// It is empty or too long.
    #[error("an index name must have 1 to {PATTERN_BYTES_MAX} bytes")]
    Length,
    /// A character that isn't allowed.
    #[error("{0:?} isn't allowed in an index name: use a to z, 0 to 9, `-`, `_`, `+` and `.`")]
    Character(char),
    /// A first character that isn't allowed.
    #[error("an index name must begin with a lowercase letter, a digit or braces")]
    Beginning,
    /// Braces without a known placeholder.
    #[error("only {{type}}, {{day}} and {{hour}} are allowed in braces")]
    Braces,
}

impl FromStr for IndexPattern {
    type Err = InvalidIndex;

    fn from_str(text: &str) -> Result<Self, InvalidIndex> {
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(InvalidIndex::Length);
        }
        if !text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '{') {
            return Err(InvalidIndex::Beginning);
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, braced)) = rest.split_once('{') {
            let (name, after) = braced.split_once('}').ok_or(InvalidIndex::Braces)?;
            parts.push(literal(before)?);
            parts.push(match name {
                "type" => Part::Type,
                "day" => Part::Day,
                "hour" => Part::Hour,
                _ => return Err(InvalidIndex::Braces),
            });
            rest = after;
        }
        parts.push(literal(rest)?);
        parts.retain(|part| *part != Part::Text(String::new()));
        Ok(Self { text: text.to_owned(), parts })
    }
}

fn literal(text: &str) -> Result<Part, InvalidIndex> {
    let is_allowed = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_+.".contains(*c);
    match text.chars().find(|c| !is_allowed(c)) {
        Some('}') => Err(InvalidIndex::Braces),
        Some(other) => Err(InvalidIndex::Character(other)),
        None => Ok(Part::Text(text.to_owned())),
    }
}

impl IndexPattern {
    /// Whether there is another name for each day or hour.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Day | Part::Hour))
    }

    /// The name, if all events have the same one.
    pub(super) fn only_name(&self) -> Option<&str> {
        self.parts.iter().all(|part| matches!(part, Part::Text(_))).then_some(&self.text)
    }

    /// The name for an event.
    pub(super) fn of(&self, record: &Record<'_>) -> String {
        let (day, hour) =
            if self.has_time() { rfc3339::day_and_hour(record.naming_time()) } else { Default::default() };
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Type => record.type_name.to_owned(),
            Part::Day => day.clone(),
            Part::Hour => hour.clone(),
        };
        self.parts.iter().map(part).collect()
    }
}

impl IndexPattern {
    /// The wildcard that matches the names for all events of a type, or of any type: stars replace unknown parts.
    pub(super) fn wildcard(&self, type_name: Option<&str>) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Type => type_name.unwrap_or("*").to_owned(),
            Part::Day | Part::Hour => "*".to_owned(),
        };
        self.parts.iter().map(part).collect()
    }
}

impl fmt::Display for IndexPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_type_and_time_of_the_event() {
        let record = Record {
            sequence: 1,
            id: event::EventId([0; 16]),
            type_name: "access.hits",
            source: "",
            received_at: 1_760_000_000_000_001,
            event_time: None,
            write: sink::Write::Insert,
            payload: b"1",
        };
        let name = |text: &str, record: &Record<'_>| text.parse::<IndexPattern>().unwrap().of(record);
        assert_eq!(name("a-{type}-{day}", &record), "a-access.hits-2025-10-09");
        assert_eq!(name("{day}-{hour}", &Record { event_time: Some(3_600_000_000), ..record }), "1970-01-01-01");
        assert_eq!(name("all", &record), "all");
        let only = |text: &str| text.parse::<IndexPattern>().unwrap().only_name().map(str::to_owned);
        assert_eq!([only("all"), only("all-{type}"), only("{day}")], [Some("all".to_owned()), None, None]);
        let wildcard = |type_name| "a-{type}-{day}".parse::<IndexPattern>().unwrap().wildcard(type_name);
        assert_eq!((wildcard(Some("b")), wildcard(None)), ("a-b-*".to_owned(), "a-*-*".to_owned()));
        assert!(!"all-{type}".parse::<IndexPattern>().unwrap().has_time());
        for (wrong, why) in [
            ("", InvalidIndex::Length),
            ("a{id}", InvalidIndex::Braces),
            ("a{day", InvalidIndex::Braces),
            ("a}b", InvalidIndex::Braces),
            ("aB", InvalidIndex::Character('B')),
            ("a,b", InvalidIndex::Character(',')),
            ("a*", InvalidIndex::Character('*')),
            ("_all", InvalidIndex::Beginning),
            ("-a", InvalidIndex::Beginning),
            (".", InvalidIndex::Beginning),
        ] {
            assert_eq!(wrong.parse::<IndexPattern>(), Err(why), "{wrong}");
        }
    }
}
