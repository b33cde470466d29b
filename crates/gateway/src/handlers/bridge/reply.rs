//! A service's message as a response of HTTP.

use std::fmt::Write;

use http::StatusCode;
use http1::Response;
use nats::{Headers, Message};

use crate::admission::ReadPermit;
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

/// The headers of a message that the client gets, in lower case.
const RETURNED: [&str; 10] = [
    "content-type",
    "content-disposition",
    "content-encoding",
    "content-language",
    "cache-control",
    "etag",
    "last-modified",
    "location",
    "retry-after",
    "vary",
];
/// The status that a service answers with.
const STATUS: &str = "Forebay-Status";
/// The error of a NATS micro service (NATS' ADR-32): a code, and a text.
const SERVICE_ERROR_CODE: &str = "Nats-Service-Error-Code";
const SERVICE_ERROR: &str = "Nats-Service-Error";

/// The response of a message. Its memory is counted until the client has received it.
///
/// # Errors
/// Its status or its headers can't be read.
pub(super) fn response(message: Message, room: ReadPermit) -> Result<Response, Refused> {
    let headers = message.headers().map_err(|error| bad(error.to_string()))?;
    let status = status(&headers)?;
    let fields = Some(fields(&headers)?).filter(|fields| !fields.is_empty()).map(String::into_boxed_str);
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(Response { status, fields, ..Response::ok() });
    }
    // A micro service may have its error's text in a header alone.
    let text = headers.get(SERVICE_ERROR).filter(|_| status.as_u16() >= 400 && message.payload().is_empty());
    let content_type = text.filter(|_| headers.get(RETURNED[0]).is_none()).map(|_| "text/plain; charset=utf-8");
    let text = text.map(<[u8]>::to_vec);
    // The message's own memory becomes the body: a copy would need as much again.
    let body = text.unwrap_or_else(|| message.into_payload().into());
    Ok(Response { status, content_type, fields, reservation: Some(Box::new(room)), body, ..Response::ok() })
}

/// The status: that of the service, that of a micro service's error, or 200.
fn status(headers: &Headers<'_>) -> Result<StatusCode, Refused> {
    let (name, range) = match (headers.get(STATUS), headers.get(SERVICE_ERROR_CODE)) {
        (Some(_), _) => (STATUS, 200..=599),
        (None, Some(_)) => (SERVICE_ERROR_CODE, 400..=599),
        (None, None) => return Ok(StatusCode::OK),
    };
    let text = headers.get(name).and_then(|value| str::from_utf8(value).ok());
    let number = text.filter(|text| text.len() == 3).and_then(|text| text.parse::<u16>().ok());
    let status = number.filter(|number| range.contains(number)).and_then(|number| StatusCode::from_u16(number).ok());
    status.ok_or_else(|| bad(format!("its {name} isn't a number from {} to {}", range.start(), range.end())))
}

/// The lines of the headers that the client gets.
fn fields(headers: &Headers<'_>) -> Result<String, Refused> {
    let mut fields = String::new();
    for name in RETURNED {
        let Some(value) = headers.get(name) else { continue };
        let Ok(value) = str::from_utf8(value) else { return Err(bad(format!("its {name} isn't text"))) };
        if !value.is_ascii() {
            return Err(bad(format!("its {name} isn't ASCII")));
        }
        // Writing to a string can't fail.
        let _ = write!(fields, "{name}: {value}\r\n");
    }
    Ok(fields)
}

fn bad(reason: String) -> Refused {
    Problem::boxed(
        ErrorCode::BadReply,
        format!("the answer of the service can't be used: {reason}. Correct the service"),
    )
}
