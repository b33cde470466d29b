//! One step into an object or array, passing over everything else unread.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The last member of that name.
pub(crate) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    serde_json::Deserializer::from_str(object).deserialize_map(Member(name)).ok()?
}

/// The element at `index`, from 0.
pub(crate) fn element(array: &str, index: usize) -> Option<&str> {
    serde_json::Deserializer::from_str(array).deserialize_seq(Element(index)).ok()?
}

struct Member<'n>(&'n str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = members.next_key_seed(IsName(self.0))? {
            if is_it {
                found = Some(members.next_value::<&RawValue>()?.get());
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key, its escapes decoded, is the name.
struct IsName<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

struct Element(usize);

impl<'de> Visitor<'de> for Element {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        for _ in 0..self.0 {
            if elements.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = elements.next_element::<&RawValue>()?.map(RawValue::get);
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}
