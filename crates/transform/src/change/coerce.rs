//! Converts a value to another kind if that loses nothing.

use serde::de::IgnoredAny;

use super::{Changed, unfit};
use json::text;
use timestamp::{TimeFormat, TimeText, Zone};

/// Converts a value to a kind.
#[derive(Clone, Debug)]
pub(crate) enum Coerce {
    Number,
    Integer,
    String,
    Boolean,
    Time { format: TimeFormat, zone: Zone, write: TimeText },
}

impl Coerce {
    /// A value that is of the kind already stays as it is written.
    pub(super) fn apply(&self, json: &str, out: &mut String) -> Changed {
        match self {
            Self::Number => out.push_str(&number(json)?),
            Self::Integer => out.push_str(&integer(&number(json)?)?),
            Self::String if json.starts_with('"') => out.push_str(json),
            Self::String => text::write_string(json, out),
            Self::Boolean => out.push_str(boolean(json)?),
            Self::Time { format, zone, write } => {
                let Some(text) = text::scalar(json) else { return unfit(json, "a string or a number") };
                let time = format.read(text.trim(), Some(*zone))?;
                write.write(time, out);
            }
        }
        Ok(())
    }
}

/// The digits of a number as they are written.
fn number(json: &str) -> Result<String, String> {
    let text = match json.as_bytes().first() {
        Some(b'"') => text::read_string(json).unwrap_or_default(),
        Some(b'-' | b'0'..=b'9') => return Ok(json.to_owned()),
        _ => return unfit(json, "a number, or a string with one"),
    };
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches('0');
    let zero = if digits.starts_with(|first: char| first.is_ascii_digit()) { "" } else { "0" };
    let number = format!("{sign}{zero}{digits}");
    let had_digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_number = had_digits && !digits.starts_with(['-', '+', ' ']);
    if is_number && serde_json::from_str::<IgnoredAny>(&number).is_ok() {
        return Ok(number);
    }
    Err("the string holds no number".to_owned())
}

/// The number without a fraction that is zero.
fn integer(number: &str) -> Result<String, String> {
    if !number.contains(['.', 'e', 'E']) {
        return Ok(number.to_owned());
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !number.contains(['e', 'E']) && fraction.bytes().all(|digit| digit == b'0') {
        return Ok(whole.to_owned());
    }
    with_exponent(number).ok_or_else(|| "the number has a fraction, or is too large".to_owned())
}

/// Digits that an integer may have which is written with an exponent.
const DIGITS_MAX: usize = 64;

/// The integer that a number with an exponent is, as `1E+2`: digit by digit, so none is lost.
fn with_exponent(number: &str) -> Option<String> {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |number| ("-", number));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let kept = digits.trim_start_matches('0');
    if kept.is_empty() {
        return Some("0".to_owned());
    }
    let zeros = i64::try_from(digits.len() - kept.len()).ok()?;
    let count = i64::try_from(whole.len()).ok()? - zeros + i64::from(exponent.parse::<i32>().ok()?);
    let count = usize::try_from(count).ok().filter(|count| *count <= DIGITS_MAX)?;
    let has_fraction = kept.get(count..).is_some_and(|rest| rest.bytes().any(|digit| digit != b'0'));
    let whole = kept.get(..count).unwrap_or(kept);
    (!has_fraction && count > 0).then(|| format!("{sign}{whole:0<count$}"))
}

fn boolean(json: &str) -> Result<&'static str, String> {
    let text = text::scalar(json).unwrap_or_default().trim().to_lowercase();
    match text.as_str() {
        "true" | "yes" | "on" | "1" => Ok("true"),
        "false" | "no" | "off" | "0" => Ok("false"),
        _ => Err("the value is none of true, false, yes, no, on, off, 1 and 0".to_owned()),
    }
}
