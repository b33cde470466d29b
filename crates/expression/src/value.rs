//! The values of an expression: values of the document, which stay text until they are read, and computed values.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

use limits::EVENT_BYTES_MAX;

/// The result of an expression.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// A value of the document as its JSON text: a number keeps its digits, a string its escapes.
    Json(&'a str),
    /// A computed value.
    Computed(Computed<'a>),
}

/// A computed value, or one that was read from its JSON text.
#[derive(Clone, Debug)]
pub enum Computed<'a> {
    /// Null, or absent.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A number with a fraction, or one that no 128 bits hold.
    Double(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// A list that an expression has created.
    List(Rc<Vec<Value<'a>>>),
    /// An array of the document, as its JSON text.
    Array(&'a str),
    /// An object of the document, as its JSON text.
    Object(&'a str),
}

/// The kinds of values, as CEL names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Int,
    Double,
    String,
    List,
    Map,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "a bool",
            Self::Int => "an int",
            Self::Double => "a double",
            Self::String => "a string",
            Self::List => "a list",
            Self::Map => "a map",
        })
    }
}

/// Why a value can't be written as JSON.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NotJson {
    /// It is infinite, or no number.
    #[error("JSON can't represent the number {0}")]
    Number(f64),
    /// It is longer than an event may be: a list may hold the same value many times.
    #[error("the result has more than {EVENT_BYTES_MAX} bytes")]
    TooLong,
}

impl<'a> Value<'a> {
    pub(super) const NULL: Self = Self::Computed(Computed::Null);

    /// The value, read if it is still text.
    #[must_use]
    pub fn read(self) -> Computed<'a> {
        match self {
            Self::Json(json) => Computed::from_json(json),
            Self::Computed(made) => made,
        }
    }

    /// The value as JSON. Unchanged values of the document keep their text.
    ///
    /// # Errors
    /// [`NotJson`] for a number that isn't finite, and for a value that is too long.
    pub fn to_json(&self) -> Result<Cow<'a, str>, NotJson> {
        match self {
            Self::Json(json) | Self::Computed(Computed::Array(json) | Computed::Object(json)) => {
                Ok(Cow::Borrowed(json))
            }
            Self::Computed(made) => {
                let mut out = String::new();
                made.write(&mut out)?;
                Ok(Cow::Owned(out))
            }
        }
    }

    /// Appends the value as JSON.
    ///
    /// # Errors
    /// As [`Value::to_json`].
    pub fn write(&self, out: &mut String) -> Result<(), NotJson> {
        match self {
            Self::Json(json) => append(json, out),
            Self::Computed(made) => made.write(out),
        }
    }
}

impl<'a> Computed<'a> {
    fn from_json(json: &'a str) -> Self {
        match json.as_bytes().first() {
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'"') => json::text::scalar_text(json).map_or(Self::Null, Self::Text),
            Some(b'[') => Self::Array(json),
            Some(b'{') => Self::Object(json),
            Some(b'-' | b'0'..=b'9') => number(json),
            _ => Self::Null,
        }
    }

    fn write(&self, out: &mut String) -> Result<(), NotJson> {
        match self {
            Self::Null => append("null", out),
            Self::Bool(true) => append("true", out),
            Self::Bool(false) => append("false", out),
            Self::Int(number) => append(&number.to_string(), out),
            Self::Double(number) if !number.is_finite() => Err(NotJson::Number(*number)),
            Self::Double(number) => append(&serde_json::Value::from(*number).to_string(), out),
            Self::Text(text) => append(&serde_json::Value::from(text.as_ref()).to_string(), out),
            Self::Array(json) | Self::Object(json) => append(json, out),
            Self::List(elements) => {
                append("[", out)?;
                for (number, element) in elements.iter().enumerate() {
                    append(if number == 0 { "" } else { "," }, out)?;
                    element.write(out)?;
                }
                append("]", out)
            }
        }
    }

    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Double(_) => Kind::Double,
            Self::Text(_) => Kind::String,
            Self::List(_) | Self::Array(_) => Kind::List,
            Self::Object(_) => Kind::Map,
        }
    }
}

impl<'a> From<Computed<'a>> for Value<'a> {
    fn from(made: Computed<'a>) -> Self {
        Self::Computed(made)
    }
}

fn append(json: &str, out: &mut String) -> Result<(), NotJson> {
    if out.len() + json.len() > EVENT_BYTES_MAX {
        return Err(NotJson::TooLong);
    }
    out.push_str(json);
    Ok(())
}

/// An integer if it is written as one and 128 bits hold it, else the nearest double.
fn number<'a>(json: &str) -> Computed<'a> {
    // Integers of 64 bits are most of them, and cheaper.
    if let Ok(number) = json.parse::<i64>() {
        return Computed::Int(number.into());
    }
    match json.parse::<i128>() {
        Ok(number) => Computed::Int(number),
        Err(_) => Computed::Double(json.parse().expect("every number of JSON is one of Rust")),
    }
}
