//! JSON pointers (RFC 6901): what they stand for in a text that was checked, without building a document.

pub(crate) mod find;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use event::limits::JSON_DEPTH_MAX;

/// A JSON pointer: `""` is the whole value, `/a/0` the first element of member `a`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonPointer {
    text: String,
    steps: Vec<Step>,
}

/// One step down: a member's name, which in an array is an index if it has the form of one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) index: Option<usize>,
}

/// A text that is no JSON pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPointer {
    /// The text is neither empty nor begins with `/`.
    #[error("a JSON pointer is empty or begins with `/`")]
    NoSlash,
    /// A `~` is not followed by `0` or `1`; the offset of the `~` in bytes from 0.
    #[error("byte {0}: `~` must be followed by 0 (for `~`) or 1 (for `/`)")]
    Tilde(usize),
    /// The pointer has more steps than a JSON text may have levels.
    #[error("the pointer has more than {JSON_DEPTH_MAX} steps: no value is that deep")]
    TooDeep,
}

impl FromStr for JsonPointer {
    type Err = InvalidPointer;

    fn from_str(text: &str) -> Result<Self, InvalidPointer> {
        let steps = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').collect(),
            None if text.is_empty() => Vec::new(),
            None => return Err(InvalidPointer::NoSlash),
        };
        if let Some(bad) = bad_tilde(text) {
            return Err(InvalidPointer::Tilde(bad));
        }
        if steps.len() > JSON_DEPTH_MAX {
            return Err(InvalidPointer::TooDeep);
        }
        Ok(Self { text: text.to_owned(), steps: steps.into_iter().map(Step::new).collect() })
    }
}

fn bad_tilde(text: &str) -> Option<usize> {
    let followed = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1'));
    text.match_indices('~').map(|(at, _)| at).find(|at| !followed(at))
}

impl Step {
    fn new(escaped: &str) -> Self {
        // In this order, so that `~01` becomes `~1` and not `/`.
        let name =
            if escaped.contains('~') { escaped.replace("~1", "/").replace("~0", "~") } else { escaped.to_owned() };
        let is_index = name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
        let index = if is_index { name.parse().ok() } else { None };
        Self { name, index }
    }
}

impl JsonPointer {
    /// The pointer to the whole value.
    pub const WHOLE: Self = Self { text: String::new(), steps: Vec::new() };

    /// The pointer as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The steps from the whole value down.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether it is the other pointer, or goes on from it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.steps.starts_with(&other.steps)
    }

    /// The pointer to what this stands in; none for the whole value.
    pub(crate) fn parent(&self) -> Option<Self> {
        let end = self.text.rfind('/')?;
        let steps = self.steps.split_last()?.1.to_vec();
        Some(Self { text: self.text[..end].to_owned(), steps })
    }

    /// The pointer to a member of what stands here.
    pub(crate) fn member(&self, name: &str) -> Result<Self, InvalidPointer> {
        let mut text = String::with_capacity(self.text.len() + 1 + name.len());
        text.push_str(&self.text);
        push_step(&mut text, name);
        text.parse()
    }

    /// What stands at the pointer in `json`, as its JSON text; `None` where nothing does. Of members with the
    /// same name the last counts, as in PostgreSQL's `jsonb` and in JavaScript. `json` must have passed
    /// [`crate::json::check`]: in another text nothing may be found.
    #[must_use]
    pub fn lookup<'a>(&self, json: &'a str) -> Option<&'a str> {
        self.steps.iter().try_fold(json, |value, step| match value.as_bytes().first()? {
            b'{' => find::member(value, &step.name),
            b'[' => find::element(value, step.index?),
            _ => None,
        })
    }
}

/// Adds a step to the text of a pointer.
pub(crate) fn push_step(pointer: &mut String, name: &str) {
    pointer.push('/');
    if !name.contains(['~', '/']) {
        return pointer.push_str(name);
    }
    for character in name.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// The text of a JSON string, or the digits of a number as they were written; `None` for any other value.
/// `raw` is what [`JsonPointer::lookup`] gave.
#[must_use]
pub fn scalar_text(raw: &str) -> Option<Cow<'_, str>> {
    match raw.as_bytes().first()? {
        b'"' if raw.contains('\\') => serde_json::from_str(raw).ok().map(Cow::Owned),
        b'"' => raw.strip_prefix('"')?.strip_suffix('"').map(Cow::Borrowed),
        b'-' | b'0'..=b'9' => Some(Cow::Borrowed(raw)),
        _ => None,
    }
}
