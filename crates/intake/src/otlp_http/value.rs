//! A value of a message in either encoding, read leniently: JSON may have 64-bit numbers as text or as numbers, and enums as names or as
//! numbers.

use std::borrow::Cow;

use json::text;

use super::message::{Fault, NO_MESSAGE, Value};
use crate::protobuf;

const NO_NUMBER: Fault = "a field that has a number has another value: send a number, or its digits as text";
const NO_TEXT: Fault = "a text is not UTF-8: send valid UTF-8, or a value of bytes";
const NO_HEX: Fault =
    "the id of a trace or a span is not hexadecimal: send OTLP's JSON, which has ids as hexadecimal digits";

impl<'a> Value<'a> {
    /// A text.
    pub(super) fn text(self) -> Result<Cow<'a, str>, Fault> {
        match self {
            Self::Wire(protobuf::WireValue::Bytes(bytes)) => {
                str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| NO_TEXT)
            }
            Self::Json(json) => text::scalar(json).ok_or(NO_MESSAGE),
            Self::Wire(_) => Err(NO_MESSAGE),
        }
    }

    /// Writes a text. That of JSON needs no escaping: it is copied.
    pub(super) fn write_text(self, out: &mut String) -> Result<(), Fault> {
        match self {
            Self::Json(json) if json.starts_with('"') => out.push_str(json),
            _ => text::write_string(&self.text()?, out),
        }
        Ok(())
    }

    /// An unsigned number.
    pub(super) fn unsigned(self) -> Result<u64, Fault> {
        match self {
            Self::Wire(value) => bits(value),
            Self::Json(_) => whole(&self.text()?).and_then(|number| u64::try_from(number).ok()).ok_or(NO_NUMBER),
        }
    }

    /// A signed number that isn't zigzag encoded.
    pub(super) fn signed(self) -> Result<i64, Fault> {
        match self {
            Self::Wire(value) => bits(value).map(u64::cast_signed),
            Self::Json(_) => whole(&self.text()?).and_then(|number| i64::try_from(number).ok()).ok_or(NO_NUMBER),
        }
    }

    /// A signed number that protobuf has as `sint32`.
    pub(super) fn zigzag(self) -> Result<i64, Fault> {
        match self {
            Self::Wire(value) => bits(value).map(|bits| (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed()),
            Self::Json(_) => self.signed(),
        }
    }

    /// How many bytes it has.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Wire(value) => value.bytes().map_or(8, <[u8]>::len),
            Self::Json(json) => json.len(),
        }
    }

    /// True or false.
    pub(super) fn boolean(self) -> Result<bool, Fault> {
        match self {
            Self::Wire(value) => bits(value).map(|number| number != 0),
            Self::Json(_) => Ok(matches!(&*self.text()?, "true" | "1")),
        }
    }

    /// The number of an enum. Names are those of the definition, after `prefix`; an unknown one counts as 0, the unspecified one.
    pub(super) fn number_of(self, prefix: &str, names: &[&str]) -> Result<u64, Fault> {
        let Self::Json(_) = self else { return self.unsigned() };
        let text = self.text()?;
        if let Some(number) = whole(&text) {
            return Ok(u64::try_from(number).unwrap_or(0));
        }
        let name = text.strip_prefix(prefix).unwrap_or(&text);
        let number = names.iter().position(|known| known.eq_ignore_ascii_case(name)).unwrap_or(0);
        Ok(u64::try_from(number).unwrap_or(0))
    }

    /// The bytes of the id of a trace or a span, which JSON has as hexadecimal digits. `None` for none, and for one that is all zeros.
    pub(super) fn id(self) -> Result<Option<Cow<'a, [u8]>>, Fault> {
        let bytes = match self {
            Self::Wire(value) => Cow::Borrowed(value.bytes().ok_or(NO_MESSAGE)?),
            Self::Json(_) => Cow::Owned(::text::hex::decode(&self.text()?).ok_or(NO_HEX)?),
        };
        Ok(bytes.iter().any(|byte| *byte != 0).then_some(bytes))
    }
}

const fn bits(value: protobuf::WireValue<'_>) -> Result<u64, Fault> {
    match value {
        protobuf::WireValue::Varint(number) | protobuf::WireValue::Fixed64(number) => Ok(number),
        protobuf::WireValue::Fixed32(number) => Ok(number as u64),
        protobuf::WireValue::Bytes(_) => Err(NO_MESSAGE),
    }
}

/// A whole number; also in a form that has a point or an exponent.
fn whole(text: &str) -> Option<i128> {
    text.parse().ok().or_else(|| {
        let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && number.abs() < 2e19)?;
        format!("{number:.0}").parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_numbers_have_several_forms() {
        for (text, number) in [("7", Some(7)), ("\"7\"", Some(7)), ("7e0", Some(7)), ("\"1.5e1\"", Some(15))] {
            assert_eq!(Value::Json(text).unsigned().ok(), number, "{text}");
        }
        assert_eq!(Value::Json("\"18446744073709551615\"").unsigned(), Ok(u64::MAX));
        for text in ["-1", "1.5", "\"x\"", "\"\"", "{}", "1e300", "\"NaN\"", "18446744073709551616"] {
            assert!(Value::Json(text).unsigned().is_err(), "{text}");
        }
    }

    #[test]
    fn enums_have_names_or_numbers() {
        let names = ["UNSET", "OK", "ERROR"];
        for (text, number) in
            [("\"STATUS_CODE_ERROR\"", 2), ("\"ok\"", 1), ("2", 2), ("\"2\"", 2), ("\"NEW\"", 0), ("-1", 0), ("9", 9)]
        {
            assert_eq!(Value::Json(text).number_of("STATUS_CODE_", &names), Ok(number), "{text}");
        }
    }
}
