//! The values of a body: one after the other, with or without whitespace between them, or in arrays.

use json::parts;
use serde_json::value::RawValue;

use crate::{Problem, Stop};

/// Passes each value on as it is written.
pub(super) fn walk(body: &[u8], each: &mut dyn FnMut(&str) -> Result<(), Stop>) -> Result<(), Stop> {
    let body = body.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(body);
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>();
    while let Some(value) = values.next() {
        let Ok(value) = value else { return Err(invalid(&body[values.byte_offset()..], values.byte_offset())) };
        let value = value.get();
        if value.starts_with('[') {
            parts::elements(value).try_for_each(&mut *each)?;
        } else {
            each(value)?;
        }
    }
    Ok(())
}

fn invalid(rest: &[u8], offset: usize) -> Stop {
    let detail = match json::check(rest) {
        Err(error) => format!("{} (byte {})", error.detail, offset + error.offset),
        Ok(_) => format!("the value is no JSON (byte {offset})"),
    };
    Problem { code: "json", ..Problem::invalid(detail) }.into()
}
