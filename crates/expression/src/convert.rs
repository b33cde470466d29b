//! The functions that convert a value of one kind to another.

use std::borrow::Cow;

use super::error::Fault;
use super::tree::Function;
use super::value::Made;

/// `int`, `double`, `string` and `bool` of a value.
pub(super) fn convert<'a>(function: Function, value: Made<'a>) -> Result<Made<'a>, Fault> {
    let inconvertible = Fault::Inconvertible(function.name());
    let kind = value.kind();
    match (function, value) {
        (Function::Int, value @ Made::Int(_))
        | (Function::Double, value @ Made::Double(_))
        | (Function::String, value @ Made::Text(_))
        | (Function::Bool, value @ Made::Bool(_)) => Ok(value),
        (Function::Int, Made::Double(number)) => whole(number).map(Made::Int).ok_or(inconvertible),
        (Function::Int, Made::Text(text)) => text.parse().map(Made::Int).map_err(|_| inconvertible),
        (Function::Double, Made::Int(number)) => Ok(Made::Double(number as f64)),
        (Function::Double, Made::Text(text)) => text.parse().map(Made::Double).map_err(|_| inconvertible),
        (Function::String, Made::Bool(value)) => Ok(Made::Text(if value { "true" } else { "false" }.into())),
        (Function::String, Made::Int(number)) => Ok(Made::Text(Cow::Owned(number.to_string()))),
        (Function::String, Made::Double(number)) => Ok(Made::Text(Cow::Owned(number.to_string()))),
        (Function::Bool, Made::Text(text)) => text.parse().map(Made::Bool).map_err(|_| inconvertible),
        _ => Err(Fault::Operand(function.name(), kind)),
    }
}

/// Towards zero; `None` if no integer of 128 bits is that large.
fn whole(number: f64) -> Option<i128> {
    const TWO_TO_127: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    #[allow(clippy::cast_possible_truncation, reason = "it is within the range, and its fraction is to go")]
    (number.abs() < TWO_TO_127).then_some(number as i128)
}
