//! Numbers as texts: compared digit by digit, so none is too large or too long for an exact result.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Digits that a divisor may have: products of two such numbers fit 128 bits.
pub(super) const DIVISOR_DIGITS_MAX: usize = 18;
/// Larger exponents are treated as this one: no text has so many digits that it would matter.
const EXPONENT_MAX: i64 = 1_000_000_000_000_000;

/// A number that was read once, to be compared often.
#[derive(Clone, Debug)]
pub struct NumberLiteral {
    /// The text of the number.
    pub text: Box<str>,
    small: Option<i64>,
    exact: Decimal,
}

impl NumberLiteral {
    /// Reads a number.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), small: small(text), exact: Decimal::of(text) }
    }

    /// Compares the number in `text` with this one.
    #[must_use]
    pub fn order_of(&self, text: &str) -> Ordering {
        self.order_of_small(small(text), text)
    }

    /// The same for a number that [`small`] has parsed.
    pub(super) fn order_of_small(&self, small: Option<i64>, text: &str) -> Ordering {
        match (small, self.small) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => Decimal::of(text).cmp(&self.exact),
        }
    }
}

/// What numbers must be multiples of.
#[derive(Clone, Debug)]
pub struct Divisor {
    /// The text of the number.
    pub text: Box<str>,
    digits: u64,
    exponent: i64,
}

impl Divisor {
    /// `None` where the number isn't above zero, or has too many digits.
    pub(super) fn new(text: &str) -> Option<Self> {
        let exact = Decimal::of(text);
        if exact.negative || exact.digits.is_empty() || exact.digits.len() > DIVISOR_DIGITS_MAX {
            return None;
        }
        let digits = exact.digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        Some(Self { text: text.into(), digits, exponent: exact.exponent() })
    }

    /// Whether the number in `text` is a multiple.
    #[must_use]
    pub fn divides(&self, text: &str) -> bool {
        if let (Some(small), 0) = (small(text), self.exponent) {
            return small.unsigned_abs().is_multiple_of(self.digits);
        }
        let exact = Decimal::of(text);
        // What is left of the digits has no factor of ten: with a smaller exponent it can't be a multiple.
        let Ok(shift) = u64::try_from(exact.exponent().saturating_sub(self.exponent)) else {
            return exact.digits.is_empty();
        };
        // With at most 18 digits ten times a remainder fits.
        let rest = exact.digits.iter().fold(0, |rest, digit| (rest * 10 + u64::from(digit - b'0')) % self.digits);
        let divisor = u128::from(self.digits);
        (u128::from(rest) * power_of_ten(shift, divisor)).is_multiple_of(divisor)
    }
}

/// A power of ten, modulo a number of at most [`DIVISOR_DIGITS_MAX`] digits.
fn power_of_ten(mut exponent: u64, modulus: u128) -> u128 {
    let (mut power, mut square) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * square % modulus;
        }
        square = square * square % modulus;
        exponent >>= 1;
    }
    power
}

/// A number of at most 18 digits and nothing else.
pub(super) fn small(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0;
    for digit in digits {
        value = value * 10 + i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
    }
    Some(if text.starts_with('-') { -value } else { value })
}

/// Whether a number has no fraction, however it is written.
pub(super) fn is_whole(text: &str) -> bool {
    is_plain_number(text) || Decimal::of(text).exponent() >= 0
}

/// Whether a number is written without fraction and exponent.
#[must_use]
pub fn is_plain_number(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// Whether two numbers are the same.
pub(super) fn equal(left: &str, right: &str) -> bool {
    left == right || Decimal::of(left) == Decimal::of(right)
}

/// Gives the same for all texts of a number.
pub(super) fn hash(text: &str, hasher: &mut impl Hasher) {
    if let Some(small) = small(text) {
        return small.hash(hasher);
    }
    let exact = Decimal::of(text);
    match exact.small() {
        Some(small) => small.hash(hasher),
        None => exact.hash(hasher),
    }
}

/// `0.DIGITS × 10^point`; the first digit and the last are none of them zero, and of zero there are none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    fn of(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let negative = mantissa.starts_with('-');
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = || whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
        let leading = digits().take_while(|digit| *digit == b'0').count();
        let mut significant: Vec<u8> = digits().skip(leading).collect();
        significant.truncate(significant.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1));
        if significant.is_empty() {
            return Self { negative: false, digits: significant, point: 0 };
        }
        let whole_digits = whole.bytes().filter(u8::is_ascii_digit).count();
        let length = |count: usize| i64::try_from(count).unwrap_or(EXPONENT_MAX);
        let point = length(whole_digits) - length(leading) + read_exponent(exponent);
        Self { negative, digits: significant, point }
    }

    /// The exponent where the digits are a whole number.
    fn exponent(&self) -> i64 {
        self.point - i64::try_from(self.digits.len()).unwrap_or(EXPONENT_MAX)
    }

    /// The number, where [`small`] gives it for a text of it.
    fn small(&self) -> Option<i64> {
        let zeros = u32::try_from(self.exponent()).ok()?;
        if self.point > 18 {
            return None;
        }
        let digits = self.digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        let value = digits * 10_i64.pow(zeros);
        Some(if self.negative { -value } else { value })
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits)),
            (left, right) => right.cmp(&left),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (left, right) => right.cmp(&left),
        }
    }
}

fn read_exponent(text: &str) -> i64 {
    let negative = text.starts_with('-');
    let digits = text.trim_start_matches(['+', '-']).bytes().filter(u8::is_ascii_digit);
    let add =
        |value: i64, digit: u8| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(EXPONENT_MAX);
    let value = digits.fold(0, add);
    if negative { -value } else { value }
}
