//! Sizes in bytes with units: `512MiB`, `1.5 GB`, `4096`.

use crate::invalid_value::InvalidValue;

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Reads a number with a unit, in any case; without one it is bytes.
///
/// # Errors
/// It is none, or has more than 64 bits.
pub fn parse(text: &str) -> Result<u64, InvalidValue> {
    let wrong = || {
        InvalidValue::new("is not a size", "expected a number of bytes with a unit")
            .help("for example 512MiB or 1.5GB; units are KB, MB, GB, TB (thousands) and KiB, MiB, GiB, TiB (1024s)")
    };
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start().to_ascii_lowercase());
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let bytes = whole.checked_mul(*factor).ok_or_else(wrong)?;
    bytes.checked_add(fraction(part, *factor).ok_or_else(wrong)?).ok_or_else(wrong)
}

/// The part of a unit after the point; fractions of a byte are dropped.
fn fraction(digits: &str, factor: u64) -> Option<u64> {
    let scale = 10_u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    let part = u128::from(digits.parse::<u64>().ok()?);
    u64::try_from(part * u128::from(factor) / scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_common_notations() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1 kB", 1_000),
            ("1.5GB", 1_500_000_000),
            ("512MiB", 512 << 20),
            (" 2 tib ", 2 << 40),
            ("0.0009765625 kib", 1),
            ("16777215.99TiB", 18_446_744_062_714_435_338),
        ] {
            assert_eq!(parse(text).ok(), Some(bytes), "{text}");
        }
        for text in ["", "GB", "-1", "1e9", "1,5GB", "1 GX", "1..5GB", "1.GB", ".5GB", "99999999TiB", "1.5.5MB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
