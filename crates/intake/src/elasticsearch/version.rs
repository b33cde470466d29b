//! The version that the intake reports.

use settings::InvalidValue;

/// Clients of the versions 7, 8 and 9 accept it.
pub(super) const VERSION_DEFAULT: &str = "8.19.0";

/// A version: three numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version(String);

impl Version {
    /// The version of a text.
    ///
    /// # Errors
    /// It isn't three numbers.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidValue> {
        let is_number = |part: &str| {
            (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()) && is_canonical(part)
        };
        let parts = text.split('.');
        if parts.clone().count() == 3 && parts.clone().all(is_number) {
            return Ok(Self(text.to_owned()));
        }
        let error = InvalidValue::new("is not a version", "expected three numbers with dots");
        Err(error.help(format!("write a version of Elasticsearch, as in \"{VERSION_DEFAULT}\"")))
    }

    /// Its text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a number has no needless zeros.
fn is_canonical(number: &str) -> bool {
    number == "0" || !number.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_three_numbers() {
        assert_eq!(Version::parse("9.2.10").unwrap().as_str(), "9.2.10");
        for text in ["", "8", "8.19", "8.19.0.1", "8.19.x", "8..0", "8.19.0-rc1", " 8.19.0", "8.019.0", "8.19.00000"] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
    }
}
