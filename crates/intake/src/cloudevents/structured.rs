//! Structured and batch mode: events in JSON.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json::parts;
use json::text::{read_string, scalar};

use super::data::Data;
use super::event::{Event, Invalid};

/// Reads an event in JSON, which has passed [`json::check`].
pub(super) fn read(object: &str) -> Result<(Event<'_>, Data<'_>), Invalid> {
    if !object.starts_with('{') {
        return Err("the event isn't a JSON object: send an object with the attributes of the event".into());
    }
    let mut event = Event::default();
    let (mut data, mut encoded) = (None, None);
    for member in parts::members(object) {
        match (member.name(), member.value) {
            // An attribute that is null has no value.
            (_, "null") => {}
            (name, value) if name == "data" => data = Some(value),
            (name, value) if name == "data_base64" => encoded = Some(value),
            (name, value) => {
                let text = scalar(value).ok_or_else(|| not_scalar(&name))?;
                event.add(name, text)?;
            }
        }
    }
    event.check()?;
    let data = match (data, encoded) {
        (Some(_), Some(_)) => return Err("the event has both `data` and `data_base64`: send one of them".into()),
        (Some(value), None) => Data::of_member(&mut event, value),
        (None, Some(value)) => Data::of_bytes(&mut event, Cow::Owned(decoded(value)?))?,
        (None, None) => Data::None,
    };
    Ok((event, data))
}

fn not_scalar(name: &str) -> Invalid {
    let name: String = name.chars().take(64).collect();
    format!("the attribute `{name}` is an object or an array: send a string, a number or a boolean").into()
}

fn decoded(value: &str) -> Result<Vec<u8>, Invalid> {
    let bytes = read_string(value).and_then(|text| STANDARD.decode(text.as_bytes()).ok());
    bytes.ok_or_else(|| "`data_base64` isn't a string in base64 (RFC 4648, section 4)".into())
}
