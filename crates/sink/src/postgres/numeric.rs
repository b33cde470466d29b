//! A decimal number as PostgreSQL's `numeric` has it on the wire: digits to the base of 10,000.

use bytes::BufMut;

/// Decimal digits before and behind the point that are written: PostgreSQL has a few more of either.
const DIGITS_MAX: i64 = 16_000;
const NEGATIVE: u16 = 0x4000;

/// Writes the number that `text` is, as in JSON; `None` where it is none, or has too many digits.
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
    // So many digits stand before the point.
    let mut before = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let behind = (i64::try_from(digits.len()).ok()? - before).max(0);
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..leading);
    before -= i64::try_from(leading).ok()?;
    if behind > DIGITS_MAX || (!digits.is_empty() && before > DIGITS_MAX) {
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
    out.put_u16(u16::try_from(behind).ok()?);
    groups.into_iter().for_each(|group| out.put_u16(group));
    Some(())
}

/// Four decimal digits each; the point lies between two of them.
fn groups(digits: &[u8], before: i64) -> Vec<u16> {
    // The first group has as many digits as bring the point to a border.
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
