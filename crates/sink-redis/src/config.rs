//! The configuration of a Redis sink: the server, the keys, and their values.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use json::JsonPointer;

use super::address::Address;
use super::deployment::{Deployment, Sentinel};
use super::server::RedisServerUrl;
use sink::Record;

/// Bytes of a key's pattern: it is a part of the names of two of Forebay's keys.
const PATTERN_BYTES_MAX: usize = 256;
/// The prefix of Forebay's own keys.
const OWN: &str = "forebay:";

/// Whether a key has the prefix of Forebay's own keys: an event written there could move a cursor.
pub(super) fn is_own(key: &str) -> bool {
    key.starts_with(OWN)
}

/// The keys, their server, and how to write them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisConfig {
    /// The server, and the account to use.
    pub server: RedisServerUrl,
    /// How to find the server.
    pub deployment: Deployment,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// The keys, or the channels of [`Structure::Publish`].
    pub key: KeyPattern,
    /// The type of their values.
    pub structure: Structure,
    /// How long the server may take for one script.
    pub timeout: Duration,
    /// The maximum of connections. In a cluster, each lane that has called recently instead has one to each node that
    /// it needs.
    pub connections_max: NonZeroUsize,
}

impl RedisConfig {
    /// The default of [`RedisConfig::connections_max`].
    pub const CONNECTIONS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

    /// The destination of events, for display.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.deployment {
            Deployment::Alone => self.server.to_string(),
            Deployment::Watched(sentinels) => {
                let sentinels: Vec<String> = sentinels.iter().map(Sentinel::to_string).collect();
                let RedisServerUrl { address, database, .. } = &self.server;
                format!("{}/{database} by sentinels {}", address.host, sentinels.join(", "))
            }
            Deployment::Cluster(more) => {
                let nodes: Vec<String> = more.iter().map(Address::to_string).collect();
                let first = self.server.address.to_string();
                format!("cluster {}", [&[first], nodes.as_slice()].concat().join(", "))
            }
        }
    }

    /// The key of an event. In a cluster, keys with an id belong to one of 16 slots, by the id's last digit.
    pub(super) fn key_of(&self, record: &Record<'_>) -> String {
        let key = self.key.of(record);
        match (&self.deployment, self.key.has_id()) {
            (Deployment::Cluster(_), true) => format!("{{{}}}{key}", last_digit(record)),
            _ => key,
        }
    }

    /// Whether one cursor is enough for a lane: all keys are on one server, or in one slot of a cluster.
    pub(super) fn has_one_place(&self) -> bool {
        let is_cluster = matches!(self.deployment, Deployment::Cluster(_));
        !(is_cluster && self.key.parts.iter().any(|part| matches!(part, Part::Type | Part::Id)))
    }

    /// The part of a record's key that decides its slot in a cluster.
    pub(super) fn place_of(&self, record: &Record<'_>) -> String {
        if self.key.has_id() { last_digit(record) } else { self.key.of(record) }
    }

    /// Forebay's own keys of a place. A digit alone isn't unique: another pattern uses the same digits.
    pub(super) fn own_of(&self, place: &str) -> OwnKeys {
        if self.key.has_id() { OwnKeys::in_braces(place, &format!("{}:", self.key.tag())) } else { OwnKeys::of(place) }
    }
}

fn last_digit(record: &Record<'_>) -> String {
    format!("{:x}", record.id.0[15] & 0xf)
}

/// Forebay's own keys, in addition to the data's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnKeys {
    /// The hash of cursors.
    pub(super) cursors: String,
    /// The hash of the revisions of results and latest values, which distinguish newer from older ones.
    pub(super) revisions: String,
}

impl OwnKeys {
    /// The keys in the slot of this key.
    fn of(key: &str) -> Self {
        Self::in_braces(key, "")
    }

    /// The keys in the slot of this text in braces, which other keys share.
    fn in_braces(braces: &str, whose: &str) -> Self {
        let own = |what| format!("{OWN}{{{braces}}}:{whose}{what}");
        Self { cursors: own("cursors"), revisions: own("revisions") }
    }
}

/// The type of value that events become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    /// An entry for each event, with the fields `id` and `payload`, and `revision` for a result; the server assigns the
    /// entry's id.
    Stream {
        /// The approximate number of entries to keep; all without it.
        entries_max: Option<u64>,
    },
    /// Payloads in order.
    List {
        /// How many to keep; all without it.
        entries_max: Option<u64>,
    },
    /// Distinct payloads.
    Set,
    /// Payloads by the event's id, in one hash; a result replaces its older revisions.
    Hash,
    /// The latest payload for each value at a pointer, in one hash.
    Latest {
        /// The pointer to the value that becomes the hash's field.
        field: JsonPointer,
    },
    /// Payloads as strings, each under a key with the event's id; a result replaces its older revisions.
    Strings,
    /// Sums, in one hash.
    Counter {
        /// The pointer to the value that becomes the hash's field.
        field: JsonPointer,
        /// The pointer to the integer that is added; without it each event counts as one.
        by: Option<JsonPointer>,
    },
    /// Messages, which only current subscribers receive: nothing is kept.
    Publish,
}

