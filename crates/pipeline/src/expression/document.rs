//! Arrays and objects of a document that was checked, read as far as an expression asks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What stands under each of the names in an object, in one pass; nothing where it isn't an object. Of members of the
/// same name the last counts.
pub(crate) fn fields<'a>(json: &'a str, names: &[String]) -> Vec<Option<&'a str>> {
    let mut found = vec![None; names.len()];
    if json.starts_with('{') && !names.is_empty() {
        // In a text that was checked nothing can go wrong.
        let _ = serde_json::Deserializer::from_str(json).deserialize_map(Fields { names, found: &mut found });
    }
    found
}

/// The members of an object, by name. Of those of the same name the last counts.
pub(super) type Members<'a> = BTreeMap<Cow<'a, str>, &'a str>;

/// Reads the members of an object.
pub(super) fn members(json: &str) -> Members<'_> {
    serde_json::Deserializer::from_str(json).deserialize_map(ReadMembers).unwrap_or_default()
}

/// The elements of an array.
pub(super) fn elements(json: &str) -> Vec<&str> {
    serde_json::Deserializer::from_str(json).deserialize_seq(Elements).unwrap_or_default()
}

/// How many elements an array has.
pub(super) fn count(json: &str) -> usize {
    serde_json::from_str::<Vec<IgnoredAny>>(json).map_or(0, |elements| elements.len())
}

struct Fields<'n, 'a> {
    names: &'n [String],
    found: &'n mut Vec<Option<&'a str>>,
}

impl<'de> Visitor<'de> for Fields<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(number) = members.next_key_seed(NumberOf(self.names))? {
            if let Some(number) = number {
                self.found[number] = Some(members.next_value::<&RawValue>()?.get());
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// The place of a key among the names.
struct NumberOf<'n>(&'n [String]);

impl<'de> DeserializeSeed<'de> for NumberOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NumberOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|name| name == key))
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = BTreeMap::new();
        while let Some(Name(name)) = members.next_key()? {
            found.insert(name, members.next_value::<&RawValue>()?.get());
        }
        Ok(found)
    }
}

/// A member's name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = elements.next_element::<&RawValue>()? {
            found.push(element.get());
        }
        Ok(found)
    }
}
