//! Numbers of payloads for measures.

use std::cmp::Ordering;

use expression::{Computed, Value, compare};

/// An integer if it is written as one that fits 128 bits, otherwise the nearest double, which is finite.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// Written without a fraction and an exponent.
    Int(i128),
    /// Any other one.
    Double(f64),
}

impl Number {
    /// The number of a JSON text; `None` if it is something else, or infinite as a double.
    pub(super) fn from_json(json: &str) -> Option<Self> {
        match Value::Json(json).read() {
            Computed::Int(number) => Some(Self::Int(number)),
            Computed::Double(number) if number.is_finite() => Some(Self::Double(number)),
            _ => None,
        }
    }

    /// The nearest double.
    pub(super) fn to_double(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Double(number) => number,
        }
    }

    /// As JSON; `null` if JSON cannot express it.
    pub(super) fn write(self, out: &mut String) {
        match self {
            Self::Int(number) => out.push_str(&number.to_string()),
            // `serde_json` writes null for values that are not finite.
            Self::Double(number) => out.push_str(&serde_json::Value::from(number).to_string()),
        }
    }

    fn made(self) -> Computed<'static> {
        match self {
            Self::Int(number) => Computed::Int(number),
            Self::Double(number) => Computed::Double(number),
        }
    }

    /// Zeros have no sign here, and of equal numbers the integer is the smaller: a total order.
    pub(super) fn order(self, other: Self) -> Ordering {
        let by_value = compare(&self.made(), &other.made()).flatten().unwrap_or(Ordering::Equal);
        let is_double = |number| matches!(number, Self::Double(_));
        by_value.then(is_double(self).cmp(&is_double(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(json: &str) -> Number {
        Number::from_json(json).unwrap()
    }

    #[test]
    fn numbers_are_ordered_exactly() {
        let ordered = ["-1e300", "-1", "-0.5", "0", "1", "1.0", "9007199254740993", "9007199254740994.0", "1e300"];
        for (at, left) in ordered.iter().enumerate() {
            for (other, right) in ordered.iter().enumerate() {
                assert_eq!(number(left).order(number(right)), at.cmp(&other), "{left} {right}");
            }
        }
    }

    #[test]
    fn only_finite_numbers_are_numbers() {
        for json in ["null", "true", "\"1\"", "[1]", "{}", "1e999", "-1e999"] {
            assert!(Number::from_json(json).is_none(), "{json}");
        }
    }
}
