//! The fields of times as text: numbers, fractions of a second, offsets from UTC.

/// A number of digits alone.
#[must_use]
pub fn digits(text: &str) -> Option<i64> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    let number = |value: i64, byte| value.checked_mul(10)?.checked_add(digit(byte)?);
    if text.is_empty() { None } else { text.bytes().try_fold(0, number) }
}

/// `.25` in microseconds, and the rest of the text. It is zero without a point or comma and a digit.
#[must_use]
pub fn fraction(text: &str) -> (i64, &str) {
    match text.strip_prefix(['.', ',']).filter(|fraction| fraction.starts_with(|first: char| first.is_ascii_digit())) {
        Some(fraction) => decimals(fraction),
        None => (0, text),
    }
}

/// The digits after the point of a second in microseconds, and the rest of the text.
#[must_use]
pub fn decimals(text: &str) -> (i64, &str) {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    let digits = text.bytes().take(count).chain(std::iter::repeat(b'0'));
    let microseconds = digits.take(6).fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    (microseconds, &text[count..])
}

/// `Z`, `+01:00`, `+0100` or `+01` in minutes, and the rest of the text.
#[must_use]
pub fn offset(text: &str) -> Option<(i64, &str)> {
    for name in ["Z", "z", "UTC", "GMT"] {
        if let Some(rest) = text.strip_prefix(name) {
            return Some((0, rest));
        }
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let two = |text: &str| text.get(..2).and_then(digits);
    let (hours, rest) = (two(&text[1..])?, &text[3..]);
    let after_colon = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = two(after_colon).map_or((0, rest), |minutes| (minutes, &after_colon[2..]));
    (hours < 24 && minutes < 60).then_some((sign * (hours * 60 + minutes), rest))
}
