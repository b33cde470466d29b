//! The functions that convert a value of one kind to another.

use std::borrow::Cow;

use super::error::Fault;
use super::tree::Function;
use super::value::Computed;

/// `int`, `double`, `string` and `bool` of a value.
pub(super) fn convert<'a>(function: Function, value: Computed<'a>) -> Result<Computed<'a>, Fault> {
    let inconvertible = Fault::Inconvertible(function.name());
    let kind = value.kind();
    match (function, value) {
        (Function::Int, value @ Computed::Int(_))
        | (Function::Double, value @ Computed::Double(_))
        | (Function::String, value @ Computed::Text(_))
        | (Function::Bool, value @ Computed::Bool(_)) => Ok(value),
        (Function::Int, Computed::Double(number)) => whole(number).map(Computed::Int).ok_or(inconvertible),
        (Function::Int, Computed::Text(text)) => text.parse().map(Computed::Int).map_err(|_| inconvertible),
        (Function::Double, Computed::Int(number)) => Ok(Computed::Double(number as f64)),
        (Function::Double, Computed::Text(text)) => text.parse().map(Computed::Double).map_err(|_| inconvertible),
        (Function::String, Computed::Bool(value)) => Ok(Computed::Text(if value { "true" } else { "false" }.into())),
        (Function::String, Computed::Int(number)) => Ok(Computed::Text(Cow::Owned(number.to_string()))),
        (Function::String, Computed::Double(number)) => Ok(Computed::Text(Cow::Owned(number.to_string()))),
        (Function::Bool, Computed::Text(text)) => text.parse().map(Computed::Bool).map_err(|_| inconvertible),
        _ => Err(Fault::Operand(function.name(), kind)),
    }
}

/// Towards zero; `None` if no integer of 128 bits is that large.
fn whole(number: f64) -> Option<i128> {
    const TWO_TO_127: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    #[allow(clippy::cast_possible_truncation, reason = "it is within the range, and its fraction is to go")]
    (number.abs() < TWO_TO_127).then_some(number as i128)
}
