//! Values that JSON allows but some stores reject: the character `\u0000`, and members of one name. Such texts are
//! found in one pass, or repaired: everything else stays unchanged, byte for byte.

use std::borrow::Cow;
use std::fmt;
use std::ops::{BitOr, Range};

use crate::{REPLACEMENT, ValueIndex, ValueKind, ValueView};

/// The escape of the character that only stores of bytes accept.
const NUL: &[u8] = b"\\u0000";

/// The flaws that a payload must not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incompatibilities {
    nul: bool,
    duplicate_keys: bool,
}

impl Incompatibilities {
    /// None: all texts are valid.
    pub const NONE: Self = Self { nul: false, duplicate_keys: false };
    /// The character `\u0000`, in a string or a name.
    pub const NUL: Self = Self { nul: true, ..Self::NONE };
    /// Members of the same name in one object.
    pub const DUPLICATE_KEYS: Self = Self { duplicate_keys: true, ..Self::NONE };
    /// All known flaws.
    pub const ALL: Self = Self { nul: true, duplicate_keys: true };

    /// Whether no flaw is searched.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

impl BitOr for Incompatibilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { nul: self.nul || other.nul, duplicate_keys: self.duplicate_keys || other.duplicate_keys }
    }
}

/// The kind of flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncompatibilityKind {
    /// The character `\u0000`.
    Nul,
    /// A second member of a name.
    DuplicateKey,
}

/// A place in a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatibility {
    /// The flaw there.
    pub kind: IncompatibilityKind,
    /// The byte at which the escape, or the second name, begins: from 0.
    pub offset: usize,
    /// The JSON pointer to the string, or to the member; to the object, if the escape is in a name.
    pub pointer: String,
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            IncompatibilityKind::Nul => "the character \\u0000",
            IncompatibilityKind::DuplicateKey => "a second member of the same name",
        })
    }
}

/// The first `\u0000`, or else the first second member of a name, in a payload that has passed [`crate::check`].
#[must_use]
pub fn find(json: &str, flaws: Incompatibilities) -> Option<Incompatibility> {
    if flaws.nul
        && let Some(offset) = escapes(json.as_bytes()).next()
    {
        let pointer = pointer_to(ValueIndex::default().read(json), offset);
        return Some(Incompatibility { kind: IncompatibilityKind::Nul, offset, pointer });
    }
    if !flaws.duplicate_keys {
        return None;
    }
    let mut index = ValueIndex::default();
    let view = index.read(json);
    let second = objects(view).flat_map(|object| again(&keys(view, object))).map(|(_, second)| second).min()?;
    let (kind, offset) = (IncompatibilityKind::DuplicateKey, view.span(second).start);
    Some(Incompatibility { kind, offset, pointer: view.pointer(second) })
}

/// The pointer to the string with the byte at `offset`; to the object, if that is a name.
fn pointer_to(view: ValueView<'_>, offset: usize) -> String {
    let Some(text) = (0..view.count()).rfind(|at| view.span(*at).contains(&offset)) else { return String::new() };
    let holder = objects(view).find(|object| view.members(*object).any(|(name, _)| name == text));
    view.pointer(holder.unwrap_or(text))
}

fn objects(view: ValueView<'_>) -> impl Iterator<Item = usize> {
    (0..view.count()).filter(move |at| view.kind(*at) == ValueKind::Object)
}

/// The names of an object's members, with their numbers among the values.
fn keys(view: ValueView<'_>, object: usize) -> Vec<(Cow<'_, str>, usize)> {
    view.members(object).map(|(name, _)| (view.text(name), name)).collect()
}

/// The payload without these flaws: U+FFFD replaces `\u0000`, and of members of one name the last stays. `None` if it
/// has none of them. It must have passed [`crate::check`].
#[must_use]
pub fn repair(json: &str, flaws: Incompatibilities) -> Option<String> {
    // Names may be the same only when they are repaired.
    let replaced = if flaws.nul { replace(json) } else { None };
    let text = replaced.as_deref().unwrap_or(json);
    let cuts = if flaws.duplicate_keys { earlier_members(text) } else { Vec::new() };
    if cuts.is_empty() { replaced } else { Some(without(text, cuts)) }
}

fn replace(json: &str) -> Option<String> {
    let mut at = escapes(json.as_bytes()).peekable();
    at.peek()?;
    let mut bytes = json.as_bytes().to_vec();
    at.for_each(|start| bytes[start..start + NUL.len()].copy_from_slice(REPLACEMENT));
    // One escape was replaced by another of the same length.
    String::from_utf8(bytes).ok()
}

/// The offsets of the escapes; `\\u0000` is none.
fn escapes(json: &[u8]) -> impl Iterator<Item = usize> {
    // Most payloads have not even something like it.
    let mut from = memchr::memmem::find(json, NUL).map(|_| 0);
    std::iter::from_fn(move || {
        while let Some(at) = from.and_then(|from| memchr::memchr(b'\\', &json[from..]).map(|found| from + found)) {
            from = Some(at + 2);
            if json[at..].starts_with(NUL) {
                return Some(at);
            }
        }
        None
    })
}

/// The members that have a later one of their name, each with the comma after it.
fn earlier_members(json: &str) -> Vec<Range<usize>> {
    let mut index = ValueIndex::default();
    let view = index.read(json);
    // An earlier member isn't the last: another name follows its value.
    let cut = |(first, _): (usize, usize)| view.span(first).start..view.span(view.next(first + 1)).start;
    let mut cuts: Vec<_> = objects(view).flat_map(|object| again(&keys(view, object))).map(cut).collect();
    cuts.sort_by_key(|cut| cut.start);
    cuts
}

/// The members of one object that have the same name: each with the next of its name, by their numbers.
fn again(keys: &[(Cow<'_, str>, usize)]) -> Vec<(usize, usize)> {
    let mut order: Vec<&(Cow<'_, str>, usize)> = Vec::new();
    if keys.len() > 1 {
        order.extend(keys);
        // For any names, this needs at most this many comparisons.
        order.sort_unstable();
    }
    let pairs = order.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    pairs.map(|pair| (pair[0].1, pair[1].1)).collect()
}

/// The text without these parts, which begin in order; one may be within another.
fn without(text: &str, cuts: Vec<Range<usize>>) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for cut in cuts.into_iter().filter(|cut| !cut.is_empty()) {
        if cut.start >= from {
            rest.push_str(&text[from..cut.start]);
        }
        from = from.max(cut.end);
    }
    rest + &text[from..]
}

#[cfg(test)]
mod tests;
