//! JSON pointers (RFC 6901): they find values in a checked text, without building a document.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use limits::JSON_DEPTH_MAX;

use crate::parts;

/// A JSON pointer: `""` is the whole value, `/a/0` the first element of member `a`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonPointer {
    text: String,
    steps: Vec<PointerStep>,
}

/// One step down: a member's name, which in an array is an index if it has the form of one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PointerStep {
    /// The member's name.
    pub name: String,
    /// The element's index, from 0, if the name has the form of one.
    pub index: Option<usize>,
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
    #[error("the pointer has more than {JSON_DEPTH_MAX} steps, and no value is that deep: shorten it")]
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
        Ok(Self { text: text.to_owned(), steps: steps.into_iter().map(PointerStep::new).collect() })
    }
}

fn bad_tilde(text: &str) -> Option<usize> {
    let followed = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1'));
    text.match_indices('~').map(|(at, _)| at).find(|at| !followed(at))
}

impl PointerStep {
    fn new(escaped: &str) -> Self {
        // In this order, `~01` becomes `~1` and not `/`.
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
    #[must_use]
    pub fn steps(&self) -> &[PointerStep] {
        &self.steps
    }

    /// The name of the first step, and the pointer from there on; `None` for the whole value.
    #[must_use]
    pub fn split_first(&self) -> Option<(&str, Self)> {
        let (first, rest) = self.steps.split_first()?;
        let text = self.text[1..].find('/').map_or("", |end| &self.text[1 + end..]);
        Some((&first.name, Self { text: text.to_owned(), steps: rest.to_vec() }))
    }

    /// Whether it is the other pointer, or continues it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.steps.starts_with(&other.steps)
    }

    /// The pointer to the value that contains this one; `None` for the whole value.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let end = self.text.rfind('/')?;
        let steps = self.steps.split_last()?.1.to_vec();
        Some(Self { text: self.text[..end].to_owned(), steps })
    }

    /// The pointer to a member of the value at this one.
    ///
    /// # Errors
    /// It would have more steps than a JSON text may have levels.
    pub fn member(&self, name: &str) -> Result<Self, InvalidPointer> {
        let mut text = String::with_capacity(self.text.len() + 1 + name.len());
        text.push_str(&self.text);
        push_step(&mut text, name);
        text.parse()
    }

    /// The value at the pointer in `json`, as its JSON text; `None` if there is none. Of members with the same name the
    /// last counts, as in PostgreSQL's `jsonb` and in JavaScript. `json` must have passed [`crate::check`]: in another
    /// text nothing may be found.
    #[must_use]
    pub fn lookup<'a>(&self, json: &'a str) -> Option<&'a str> {
        self.steps.iter().try_fold(json, |value, step| match value.as_bytes().first()? {
            b'{' => parts::member(value, &step.name),
            b'[' => parts::elements(value).nth(step.index?),
            _ => None,
        })
    }
}

/// Adds a step to the text of a pointer.
pub fn push_step(pointer: &mut String, name: &str) {
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
