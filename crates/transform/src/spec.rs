//! A step as somebody wrote it: keys and values, before anybody knows what they mean.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A step as it stands in the configuration: `{ drop = "/referrer", when = "referrer == null" }`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSpec(pub Vec<(String, Setting)>);

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// Nothing, which TOML has no way to write.
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
    List(Vec<Setting>),
    /// A table.
    Table(Vec<(String, Setting)>),
}

impl StepSpec {
    pub(super) fn get(&self, key: &str) -> Option<&Setting> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, setting)| setting)
    }
}

impl Setting {
    /// What it is, in words.
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
        deserializer.deserialize_map(StepVisitor)
    }
}

struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = StepSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step, such as { drop = \"/referrer\" }")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<StepSpec, A::Error> {
        read_entries(entries).map(StepSpec)
    }
}

fn read_entries<'de, A: MapAccess<'de>>(mut entries: A) -> Result<Vec<(String, Setting)>, A::Error> {
    let mut read = Vec::new();
    while let Some(entry) = entries.next_entry()? {
        read.push(entry);
    }
    Ok(read)
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}

struct SettingVisitor;

impl<'de> Visitor<'de> for SettingVisitor {
    type Value = Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a step")
    }

    fn visit_unit<E>(self) -> Result<Setting, E> {
        Ok(Setting::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Setting, E> {
        Ok(Setting::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Setting, E> {
        Ok(Setting::Integer(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Setting, E> {
        i64::try_from(number).map(Setting::Integer).map_err(|_| E::custom("an integer of more than 64 bits"))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Setting, E> {
        Ok(Setting::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Setting, E> {
        Ok(Setting::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Setting, A::Error> {
        let mut read = Vec::new();
        while let Some(element) = elements.next_element()? {
            read.push(element);
        }
        Ok(Setting::List(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Setting, A::Error> {
        read_entries(entries).map(Setting::Table)
    }
}
