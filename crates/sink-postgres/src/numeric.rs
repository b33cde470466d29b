//! A decimal number as PostgreSQL's `numeric` has it on the wire: digits to the base of 10,000.

use bytes::BufMut;

/// Decimal digits before and after the point that are written: PostgreSQL allows a few more of either.
const DIGITS_MAX: i64 = 16_000;
const NEGATIVE: u16 = 0x4000;

/// Writes the JSON number `text`; `None` if it isn't a number, or has too many digits.
pub(super) fn put(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (sign, rest) = text.strip_prefix('-').map_or((0, text), |rest| (NEGATIVE, rest));
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (rest, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(part.bytes()).collect();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // The number of digits before the point.
    let mut before = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let after = (i64::try_from(digits.len()).ok()? - before).max(0);
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..leading);
    before -= i64::try_from(leading).ok()?;
    if after > DIGITS_MAX || (!digits.is_empty() && before > DIGITS_MAX) {
        return None;
    }
    let groups = groups(&digits, before);
    let sign = if groups.is_empty() { 0 } else { sign };
    out.put_u16(u16::try_from(groups.len()).ok()?);
    out.put_i16(if groups.is_empty() {
        0
    } else {
        i16::try_from(before.div_euclid(4) + i64::from(before % 4 != 0) - 1).ok()?
    });
    out.put_u16(sign);
    out.put_u16(u16::try_from(after).ok()?);
    groups.into_iter().for_each(|group| out.put_u16(group));
    Some(())
}

/// The whole number with the value of `text`, in any form: `1.0`, `1E+2` and `120e-1` are whole. Exact; `None` if it
/// isn't a number, has a fraction, or is too large.
pub(super) fn whole(text: &str) -> Option<i128> {
    // Strings may begin with a plus sign.
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_negative = text.starts_with('-');
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if before.is_empty() || mantissa.ends_with('.') || !is_number(before) || !is_number(after) {
        return None;
    }
    let digits = [before, after].concat();
    let (digits, zeros) = match digits.trim_end_matches('0') {
        "" => return Some(0),
        trimmed => (trimmed.trim_start_matches('0'), digits.len() - trimmed.len()),
    };
    // The digits are multiplied by ten to this power.
    let power = i64::try_from(zeros).ok()?.checked_sub(i64::try_from(after.len()).ok()?)?.checked_add(exponent)?;
    let power = u32::try_from(power).ok()?;
    let number = digits.parse::<i128>().ok()?.checked_mul(10_i128.checked_pow(power)?)?;
    Some(if is_negative { -number } else { number })
}

/// Four decimal digits each; the point is between two groups.
fn groups(digits: &[u8], before: i64) -> Vec<u16> {
    // The first group has as many digits as are needed to put the point between two groups.
    let first = usize::try_from(before.rem_euclid(4)).unwrap_or(0);
    let first = if first == 0 { 4 } else { first };
    let mut padded = vec![b'0'; 4 - first];
    padded.extend(digits);
    padded.resize(padded.len().next_multiple_of(4), b'0');
    let value = |group: &[u8]| group.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    let mut groups: Vec<u16> = padded.chunks(4).map(value).collect();
    while groups.last() == Some(&0) {
        groups.pop();
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_by_value_and_exactly() {
        for (text, number) in [
            ("0", 0),
            ("-0.000e99999", 0),
            ("1.0", 1),
            ("1E+2", 100),
            ("120e-1", 12),
            ("-1.5e1", -15),
            ("0.001e3", 1),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("-9223372036854775808", i128::from(i64::MIN)),
            ("92233720368547758070e-1", i128::from(i64::MAX)),
            ("00012", 12),
            ("+7", 7),
            ("10000000000000000000000000000000000000000e-38", 100),
        ] {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        for text in [
            "",
            "-",
            "1.5",
            "1e-1",
            "1e99999",
            "1e9999999999999999999999",
            "1.",
            ".5",
            "0x10",
            "+-1",
            "1 ",
            "true",
            "1_0",
            "1e",
            "NaN",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
