//! Saved state as text: a header with the format's name and version, then a line of JSON for each fact. A state file holds the text, and
//! adds its checksum and generations.
//!
//! An unknown fact, field or version is an error: a later version may depend on it.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::version1::from_line;

/// The format of a state file.
#[derive(Clone, Copy, Debug)]
pub struct FactFormat {
    /// Its name, in the header.
    pub name: &'static str,
    /// Facts that had another name in version 1: that name, and today's.
    pub renamed: &'static [(&'static str, &'static str)],
}

/// Version 1 of each format was lines of words: [`crate::version1`].
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    format: &'a str,
    version: u32,
}

/// Why a saved text can't be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct InvalidFact {
    /// The line, from 1.
    pub line: usize,
    /// Why this build doesn't read it.
    pub reason: String,
}

/// The text of these facts.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if JSON has no form for a fact.
pub fn encode_facts<F: Serialize>(format: &FactFormat, facts: impl IntoIterator<Item = F>) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(&Header { format: format.name, version: VERSION })?;
    text.push(b'\n');
    for fact in facts {
        serde_json::to_writer(&mut text, &fact)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Passes each fact of a text to `add`, which may reject it. Version 1 is read as well, if the text has it.
///
/// # Errors
/// [`InvalidFact`] names the first line that this build doesn't read.
pub fn decode_facts<F: DeserializeOwned>(
    format: &FactFormat,
    text: &[u8],
    mut add: impl FnMut(F) -> Result<(), String>,
) -> Result<(), InvalidFact> {
    let invalid = |line, reason| InvalidFact { line, reason };
    let text = std::str::from_utf8(text).map_err(|error| invalid(1, error.to_string()))?;
    let mut lines = text.lines().zip(1..);
    let heading = lines.next().map_or("", |(heading, _)| heading);
    let is_version1 = heading.strip_prefix(format.name) == Some(" 1");
    if !is_version1 {
        check_header(format.name, heading).map_err(|reason| invalid(1, reason))?;
    }
    for (line, number) in lines {
        let fact = match is_version1 {
            true => from_line(line, format.renamed).map_err(|error| error.to_string()),
            false => serde_json::from_str(line).map_err(|error| within_line(&error)),
        };
        fact.and_then(&mut add).map_err(|reason| invalid(number, reason))?;
    }
    Ok(())
}

fn check_header(format: &str, line: &str) -> Result<(), String> {
    let found = match serde_json::from_str(line) {
        Ok(Header { format: found, version: VERSION }) if found == format => return Ok(()),
        Ok(Header { format, version }) => format!("this is {format} of version {version}"),
        Err(error) => within_line(&error),
    };
    Err(format!("expected {format} of version {VERSION}: {found}"))
}

/// Without the number of the line, which is 1 for a text of one line.
fn within_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", ", column ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: FactFormat = FactFormat { name: "forebay-test", renamed: &[("number", "count")] };

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Fact {
        Count(u64),
    }

    fn decode(text: &str) -> Result<Vec<u64>, InvalidFact> {
        let mut facts = Vec::new();
        let add = |Fact::Count(fact)| {
            facts.push(fact);
            if fact == 7 { Err("seven".to_owned()) } else { Ok(()) }
        };
        decode_facts(&FORMAT, text.as_bytes(), add).map(|()| facts)
    }

    #[test]
    fn saved_facts_are_loaded() {
        let facts = [0, u64::MAX];
        let text = String::from_utf8(encode_facts(&FORMAT, facts.map(Fact::Count)).unwrap()).unwrap();
        assert_eq!(
            text,
            "{\"format\":\"forebay-test\",\"version\":2}\n{\"count\":0}\n{\"count\":18446744073709551615}\n"
        );
        assert_eq!(decode(&text), Ok(facts.into()));
        assert_eq!(decode("forebay-test 1\ncount 0\nnumber 18446744073709551615\n"), Ok(facts.into()));
    }

    #[test]
    fn rejected_line_is_named() {
        let header = "{\"format\":\"forebay-test\",\"version\":2}\n";
        let other = header.replace("test", "other");
        let later = header.replace('2', "3");
        for (text, line, reason) in [
            ("", 1, "expected forebay-test of version 2: EOF"),
            ("forebay-test 3\n", 1, "expected forebay-test of version 2: expected"),
            ("forebay-test 1\ncount 1\ncount 1 2\n", 3, "\"1 2\" is not a number"),
            (&other, 1, "expected forebay-test of version 2: this is forebay-other of version 2"),
            (&later, 1, "expected forebay-test of version 2: this is forebay-test of version 3"),
            (&format!("{header}{{\"count\":-1}}\n"), 2, "invalid value"),
            (&format!("{header}{{\"count\":1}}\n{{\"novel\":1}}\n"), 3, "unknown variant `novel`"),
            (&format!("{header}{{\"count\":1}}1\n"), 2, "trailing characters"),
            (&format!("{header}\n"), 2, "EOF"),
            (&format!("{header}{{\"count\":7}}\n"), 2, "seven"),
        ] {
            let error = decode(text).unwrap_err();
            assert!(error.line == line && error.reason.starts_with(reason), "{text:?}: {error}");
        }
    }
}