impl Structure {
    /// Whether each event has a separate key.
    #[must_use]
    pub const fn needs_id(&self) -> bool {
        matches!(self, Self::Strings)
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream { entries_max: None } => f.write_str("stream"),
            Self::Stream { entries_max: Some(max) } => write!(f, "stream of about {max} entries"),
            Self::List { entries_max: None } => f.write_str("list"),
            Self::List { entries_max: Some(max) } => write!(f, "list of {max} entries"),
            Self::Set => f.write_str("set"),
            Self::Hash => f.write_str("hash by id"),
            Self::Latest { field } => write!(f, "hash of the latest by {field}"),
            Self::Strings => f.write_str("JSON at"),
            Self::Counter { field, by: None } => write!(f, "counter by {field}"),
            Self::Counter { field, by: Some(by) } => write!(f, "counter of {by} by {field}"),
            Self::Publish => f.write_str("messages on"),
        }
    }
}

/// A part of a pattern: a text, or a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Type,
    Id,
}

/// A key, in which `{type}` is replaced by the event's type and `{id}` by its id. Payloads never become parts of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    text: String,
    parts: Vec<Part>,
}

/// Why a text isn't a pattern of keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// It is empty or too long.
    #[error("a key has 1 to {PATTERN_BYTES_MAX} bytes, and this one has {0}")]
    Length(usize),
    /// A control character.
    #[error("a key can't contain control characters")]
    Control,
    /// It has the prefix of Forebay's own keys.
    #[error("a key can't begin with `{OWN}`: these keys belong to Forebay")]
    Own,
    /// Braces without a known placeholder.
    #[error("only {{type}} and {{id}} are allowed in braces")]
    Braces,
}

impl FromStr for KeyPattern {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(InvalidKey::Length(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidKey::Control);
        }
        if is_own(text) {
            return Err(InvalidKey::Own);
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, braced)) = rest.split_once('{') {
            let (name, after) = braced.split_once('}').ok_or(InvalidKey::Braces)?;
            parts.push(literal(before)?);
            parts.push(match name {
                "type" => Part::Type,
                "id" => Part::Id,
                _ => return Err(InvalidKey::Braces),
            });
            rest = after;
        }
        parts.push(literal(rest)?);
        parts.retain(|part| *part != Part::Text(String::new()));
        Ok(Self { text: text.to_owned(), parts })
    }
}

fn literal(text: &str) -> Result<Part, InvalidKey> {
    if text.contains('}') { Err(InvalidKey::Braces) } else { Ok(Part::Text(text.to_owned())) }
}

impl KeyPattern {
    /// Whether each event has a separate key.
    #[must_use]
    pub fn has_id(&self) -> bool {
        self.parts.contains(&Part::Id)
    }

    /// The key of an event.
    pub(super) fn of(&self, record: &Record<'_>) -> String {
        let mut key = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => key.push_str(text),
                Part::Type => key.push_str(record.type_name),
                Part::Id => key.push_str(&record.id.to_string()),
            }
        }
        key
    }

    /// Forebay's own keys for all keys of the pattern. The text in braces decides a key's slot: a pattern without
    /// placeholders has the same slot.
    pub(super) fn own(&self) -> OwnKeys {
        OwnKeys::of(&self.tag())
    }

    /// The pattern without its braces.
    pub(super) fn tag(&self) -> String {
        self.text.chars().filter(|c| !"{}".contains(*c)).collect()
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_contain_only_type_and_id() {
        let key: KeyPattern = "app:{type}:{id}!".parse().unwrap();
        let record = Record {
            sequence: 1,
            id: event::EventId([0; 16]),
            type_name: "access",
            source: "",
            received_at: 0,
            event_time: None,
            write: sink::Write::Insert,
            payload: b"1",
        };
        assert_eq!(key.of(&record), "app:access:00000000-0000-0000-0000-000000000000!");
        assert_eq!(key.own().cursors, "forebay:{app:type:id!}:cursors");
        assert_eq!("events".parse::<KeyPattern>().unwrap().own().revisions, "forebay:{events}:revisions");
        for (wrong, why) in [
            ("", InvalidKey::Length(0)),
            ("a{day}", InvalidKey::Braces),
            ("a{type", InvalidKey::Braces),
            ("a}b", InvalidKey::Braces),
            ("a\nb", InvalidKey::Control),
            ("forebay:{type}", InvalidKey::Own),
        ] {
            assert_eq!(wrong.parse::<KeyPattern>(), Err(why), "{wrong}");
        }
    }
}
