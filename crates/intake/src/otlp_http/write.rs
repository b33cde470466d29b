//! Parts of the JSON that are written: members, numbers, times and ids.

use std::fmt::Write;

use ::text::hex::Hex;
use ::text::rfc3339;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::message::{Fault, NO_MESSAGE, Value};
use crate::protobuf;

/// Begins a member of an object that is written: `"name":` after a comma, if it isn't the first. The name needs no escapes.
pub(super) fn member(name: &str, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
}

/// Writes a member with a text, unless there is none.
pub(super) fn text(name: &str, value: Option<Value<'_>>, out: &mut String) -> Result<(), Fault> {
    let Some(value) = value else { return Ok(()) };
    let before = out.len();
    member(name, out);
    let begin = out.len();
    value.write_text(out)?;
    if out.len() == begin + 2 {
        // An empty text is an absent one.
        out.truncate(before);
    }
    Ok(())
}

/// Writes a member with a name of Forebay's.
pub(super) fn word(name: &str, value: &str, out: &mut String) {
    member(name, out);
    out.push('"');
    out.push_str(value);
    out.push('"');
}

/// Writes a member with the name of an enum's number, unless that is 0: unspecified. A number without a name is written itself.
pub(super) fn named(name: &str, number: u64, names: &[&str], out: &mut String) {
    match usize::try_from(number).ok().and_then(|number| names.get(number)) {
        _ if number == 0 => {}
        Some(value) => word(name, value, out),
        None => count(name, number, out),
    }
}

/// Writes a member with a whole number, unless it is 0.
pub(super) fn count(name: &str, number: u64, out: &mut String) {
    if number != 0 {
        member(name, out);
        whole(number, out);
    }
}

/// Writes a whole number.
pub(super) fn whole(number: u64, out: &mut String) {
    // Formatting takes several times as long, and records have many numbers.
    let (mut digits, mut rest, mut begin) = ([b'0'; 20], number, 20);
    while begin > 0 && (rest > 0 || begin == 20) {
        begin -= 1;
        digits[begin] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    out.push_str(str::from_utf8(&digits[begin..]).unwrap_or("0"));
}

/// The same with a sign.
pub(super) fn signed(number: i64, out: &mut String) {
    if number < 0 {
        out.push('-');
    }
    whole(number.unsigned_abs(), out);
}

/// Writes a member with a time, unless it is 0: nanoseconds since 1970, in RFC 3339.
pub(super) fn time(name: &str, nanoseconds: u64, out: &mut String) {
    if nanoseconds == 0 {
        return;
    }
    member(name, out);
    let text = rfc3339::text(i64::try_from(nanoseconds / 1_000).unwrap_or(i64::MAX));
    out.push('"');
    // The form has 6 digits of a second and a Z.
    out.push_str(str::from_utf8(&text[..text.len() - 1]).unwrap_or_default());
    let last = nanoseconds % 1_000;
    for digit in [last / 100, last / 10 % 10, last % 10] {
        out.push(char::from(b'0' + u8::try_from(digit).unwrap_or(0)));
    }
    out.push_str("Z\"");
}

/// Writes a member with the hexadecimal digits of an id, unless there is none.
pub(super) fn id(name: &str, value: Option<Value<'_>>, out: &mut String) -> Result<(), Fault> {
    if let Some(bytes) = value.map_or(Ok(None), Value::id)? {
        member(name, out);
        // Writing to a string can't fail.
        let _ = write!(out, "\"{}\"", Hex(&bytes));
    }
    Ok(())
}

/// Writes a number with a fraction. JSON has no infinity, and none that is no number: they are texts.
pub(super) fn double(value: Value<'_>, out: &mut String) -> Result<(), Fault> {
    match value {
        Value::Wire(protobuf::WireValue::Fixed64(bits)) => finite(f64::from_bits(bits), out),
        Value::Json(json) if json.starts_with('"') => finite(value.text()?.parse().map_err(|_| NO_MESSAGE)?, out),
        Value::Json(json) if json.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => {
            out.push_str(json);
        }
        _ => return Err(NO_MESSAGE),
    }
    Ok(())
}

fn finite(number: f64, out: &mut String) {
    if number.is_nan() {
        out.push_str("\"NaN\"");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
    } else {
        let _ = write!(out, "{number:?}");
    }
}

/// Writes bytes as base64, as JSON has them already.
pub(super) fn bytes(value: Value<'_>, out: &mut String) -> Result<(), Fault> {
    match value {
        Value::Wire(value) => {
            out.push('"');
            STANDARD.encode_string(value.bytes().ok_or(NO_MESSAGE)?, out);
            out.push('"');
            Ok(())
        }
        Value::Json(_) => value.write_text(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_nanoseconds() {
        let mut out = "{".to_owned();
        time("a", 1_544_712_660_300_000_001, &mut out);
        time("b", 0, &mut out);
        time("c", u64::MAX, &mut out);
        assert_eq!(out, r#"{"a":"2018-12-13T14:51:00.300000001Z","c":"2554-07-21T23:34:33.709551615Z""#);
    }

    #[test]
    fn whole_numbers_have_their_digits() {
        for number in [0, 7, 10, 1_234_567_890, i64::MAX, -1, i64::MIN] {
            let mut out = String::new();
            signed(number, &mut out);
            assert_eq!(out, number.to_string());
        }
        let mut out = String::new();
        whole(u64::MAX, &mut out);
        assert_eq!(out, u64::MAX.to_string());
    }

    #[test]
    fn doubles_become_numbers_or_texts() {
        for (number, expected) in
            [(0.1, "0.1"), (1.0, "1.0"), (1e300, "1e300"), (f64::NAN, "\"NaN\""), (f64::INFINITY, "\"Infinity\"")]
        {
            let mut out = String::new();
            double(Value::Wire(protobuf::WireValue::Fixed64(number.to_bits())), &mut out).unwrap();
            assert_eq!(out, expected);
        }
        for (json, expected) in [("1.50", Some("1.50")), ("\"-Infinity\"", Some("\"-Infinity\"")), ("true", None)] {
            let mut out = String::new();
            assert_eq!(double(Value::Json(json), &mut out).ok().map(|()| &*out), expected, "{json}");
        }
    }
}
