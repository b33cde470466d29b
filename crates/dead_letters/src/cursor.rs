//! Where the next page of a list begins.

use std::fmt;
use std::str::FromStr;

/// A dead letter's place in the list of all sinks. It stays valid while dead letters are added and handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadCursor {
    /// The sink.
    pub(crate) sink: String,
    /// The position in its journal of dead letters.
    pub(crate) at: u64,
}

impl fmt::Display for DeadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at, self.sink)
    }
}

/// The text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the value of `next` in an earlier answer")]
pub struct InvalidCursor;

impl FromStr for DeadCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (at, sink) = text.split_once('.').filter(|(_, sink)| !sink.is_empty()).ok_or(InvalidCursor)?;
        Ok(Self { sink: sink.into(), at: at.parse().map_err(|_| InvalidCursor)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips() {
        let cursor = DeadCursor { sink: "back.of-house".into(), at: u64::MAX };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "7", "7.", ".local", "-1.local", "x.local"] {
            assert_eq!(wrong.parse::<DeadCursor>(), Err(InvalidCursor), "{wrong:?}");
        }
    }
}
