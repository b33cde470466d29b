//! A configured step: keys and values, before they are interpreted.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// A step as in the configuration: `{ drop = "/referrer", when = "referrer == null" }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSpec(pub Vec<(String, StepValue)>);

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum StepValue {
    /// Nothing, which TOML can't express.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<StepValue>),
    /// A table.
    Table(#[serde(deserialize_with = "entries")] Vec<(String, StepValue)>),
}

impl StepSpec {
    pub(super) fn get(&self, key: &str) -> Option<&StepValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, setting)| setting)
    }
}

impl StepValue {
    /// Its kind, in words.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Table(_) => "a table",
        }
    }

    /// The value as JSON; none for a number that isn't finite.
    pub(super) fn to_json(&self) -> Option<String> {
        let mut out = String::new();
        self.write(&mut out)?;
        Some(out)
    }

    fn write(&self, out: &mut String) -> Option<()> {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Integer(number) => out.push_str(&number.to_string()),
            Self::Float(number) => out.push_str(&serde_json::Number::from_f64(*number)?.to_string()),
            Self::Text(text) => json::text::write_string(text, out),
            Self::List(elements) => {
                out.push('[');
                for (number, element) in elements.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    element.write(out)?;
                }
                out.push(']');
            }
            Self::Table(members) => {
                out.push('{');
                for (number, (name, value)) in members.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    json::text::write_string(name, out);
                    out.push(':');
                    value.write(out)?;
                }
                out.push('}');
            }
        }
        Some(())
    }
}

impl<'de> Deserialize<'de> for StepSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        entries(deserializer).map(Self)
    }
}

/// The entries of a table in their order, including repeated keys.
fn entries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, StepValue)>, D::Error> {
    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, StepValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table, such as { drop = \"/referrer\" }")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            std::iter::from_fn(|| entries.next_entry().transpose()).collect()
        }
    }

    deserializer.deserialize_map(Entries)
}
