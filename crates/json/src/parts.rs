//! The parts of an array or object, as they are written, in one pass and without building a document.
//!
//! The text must have passed [`check`](crate::check). In another text, parts may be missing or wrong.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::scan;

/// A member of an object, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The name with its quotes.
    pub key: &'a str,
    /// The value.
    pub value: &'a str,
    has_escape: bool,
}

impl<'a> Member<'a> {
    /// The name, its escapes decoded.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        decode_name(self.key, self.has_escape)
    }
}

/// The decoded name, from its text with quotes.
pub(crate) fn decode_name(key: &str, has_escape: bool) -> Cow<'_, str> {
    let inner = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
    if !has_escape {
        return Cow::Borrowed(inner);
    }
    serde_json::from_str(key).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// The members of an object.
pub fn members(json: &str) -> impl Iterator<Item = Member<'_>> {
    let bytes = json.as_bytes();
    let mut next = if json.starts_with('{') { scan::first_part(bytes, 0) } else { None };
    std::iter::from_fn(move || {
        let key = next?;
        let (key_end, has_escape) = scan::string_end(bytes, key);
        let value = scan::member_value(bytes, key_end);
        let end = scan::value_end(bytes, value);
        next = scan::next_part(bytes, end);
        Some(Member { key: json.get(key..key_end)?, value: json.get(value..end)?, has_escape })
    })
}

/// The value of the member with this name. If several members have the name, the last counts.
#[must_use]
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    members(object).filter(|member| member.name() == name).last().map(|member| member.value)
}

/// For each name, the value of the member with this name. If several members have the name, the last counts.
#[must_use]
pub fn fields<'a>(object: &'a str, names: &[String]) -> Vec<Option<&'a str>> {
    let mut found = vec![None; names.len()];
    for member in members(object).take(if names.is_empty() { 0 } else { usize::MAX }) {
        let name = member.name();
        if let Some(number) = names.iter().position(|known| *known == name) {
            found[number] = Some(member.value);
        }
    }
    found
}

/// The members of an object by name. If several members have a name, the last counts.
#[must_use]
pub fn members_by_name(object: &str) -> BTreeMap<Cow<'_, str>, &str> {
    members(object).map(|member| (member.name(), member.value)).collect()
}

/// The elements of an array.
pub fn elements(json: &str) -> impl Iterator<Item = &str> {
    element_places(json).map_while(|place| json.get(place))
}

/// The bytes of each element of an array.
pub fn element_places(json: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = json.as_bytes();
    let mut next = if json.starts_with('[') { scan::first_part(bytes, 0) } else { None };
    std::iter::from_fn(move || {
        let value = next?;
        let end = scan::value_end(bytes, value);
        next = scan::next_part(bytes, end);
        Some(value..end)
    })
}
