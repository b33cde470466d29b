//! Action lines of the bulk API: `{"create":{"_index":"logs","_id":"1"}}`.
//!
//! Nearly all lines are so simple that their texts can be borrowed without a parser of JSON, which takes several times as long. Lines with
//! escapes, numbers or nested members are parsed as JSON.

use std::borrow::Cow;

use super::action::{Action, Verb};
use super::action_members;

/// Bytes of an action line. The collector's have the names of dynamic templates in addition to an index and an id.
const ACTION_BYTES_MAX: usize = 64 * 1024;

/// The action of a line.
///
/// # Errors
/// Why it is none.
pub(super) fn parse(line: &[u8]) -> Result<Action<'_>, String> {
    if line.len() > ACTION_BYTES_MAX {
        return Err(format!("the line has {} bytes; at most {ACTION_BYTES_MAX} are allowed", line.len()));
    }
    match Simple(line).action() {
        Some(action) => Ok(action),
        None => action_members::parse(line),
    }
}

/// Reads a simple line. `None` where it isn't simple: it may still be valid.
struct Simple<'a>(&'a [u8]);

impl<'a> Simple<'a> {
    fn action(mut self) -> Option<Action<'a>> {
        self.expect(b'{')?;
        let verb = Verb::of(self.text()?)?;
        let mut action = Action { verb, index: None, id: None };
        self.expect(b':')?;
        self.expect(b'{')?;
        if self.expect(b'}').is_none() {
            self.members(&mut action)?;
        }
        self.expect(b'}')?;
        self.blank();
        self.0.is_empty().then_some(action)
    }

    fn members(&mut self, action: &mut Action<'a>) -> Option<()> {
        loop {
            let name = self.text()?;
            self.expect(b':')?;
            let value = self.value()?.map(Cow::Borrowed);
            match name {
                "_index" => action.index = value,
                "_id" => action.id = value,
                _ => {}
            }
            if self.expect(b',').is_none() {
                return self.expect(b'}');
            }
        }
    }

    /// A string; or nothing for a word. Numbers may be ids, and aren't simple.
    fn value(&mut self) -> Option<Option<&'a str>> {
        self.blank();
        if self.0.first() == Some(&b'"') {
            return self.text().map(Some);
        }
        // The words `true` and `false` are values of flags, which have no effect. As ids they would be texts.
        let rest = self.0.strip_prefix(b"null")?;
        self.0 = rest;
        Some(None)
    }

    fn text(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        // The texts are short: a loop is faster than a search by vectors.
        let end = self.0.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.strip_prefix(b"\"")?;
        str::from_utf8(text).ok()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.blank();
        let (first, rest) = self.0.split_first()?;
        (*first == byte).then(|| self.0 = rest)
    }

    fn blank(&mut self) {
        while let [b' ' | b'\t' | b'\r', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action<'a>(verb: Verb, index: Option<&'a str>, id: Option<&'a str>) -> Action<'a> {
        Action { verb, index: index.map(Cow::Borrowed), id: id.map(Cow::Borrowed) }
    }

    #[test]
    fn action_is_parsed() {
        for (line, expected) in [
            (r#"{"create":{}}"#, action(Verb::Create, None, None)),
            (r#"{"index":{"_index":"a"}}"#, action(Verb::Index, Some("a"), None)),
            (r#" { "index" : { "_index" : "a" , "_id" : "1" } } "#, action(Verb::Index, Some("a"), Some("1"))),
            (r#"{"index":{"_id":"é","_type":"_doc","pipeline":null}}"#, action(Verb::Index, None, Some("é"))),
            (r#"{"delete":{"_id":"1","_id":"2"}}"#, action(Verb::Delete, None, Some("2"))),
            (r#"{"update":{"_index":"a","_id":7}}"#, action(Verb::Update, Some("a"), Some("7"))),
            (r#"{"create":{"_id":-1.50}}"#, action(Verb::Create, None, Some("-1.50"))),
            (r#"{"create":{"_id":null,"_index":null}}"#, action(Verb::Create, None, None)),
            (r#"{"create":{"_id":"a\"\u00e9","require_alias":true}}"#, action(Verb::Create, None, Some("a\"é"))),
            (r#"{"create":{"_index":"a","dynamic_templates":{"_id":"b"}}}"#, action(Verb::Create, Some("a"), None)),
            ("{\"cre\\u0061te\":{}}\r", action(Verb::Create, None, None)),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(expected), "{line}");
        }
    }

    #[test]
    fn simple_lines_are_borrowed() {
        for (line, is_simple) in [
            (r#"{"create":{"_index":"a","_id":"1"}}"#, true),
            (r#"{"create":{"_id":1}}"#, false),
            (r#"{"create":{"_id":"\n"}}"#, false),
        ] {
            assert_eq!(Simple(line.as_bytes()).action().is_some(), is_simple, "{line}");
            assert!(action_members::parse(line.as_bytes()).is_ok(), "{line}");
        }
    }

    #[test]
    fn other_lines_are_rejected() {
        for (line, expected) in [
            ("x", "it is not JSON"),
            ("[]", "it is not an object with one action"),
            ("{}", "it is not an object with one action"),
            (r#"{"create":{},"index":{}}"#, "it is not an object with one action"),
            (r#"{"create":{}} x"#, "it is not JSON"),
            (r#"{"insert":{}}"#, "`insert` is not one of create, index, update and delete"),
            (r#"{"create":[]}"#, "the value of `create` is an array, and not an object"),
            (r#"{"create":{"_id":{}}}"#, "`_id` is an object, and not a text"),
            (r#"{"create":{"_index":[1]}}"#, "`_index` is an array, and not a text"),
            (r#"{"create":{"_id":"\ud800"}}"#, "`_id` is not valid JSON"),
            ("{\"create\":{\"_id\":\"\u{1}\"}}", "it is not JSON"),
        ] {
            let error = parse(line.as_bytes()).unwrap_err();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
        assert!(parse(b"{\"create\":{\"_id\":\"\xff\"}}").is_err());
        let long = format!(r#"{{"create":{{"_id":"{}"}}}}"#, "a".repeat(ACTION_BYTES_MAX));
        assert!(parse(long.as_bytes()).unwrap_err().contains("at most 65536"));
    }
}
