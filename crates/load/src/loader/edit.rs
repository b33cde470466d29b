//! Fields that are set, lowered or trimmed while lines are read. What isn't touched stays byte for byte.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use json::JsonPointer;
use serde_json::value::RawValue;

/// The change of the value at a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// It becomes this JSON text.
    Set(String),
    /// A string becomes lower case.
    Lower,
    /// A string loses the white space around it.
    Trim,
}

/// One edit of every line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pointer: JsonPointer,
    change: Change,
    /// The containers of the place, from the inside: each with the name that the next has in it.
    around: Vec<(JsonPointer, String)>,
}

/// Why a text is no edit.
#[derive(Debug, thiserror::Error)]
pub enum InvalidEdit {
    /// There is no value to set.
    #[error("write /pointer=JSON, for example /source=\"web\" (and quote it for the shell)")]
    NoValue,
    /// The pointer is wrong.
    #[error(transparent)]
    Pointer(#[from] json::InvalidPointer),
    /// The value is no JSON.
    #[error("the value to set must be JSON: {0}")]
    Json(json::JsonError),
}

impl Edit {
    /// From `/pointer=JSON`.
    ///
    /// # Errors
    /// [`InvalidEdit`] if the text isn't that.
    pub fn set(text: &str) -> Result<Self, InvalidEdit> {
        let (pointer, value) = text.split_once('=').ok_or(InvalidEdit::NoValue)?;
        let value = json::check(value.as_bytes()).map_err(InvalidEdit::Json)?;
        // A line stays a line: within a checked text, line breaks are white space between tokens.
        Self::new(pointer, Change::Set(value.replace(['\n', '\r'], " ")))
    }

    /// Lowers the string at a pointer.
    ///
    /// # Errors
    /// [`InvalidEdit`] if the text is no pointer.
    pub fn lower(pointer: &str) -> Result<Self, InvalidEdit> {
        Self::new(pointer, Change::Lower)
    }

    /// Trims the string at a pointer.
    ///
    /// # Errors
    /// [`InvalidEdit`] if the text is no pointer.
    pub fn trim(pointer: &str) -> Result<Self, InvalidEdit> {
        Self::new(pointer, Change::Trim)
    }

    fn new(pointer: &str, change: Change) -> Result<Self, InvalidEdit> {
        let whole = pointer.parse()?;
        let mut around = Vec::new();
        let mut rest = pointer;
        while let Some((outer, name)) = rest.rsplit_once('/') {
            around.push((outer.parse()?, name.replace("~1", "/").replace("~0", "~")));
            rest = outer;
        }
        Ok(Self { pointer: whole, change, around })
    }

    /// Changes a text that was checked; says whether there was anything to change.
    fn apply(&self, text: &mut String) -> bool {
        let Some((place, new)) = self.replacement(text) else { return false };
        text.replace_range(place, &new);
        true
    }

    fn replacement(&self, text: &str) -> Option<(Range<usize>, String)> {
        let Some(old) = self.pointer.lookup(text) else { return self.addition(text) };
        let new = match &self.change {
            Change::Set(value) => Cow::Borrowed(value.as_str()),
            Change::Lower => changed(old, |string| string.to_lowercase())?,
            Change::Trim => changed(old, |string| string.trim().to_owned())?,
        };
        (new != old).then(|| (place(text, old), new.into_owned()))
    }

    /// A missing value is added as a `set` step of a type does it: as the last member of its object, or after the last element of its
    /// array. Missing or null objects on the path are created. If another value is on the path, nothing can be added.
    fn addition(&self, text: &str) -> Option<(Range<usize>, String)> {
        let Change::Set(value) = &self.change else { return None };
        let mut value = value.clone();
        for (outer, name) in &self.around {
            let quoted = serde_json::Value::from(name.as_str()).to_string();
            match outer.lookup(text) {
                None => value = format!("{{{quoted}:{value}}}"),
                Some("null") if !outer.as_str().is_empty() => {
                    return Some((place(text, outer.lookup(text)?), format!("{{{quoted}:{value}}}")));
                }
                Some(found) => {
                    let added = match found.as_bytes().first()? {
                        b'{' => format!("{quoted}:{value}"),
                        b'[' if is_next(found, name) => value,
                        _ => return None,
                    };
                    let is_empty = found[1..found.len() - 1].trim().is_empty();
                    let end = place(text, found).end - 1;
                    return Some((end..end, format!("{}{added}", if is_empty { "" } else { "," })));
                }
            }
        }
        None
    }
}

/// Whether this names the place after the last element of an array.
fn is_next(array: &str, name: &str) -> bool {
    let count = || serde_json::from_str::<Vec<&RawValue>>(array).map(|elements| elements.len());
    name == "-" || count().is_ok_and(|count| count.to_string() == name)
}

/// A JSON string after a change of its content; none for another value.
fn changed<'a>(raw: &str, change: impl Fn(&str) -> String) -> Option<Cow<'a, str>> {
    let said: String = raw.starts_with('"').then(|| serde_json::from_str(raw).ok())??;
    let new = change(&said);
    (new != said).then(|| Cow::Owned(serde_json::Value::from(new).to_string()))
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            Change::Set(value) => write!(f, "set {}={value}", self.pointer),
            Change::Lower => write!(f, "lower {}", self.pointer),
            Change::Trim => write!(f, "trim {}", self.pointer),
        }
    }
}

