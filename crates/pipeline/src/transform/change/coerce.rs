//! Makes a value one of another kind, where that loses nothing.

use serde::de::IgnoredAny;

use super::{Changed, unfit};
use crate::transform::text;
use crate::transform::time::{TimeFormat, TimeText, Zone};

/// Makes a value one of a kind.
#[derive(Clone, Debug)]
pub(in crate::transform) struct Coerce {
    pub(in crate::transform) kind: Kind,
}

/// The kinds there are.
#[derive(Clone, Debug)]
pub(in crate::transform) enum Kind {
    Number,
    Integer,
    String,
    Boolean,
    Time { format: TimeFormat, zone: Zone, write: TimeText },
}

impl Coerce {
    /// A value that is of the kind already stays as it is written.
    pub(super) fn apply(&self, json: &str, out: &mut String) -> Changed {
        match &self.kind {
            Kind::Number => out.push_str(&number(json)?),
            Kind::Integer => out.push_str(&integer(&number(json)?)?),
            Kind::String if json.starts_with('"') => out.push_str(json),
            Kind::String => text::write_string(json, out),
            Kind::Boolean => out.push_str(boolean(json)?),
            Kind::Time { format, zone, write } => {
                let Some(text) = text::scalar(json) else { return unfit(json, "a string or a number") };
                let time = format.read(text.trim(), zone)?;
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
    let value: f64 = number.parse().map_err(|_| "the value is no number".to_owned())?;
    // Beyond it a double doesn't say which integer is meant.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(format!("{value}"));
    }
    Err("the number has a fraction, or is too large".to_owned())
}

fn boolean(json: &str) -> Result<&'static str, String> {
    let text = text::scalar(json).unwrap_or_default().trim().to_lowercase();
    match text.as_str() {
        "true" | "yes" | "on" | "1" => Ok("true"),
        "false" | "no" | "off" | "0" => Ok("false"),
        _ => Err("the value is none of true, false, yes, no, on, off, 1 and 0".to_owned()),
    }
}
