//! Reads an aggregate's values from a payload: all its pointers in one pass through the text.

use std::borrow::Cow;

use json::JsonPointer;
use json::parts::fields;

/// Pointers that are read together.
#[derive(Clone, Debug, Default)]
pub(super) struct Extractor {
    /// Members of the payload that pointers begin with.
    members: Vec<String>,
    pointers: Vec<Path>,
}

#[derive(Clone, Debug)]
struct Path {
    whole: JsonPointer,
    /// The member that it begins with, and the rest of the pointer; `None` for the whole payload.
    member: Option<(usize, JsonPointer)>,
}

impl Extractor {
    /// Adds a pointer, and returns its index.
    pub(super) fn add(&mut self, pointer: &JsonPointer) -> usize {
        if let Some(at) = self.pointers.iter().position(|path| path.whole == *pointer) {
            return at;
        }
        let member = pointer.split_first().map(|(name, rest)| {
            let at = self.members.iter().position(|member| member == name);
            let at = at.unwrap_or_else(|| {
                self.members.push(name.to_owned());
                self.members.len() - 1
            });
            (at, rest)
        });
        self.pointers.push(Path { whole: pointer.clone(), member });
        self.pointers.len() - 1
    }

    /// The pointer at an index.
    pub(super) fn pointer(&self, at: usize) -> &JsonPointer {
        &self.pointers[at].whole
    }

    /// The values at all pointers in a checked payload; `None` if a value is absent or null.
    pub(super) fn read<'p>(&self, payload: &'p str) -> Vec<Option<&'p str>> {
        let found = fields(payload, &self.members);
        let is_object = payload.starts_with('{');
        let values = self.pointers.iter().map(|path| match &path.member {
            Some((member, rest)) if is_object => found[*member].and_then(|value| rest.lookup(value)),
            _ => path.whole.lookup(payload),
        });
        values.map(|value| value.filter(|value| *value != "null")).collect()
    }
}

/// A value in the form in which equal ones have equal texts: no whitespace between its parts, a string without needless
/// escapes. Numbers keep their digits, and strings within arrays and objects their escapes.
pub(super) fn compact(json: &str) -> Cow<'_, str> {
    match json.as_bytes().first() {
        Some(b'"') if json.contains('\\') => {
            let text = json::text::scalar_text(json);
            text.map_or(Cow::Borrowed(json), |text| serde_json::Value::from(text).to_string().into())
        }
        Some(b'[' | b'{') if json.bytes().any(|byte| byte.is_ascii_whitespace()) => without_whitespace(json).into(),
        _ => Cow::Borrowed(json),
    }
}

fn without_whitespace(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let is_kept = |character: &char| {
        let keep = in_string || !character.is_ascii_whitespace();
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
        keep
    };
    json.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'p>(pointers: &[&str], payload: &'p str) -> Vec<Option<&'p str>> {
        let mut reading = Extractor::default();
        for (at, pointer) in pointers.iter().enumerate() {
            assert_eq!(reading.add(&pointer.parse().unwrap()), at);
        }
        reading.read(payload)
    }

    #[test]
    fn pointers_are_read_in_one_pass() {
        let payload = r#"{"a":{"b":1,"c/d":"x"},"n":null,"l":[1,2]}"#;
        let found = read(&["/a/b", "/a/c~1d", "/n", "/l/1", "/x", "", "/a/b/c"], payload);
        assert_eq!(found, [Some("1"), Some("\"x\""), None, Some("2"), None, Some(payload), None]);
        assert_eq!(read(&["/0", "/a", ""], "[7]"), [Some("7"), None, Some("[7]")]);
        assert_eq!(read(&["/a", ""], "5"), [None, Some("5")]);
    }

    #[test]
    fn equal_values_have_equal_texts() {
        for (json, text) in [
            (r#""\u0041\/b""#, r#""A/b""#),
            (r#""a b""#, r#""a b""#),
            (r#"{"a b" : [ 1 , "x \" y" ]}"#, r#"{"a b":[1,"x \" y"]}"#),
            ("1.50", "1.50"),
            (r#""\n""#, r#""\n""#),
        ] {
            assert_eq!(compact(json), text);
        }
    }
}