/// Where `part`, which was borrowed from `text`, is in it.
fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Appends a line with the edits. A line that is no JSON stays unchanged: the server reports its error.
pub(crate) fn apply(edits: &[Edit], line: &[u8], into: &mut Vec<u8>) {
    let Ok(value) = json::check(line) else { return into.extend_from_slice(line) };
    let mut text = value.to_owned();
    let mut is_changed = false;
    for edit in edits {
        is_changed |= edit.apply(&mut text);
    }
    into.extend_from_slice(if is_changed { text.as_bytes() } else { line });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(edits: &[Edit], line: &str) -> String {
        let mut out = Vec::new();
        apply(edits, line.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn edit_changes_only_the_pointers_target() {
        let set = |text| Edit::set(text).unwrap();
        for (edit, line, expected) in [
            (set("/a=1"), r#"{ "a" : 2.50 , "b":1e2}"#, r#"{ "a" : 1 , "b":1e2}"#),
            (set("/c=[1,\n2]"), r#"{"a":1 }"#, r#"{"a":1 ,"c":[1, 2]}"#),
            (set("/a=\"x\""), "{ }", r#"{ "a":"x"}"#),
            (set("/a/b~1\"=1"), r#"{"a":{}}"#, r#"{"a":{"b/\"":1}}"#),
            (set("/a/b=1"), r#"{"a":3}"#, r#"{"a":3}"#),
            (set("/1=9"), "[1, 2]", "[1, 9]"),
            (set("/a/b=1"), r#"{"a":[3]}"#, r#"{"a":[3]}"#),
            (set("/a/b/c=1"), r#"{"x":2}"#, r#"{"x":2,"a":{"b":{"c":1}}}"#),
            (set("/a/b/c=1"), r#"{"a": {} }"#, r#"{"a": {"b":{"c":1}} }"#),
            (set("/a/b=1"), r#"{"a": null}"#, r#"{"a": {"b":1}}"#),
            (set("/a=1"), "null", "null"),
            (set("/2=9"), "[1, 2]", "[1, 2,9]"),
            (set("/-=9"), "[]", "[9]"),
            (set("/a/0/b=1"), r#"{"a":[]}"#, r#"{"a":[{"b":1}]}"#),
            (set("/3=9"), "[1, 2]", "[1, 2]"),
            (set("=null"), "{}", "null"),
            (set("/a=1"), r#"{"a":1}  "#, r#"{"a":1}  "#),
            (set("/a=1"), "{no", "{no"),
            (Edit::lower("/a").unwrap(), r#"{"a":"ÄB\n","b":"C"}"#, r#"{"a":"äb\n","b":"C"}"#),
            (Edit::lower("/a").unwrap(), r#"{"a":"\u0061"}"#, r#"{"a":"\u0061"}"#),
            (Edit::lower("/a").unwrap(), r#"{"a":[]}"#, r#"{"a":[]}"#),
            (Edit::trim("/a").unwrap(), r#"{"a":"\t x  "}"#, r#"{"a":"x"}"#),
            (Edit::trim("/a").unwrap(), "{}", "{}"),
        ] {
            assert_eq!(edited(std::slice::from_ref(&edit), line), expected, "{edit:?}");
        }
    }

    #[test]
    fn edits_follow_each_other() {
        let edits = [Edit::set("/a=\" X \"").unwrap(), Edit::lower("/a").unwrap(), Edit::trim("/a").unwrap()];
        assert_eq!(edited(&edits, "{}"), r#"{"a":"x"}"#);
    }

    #[test]
    fn invalid_edits_are_rejected() {
        for text in ["/a", "a=1", "/a=x", "/a=", "/~2=1"] {
            assert!(Edit::set(text).is_err(), "{text}");
        }
        assert!(Edit::lower("a").is_err() && Edit::trim("/~").is_err());
    }
}
