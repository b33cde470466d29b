//! Reads a line of version 1 of [saved facts](crate::decode_facts): a fact's name and its fields, with a space between
//! them. `-` is an empty field, and commas join a list. The last of several fields has the rest of the line, with line
//! breaks escaped.

use std::borrow::Cow;
use std::str::FromStr;

use serde::de::value::{Error, SeqDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

const NOTHING: &str = "-";

/// The fact of a line. `renamed` has names of facts in version 1, and today's.
pub(crate) fn from_line<'de, F: Deserialize<'de>>(line: &'de str, renamed: &[(&str, &'de str)]) -> Result<F, Error> {
    let (name, text) = line.split_once(' ').unwrap_or((line, ""));
    let name = renamed.iter().find(|(old, _)| *old == name).map_or(name, |(_, name)| name);
    F::deserialize(Fact { name, fields: Fields(text) })
}

struct Fact<'de> {
    name: &'de str,
    fields: Fields<'de>,
}

struct Fields<'de>(&'de str);

impl<'de> Fields<'de> {
    fn visit<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        let fields = self.0.splitn(count, ' ').chain([NOTHING]).map(|text| Field { text, is_escaped: true });
        visitor.visit_seq(SeqDeserializer::new(fields))
    }
}

impl<'de> Deserializer<'de> for Fact<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Fact<'de> {
    type Error = Error;
    type Variant = Fields<'de>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Fields<'de>), Error> {
        seed.deserialize(self.name.into_deserializer()).map(|name| (name, self.fields))
    }
}

impl<'de> VariantAccess<'de> for Fields<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(Field { text: self.0, is_escaped: false })
    }

    fn tuple_variant<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        self.visit(count, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.visit(fields.len(), visitor)
    }
}

struct Field<'de> {
    text: &'de str,
    is_escaped: bool,
}

impl Field<'_> {
    fn parse<N: FromStr>(&self) -> Result<N, Error> {
        self.text
            .parse()
            .map_err(|_| serde::de::Error::custom(format_args!("{:?} is not a number in its range", self.text)))
    }

    fn plain(&self) -> Cow<'_, str> {
        if !self.is_escaped || !self.text.contains('\\') {
            return self.text.into();
        }
        let mut characters = self.text.chars();
        let next = || match characters.next()? {
            '\\' => characters.next().map(|escaped| match escaped {
                'n' => '\n',
                'r' => '\r',
                other => other,
            }),
            other => Some(other),
        };
        std::iter::from_fn(next).collect()
    }
}

impl<'de> IntoDeserializer<'de> for Field<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.plain())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(!matches!(self.text, NOTHING | "open"))
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i64(self.parse()?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.parse()?)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if matches!(self.text, NOTHING | "*") { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let items = self.text.split(',').filter(|item| *item != NOTHING);
        visitor.visit_seq(SeqDeserializer::new(items.map(|text| Field { text, is_escaped: false })))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 u8 u32 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct map struct
        enum identifier ignored_any
    }
}
