//! Attributes, resources and scopes: `opentelemetry/proto/common/v1/common.proto` and `resource/v1/resource.proto`.

use prost::{Message, Oneof};

/// A name and its value.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    /// The name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// A value of any type.
#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    /// Nothing is an empty value.
    #[prost(oneof = "AttributeValue", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub value: Option<AttributeValue>,
}

/// The types of a value.
#[derive(Clone, PartialEq, Oneof)]
pub enum AttributeValue {
    /// A text.
    #[prost(string, tag = "1")]
    String(String),
    /// True or false.
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// A whole number.
    #[prost(int64, tag = "3")]
    Int(i64),
    /// A number.
    #[prost(double, tag = "4")]
    Double(f64),
    /// A list.
    #[prost(message, tag = "5")]
    Array(ArrayValue),
    /// A map.
    #[prost(message, tag = "6")]
    KeyValues(KeyValueList),
    /// Bytes.
    #[prost(bytes = "vec", tag = "7")]
    Bytes(Vec<u8>),
}

/// A list of values.
#[derive(Clone, PartialEq, Message)]
pub struct ArrayValue {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<AnyValue>,
}

/// A map of values.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValueList {
    /// The entries.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<KeyValue>,
}

/// The process that sends telemetry.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    /// Its attributes, as `service.name`.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// The library that measures.
#[derive(Clone, PartialEq, Message)]
pub struct InstrumentationScope {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
}

impl KeyValue {
    /// An attribute with a text.
    #[must_use]
    pub fn text(key: &str, value: &str) -> Self {
        Self::new(key, AttributeValue::String(value.to_owned()))
    }

    /// An attribute with a whole number.
    #[must_use]
    pub fn int(key: &str, value: i64) -> Self {
        Self::new(key, AttributeValue::Int(value))
    }

    fn new(key: &str, value: AttributeValue) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }
}
