//! Comparison and arithmetic. JSON has one kind of number, so an int and a double can be mixed.

use std::cmp::Ordering;

use super::error::Fault;
use super::tree::Binary;
use super::value::Computed;

/// The order of two numbers, of two strings or of two bools; `None` for others. The inner one is `None` if one is
/// `NaN`.
#[must_use]
pub fn compare(left: &Computed<'_>, right: &Computed<'_>) -> Option<Option<Ordering>> {
    match (left, right) {
        (Computed::Int(left), Computed::Int(right)) => Some(Some(left.cmp(right))),
        (Computed::Double(left), Computed::Double(right)) => Some(left.partial_cmp(right)),
        (Computed::Int(left), Computed::Double(right)) => Some(compare_mixed(*left, *right)),
        (Computed::Double(left), Computed::Int(right)) => Some(compare_mixed(*right, *left).map(Ordering::reverse)),
        (Computed::Text(left), Computed::Text(right)) => Some(Some(left.as_ref().cmp(right))),
        (Computed::Bool(left), Computed::Bool(right)) => Some(Some(left.cmp(right))),
        _ => None,
    }
}

/// Exact, however large the integer is.
fn compare_mixed(int: i128, double: f64) -> Option<Ordering> {
    const TWO_TO_127: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if double.is_nan() {
        return None;
    }
    if double >= TWO_TO_127 {
        return Some(Ordering::Less);
    }
    if double < -TWO_TO_127 {
        return Some(Ordering::Greater);
    }
    #[allow(clippy::cast_possible_truncation, reason = "it is within the range, and has no fraction")]
    let whole = double.trunc() as i128;
    Some(int.cmp(&whole).then(0.0_f64.partial_cmp(&double.fract())?))
}

/// `+`, `-`, `*`, `/` and `%` of two numbers.
pub(super) fn reckon<'a>(operator: Binary, left: &Computed<'a>, right: &Computed<'a>) -> Result<Computed<'a>, Fault> {
    let unfit = || Fault::Operands(operator.symbol(), left.kind(), right.kind());
    match (left, right) {
        (Computed::Int(left), Computed::Int(right)) => reckon_ints(operator, *left, *right).map(Computed::Int),
        (Computed::Double(left), Computed::Double(right)) => reckon_doubles(operator, *left, *right).ok_or_else(unfit),
        (Computed::Int(left), Computed::Double(right)) => {
            reckon_doubles(operator, *left as f64, *right).ok_or_else(unfit)
        }
        (Computed::Double(left), Computed::Int(right)) => {
            reckon_doubles(operator, *left, *right as f64).ok_or_else(unfit)
        }
        _ => Err(unfit()),
    }
}

fn reckon_ints(operator: Binary, left: i128, right: i128) -> Result<i128, Fault> {
    if matches!(operator, Binary::Divide | Binary::Remainder) && right == 0 {
        return Err(Fault::DivisionByZero);
    }
    let result = match operator {
        Binary::Subtract => left.checked_sub(right),
        Binary::Multiply => left.checked_mul(right),
        Binary::Divide => left.checked_div(right),
        Binary::Remainder => left.checked_rem(right),
        _ => left.checked_add(right),
    };
    result.ok_or(Fault::Overflow)
}

/// CEL has no remainder of doubles.
fn reckon_doubles<'a>(operator: Binary, left: f64, right: f64) -> Option<Computed<'a>> {
    Some(Computed::Double(match operator {
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::Remainder => return None,
        _ => left + right,
    }))
}
