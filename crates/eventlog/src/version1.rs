//! Reads a line of version 1 of [saved facts](crate::decode_facts): a fact's name and its fields, with a space between them. `-` stands for
//! nothing, and commas join a list. The last of several fields has the rest of the line, with line breaks escaped.

use std::borrow::Cow;
use std::str::FromStr;

use serde::de::value::{Error, SeqDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

/// The fact of a line.
///
/// # Errors
/// Why it isn't one.
pub fn from_line<'t, F: Deserialize<'t>>(line: &'t str) -> Result<F, Error> {
    F::deserialize(Fields(line))
}

/// A name with fields, or fields.
struct Fields<'t>(&'t str);

impl<'t> Fields<'t> {
    fn visit<V: Visitor<'t>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        let fields = self.0.splitn(count, ' ').map(|text| Field { text, is_escaped: true });
        visitor.visit_seq(SeqDeserializer::new(fields))
    }
}

impl<'t> Deserializer<'t> for Fields<'t> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_enum(self)
    }

    fn deserialize_tuple<V: Visitor<'t>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        self.visit(count, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple_struct map struct enum identifier ignored_any
    }
}

impl<'t> EnumAccess<'t> for Fields<'t> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'t>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let (name, fields) = self.0.split_once(' ').unwrap_or((self.0, ""));
        seed.deserialize(name.into_deserializer()).map(|name| (name, Self(fields)))
    }
}

impl<'t> VariantAccess<'t> for Fields<'t> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'t>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(Field { text: self.0, is_escaped: false })
    }

    fn tuple_variant<V: Visitor<'t>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        self.visit(count, visitor)
    }

    fn struct_variant<V: Visitor<'t>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.visit(fields.len(), visitor)
    }
}

struct Field<'t> {
    text: &'t str,
    is_escaped: bool,
}

impl Field<'_> {
    fn parse<N: FromStr>(&self) -> Result<N, Error> {
        self.text.parse().map_err(|_| serde::de::Error::custom(format_args!("{:?} is not a number in its range", self.text)))
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

impl IntoDeserializer<'_> for Field<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'t> Deserializer<'t> for Field<'t> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.plain())
    }

    fn deserialize_bool<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(!matches!(self.text, "-" | "open"))
    }

    fn deserialize_i64<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i64(self.parse()?)
    }

    fn deserialize_u64<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.parse()?)
    }

    fn deserialize_u16<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_option<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        if matches!(self.text, "-" | "*") { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, Error> {
        let items = self.text.split(',').filter(|item| *item != "-");
        visitor.visit_seq(SeqDeserializer::new(items.map(|text| Field { text, is_escaped: false })))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 u8 u32 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct map struct
        enum identifier ignored_any
    }
}
