//! Action lines that need a parser of JSON.

use std::borrow::Cow;
use std::fmt;

use json::text::{kind, scalar};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::action::{Action, Verb};

const NOT_ONE: &str = "it is not an object with one action";

/// The action of a line.
///
/// # Errors
/// Why it is none.
pub(super) fn parse(line: &[u8]) -> Result<Action<'_>, String> {
    let not_json = |error: &dyn fmt::Display| format!("it is not JSON: {error}");
    let text = str::from_utf8(line).map_err(|error| not_json(&error))?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    let Ok(Pair(name, value)) = serde_json::from_str(whole.get()) else { return Err(NOT_ONE.to_owned()) };
    let Some(verb) = Verb::of(&name) else {
        let shown: String = name.chars().take(40).collect();
        return Err(format!("`{shown}` is not one of create, index, update and delete"));
    };
    let Ok(members) = serde_json::from_str::<Members<'_>>(value.get()) else {
        return Err(format!("the value of `{}` is {}, and not an object", verb.name(), kind(value.get())));
    };
    Ok(Action { verb, index: text_of("_index", members.index)?, id: text_of("_id", members.id)? })
}

/// A text, or a number or boolean as it is written. `null` is none.
fn text_of<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Option<Cow<'a, str>>, String> {
    let Some(json) = value.map(RawValue::get).filter(|json| *json != "null") else { return Ok(None) };
    match scalar(json) {
        Some(text) => Ok(Some(text)),
        None if json.starts_with('"') => {
            Err(format!("`{name}` is not valid JSON: it has half of a pair of surrogates"))
        }
        None => Err(format!("`{name}` is {}, and not a text", kind(json))),
    }
}

/// The only member of an object.
struct Pair<'a>(String, &'a RawValue);

/// The members of an action that have an effect. The last of equal names counts.
#[derive(Default)]
struct Members<'a> {
    index: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Pair<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Pair<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one member")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let pair = map.next_entry::<String, &RawValue>()?;
                let (name, value) = pair.ok_or_else(|| serde::de::Error::invalid_length(0, &self))?;
                match map.next_key::<String>()? {
                    None => Ok(Pair(name, value)),
                    Some(_) => Err(serde::de::Error::invalid_length(2, &self)),
                }
            }
        }
        deserializer.deserialize_map(One)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    match name.as_str() {
                        "_index" => members.index = Some(value),
                        "_id" => members.id = Some(value),
                        _ => {}
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(All)
    }
}
