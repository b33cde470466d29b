//! The position of an event, and the key of a cursor.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use text::hex::{self, Hex};

/// The gateway id: the random 128-bit name of a data directory, generated once when the directory is created.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(pub [u8; 16]);

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

/// A text that is no gateway id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a gateway id has 32 hexadecimal digits, as `forebay check` shows it")]
pub struct InvalidOrigin;

crate::serde_as_text!(Origin);

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        hex::decode_array(text).map(Self).ok_or(InvalidOrigin)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The position of an event within its data directory. A shard's sequences begin at 1 and only grow; 0 means "before
/// the first event".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The shard whose journal holds the event.
    pub shard: u16,
    /// The sequence within that journal, from 1.
    pub sequence: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shard, self.sequence)
    }
}

/// A text that is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a position is a shard and a sequence, such as 0:123")]
pub struct InvalidPosition;

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let (shard, sequence) = text.split_once(':').ok_or(InvalidPosition)?;
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        match (shard.parse(), sequence.parse()) {
            (Ok(shard), Ok(sequence)) if sequence > 0 && are_digits(text.replace(':', "").as_str()) => {
                Ok(Self { shard, sequence })
            }
            _ => Err(InvalidPosition),
        }
    }
}

/// The key of a cursor: the events of one shard of one data directory that are delivered to one sink.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// The data directory of the events.
    pub origin: Origin,
    /// The shard within it.
    pub shard: u16,
    /// The sink's name in the configuration.
    pub sink: Arc<str>,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shard, self.sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        let position = Position { shard: 7, sequence: u64::MAX };
        assert_eq!(position.to_string().parse(), Ok(position));
        for wrong in ["", ":", "1", "1:", ":1", "1:0", "+1:1", "1:+1", "-1:1", "1:1:1", "65536:1", "1: 1", "a:1"] {
            assert_eq!(wrong.parse::<Position>(), Err(InvalidPosition), "{wrong}");
        }
    }

    #[test]
    fn origins_are_read_as_they_are_written() {
        let origin = Origin([0x0f; 16]);
        assert_eq!(origin.to_string().parse(), Ok(origin));
        let digits = origin.to_string();
        for wrong in ["", &digits[1..], &format!("{digits}0"), &format!("+{}", &digits[1..]), &digits.replace('0', "g")]
        {
            assert_eq!(wrong.parse::<Origin>(), Err(InvalidOrigin), "{wrong}");
        }
    }
}
