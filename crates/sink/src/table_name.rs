//! Names of tables. They come from configuration and an allow-list, never from a payload.

use text::{CheckedName, NameRule};

/// Bytes of a table's name: the limit that all our stores accept.
const NAME_BYTES_MAX: usize = 63;
/// Prefixes that stores and Forebay reserve.
const RESERVED: [&str; 2] = ["sqlite_", "forebay_"];

/// A table's name. Cheap to clone.
pub type TableName = CheckedName<TableNameRule>;

/// The rule of tables' names: `[A-Za-z_][A-Za-z0-9_]{0,62}`, not beginning with `sqlite_` or `forebay_` in any case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableNameRule {}

/// Why a text is not a table name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTableName {
    /// The text has no bytes or more than 63.
    #[error("a table name has 1 to {NAME_BYTES_MAX} bytes, this one has {0}")]
    Length(usize),
    /// A byte is where the grammar doesn't allow it; the offset counts from 0.
    #[error("byte {0} is not allowed: a table name has only A-Z, a-z, 0-9 and `_`, and doesn't begin with a digit")]
    Byte(usize),
    /// The name begins as only internal tables may.
    #[error("a table name can't begin with `{0}`: choose another")]
    Reserved(&'static str),
}

impl NameRule for TableNameRule {
    type Error = InvalidTableName;

    fn check(text: &str) -> Result<(), InvalidTableName> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(InvalidTableName::Length(text.len()));
        }
        let allowed =
            |(at, byte): (usize, u8)| byte == b'_' || byte.is_ascii_alphabetic() || at > 0 && byte.is_ascii_digit();
        if let Some(at) = text.bytes().enumerate().position(|byte| !allowed(byte)) {
            return Err(InvalidTableName::Byte(at));
        }
        let begins = |prefix: &&str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        match RESERVED.into_iter().find(begins) {
            Some(prefix) => Err(InvalidTableName::Reserved(prefix)),
            None => Ok(()),
        }
    }
}

/// A table's name as SQL has it. The rule allows no quote, so there is nothing to escape.
#[must_use]
pub fn quoted(name: &TableName) -> String {
    format!("\"{name}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        let longest = "a".repeat(NAME_BYTES_MAX);
        for good in ["events", "_", "Events_2", "sqlite", "forebay", "select", &longest] {
            assert_eq!(TableName::new(good).map(|name| quoted(&name)), Ok(format!("\"{good}\"")));
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for (bad, why) in [
            ("", InvalidTableName::Length(0)),
            (long.as_str(), InvalidTableName::Length(NAME_BYTES_MAX + 1)),
            ("2x", InvalidTableName::Byte(0)),
            ("a b", InvalidTableName::Byte(1)),
            ("a\"", InvalidTableName::Byte(1)),
            ("main.events", InvalidTableName::Byte(4)),
            ("é", InvalidTableName::Byte(0)),
            ("sqlite_master", InvalidTableName::Reserved("sqlite_")),
            ("Forebay_cursors", InvalidTableName::Reserved("forebay_")),
        ] {
            assert_eq!(TableName::new(bad), Err(why), "{bad}");
        }
    }
}
