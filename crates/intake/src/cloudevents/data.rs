//! The text that is stored for an event. The data is a member of it: `data` for JSON and text, `data_base64` for other bytes.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json::text::write_string;

use super::event::{Event, Invalid};

/// The media type of data without one.
const JSON: &str = "application/json";

/// The data of an event.
#[derive(Debug)]
pub(super) enum Data<'a> {
    /// The event has none.
    None,
    /// A JSON value.
    Json(&'a str),
    /// The same, where the event owns it.
    OwnedJson(String),
    /// A text.
    Text(Cow<'a, str>),
    /// Other bytes.
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Data<'a> {
    /// The data of these bytes. The media type of the event decides what they are; it may be replaced by its canonical form.
    pub(super) fn of_bytes(event: &mut Event<'_>, bytes: Cow<'a, [u8]>) -> Result<Self, Invalid> {
        let sent = event.get("datacontenttype").map(str::to_owned);
        match (sent.as_deref().map(MediaType::of), bytes) {
            (_, bytes) if bytes.is_empty() => Ok(Self::None),
            (Some(MediaType::Json(canonical)), bytes) => {
                event.set_media_type(canonical);
                let why = |error| format!("the data isn't JSON, but its media type says so: {error}");
                Self::json(bytes).map_err(|error| why(error).into())
            }
            // Data without a media type is JSON by the specification.
            (None, bytes) if json::check(&bytes).is_ok() => {
                event.set_media_type(JSON);
                Self::json(bytes).map_err(|error| error.to_string().into())
            }
            (Some(MediaType::Text), Cow::Borrowed(bytes)) if let Ok(text) = str::from_utf8(bytes) => {
                Ok(Self::Text(text.into()))
            }
            (Some(MediaType::Text), Cow::Owned(bytes)) => Ok(match String::from_utf8(bytes) {
                Ok(text) => Self::Text(text.into()),
                Err(error) => Self::Bytes(error.into_bytes().into()),
            }),
            (_, bytes) => Ok(Self::Bytes(bytes)),
        }
    }

    fn json(bytes: Cow<'a, [u8]>) -> Result<Self, json::JsonError> {
        match bytes {
            Cow::Borrowed(bytes) => json::check(bytes).map(Self::Json),
            Cow::Owned(bytes) => json::check(&bytes).map(|text| Self::OwnedJson(text.to_owned())),
        }
    }

    /// The data of the member `data` of an event in JSON.
    pub(super) fn of_member(event: &mut Event<'_>, value: &'a str) -> Self {
        match event.get("datacontenttype").map(MediaType::of) {
            None => event.set_media_type(JSON),
            Some(MediaType::Json(canonical)) => {
                let canonical = canonical.to_owned();
                event.set_media_type(&canonical);
            }
            // A text of another media type is the data; a value of another kind is unchanged.
            Some(MediaType::Text | MediaType::Other) => {
                if let Some(text) = json::text::read_string(value) {
                    return Self::Text(text);
                }
            }
        }
        Self::Json(value)
    }

    /// The text that is stored for an event with this data: it is the same in both modes.
    pub(super) fn text(&self, event: &Event<'_>) -> String {
        let mut text = String::with_capacity(self.bytes() + 256);
        text.push('{');
        event.write(&mut text);
        self.write(&mut text);
        text.push('}');
        text
    }

    /// About how many bytes it has.
    fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Json(text) => text.len(),
            Self::OwnedJson(text) => text.len(),
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len().div_ceil(3) * 4,
        }
    }

    /// Writes it as a further member.
    fn write(&self, text: &mut String) {
        match self {
            Self::None => {}
            Self::Json(value) => write_compact(value, text),
            Self::OwnedJson(value) => write_compact(value, text),
            Self::Text(value) => {
                text.push_str(",\"data\":");
                write_string(value, text);
            }
            Self::Bytes(bytes) => {
                text.push_str(",\"data_base64\":\"");
                STANDARD.encode_string(bytes, text);
                text.push('"');
            }
        }
    }
}

/// Writes a JSON value without the whitespace between its parts: an event in JSON may be indented, which moves its data too.
fn write_compact(value: &str, text: &mut String) {
    text.push_str(",\"data\":");
    let mut at = 0;
    while let Some(byte) = value.as_bytes().get(at) {
        let end = match byte {
            b'"' => json::scan::string_end(value.as_bytes(), at).0,
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            _ => {
                let rest = &value.as_bytes()[at..];
                let is_end = |byte: &u8| matches!(byte, b'"' | b' ' | b'\t' | b'\r' | b'\n');
                at + rest.iter().position(is_end).unwrap_or(rest.len())
            }
        };
        text.push_str(value.get(at..end).unwrap_or_default());
        at = end;
    }
}

/// What a media type says about data.
enum MediaType<'t> {
    /// JSON, with the media type in its canonical form.
    Json(&'t str),
    /// A text for readers, or XML.
    Text,
    /// Any other.
    Other,
}

impl<'t> MediaType<'t> {
    fn of(written: &'t str) -> Self {
        let (name, parameters) = written.split_once(';').unwrap_or((written, ""));
        let name = name.trim_ascii();
        let lower = name.to_ascii_lowercase();
        let is_text = lower.starts_with("text/") || lower == "application/xml" || lower.ends_with("+xml");
        if lower == JSON || lower == "text/json" || lower.ends_with("+json") {
            // JSON is UTF-8: some libraries say so in one mode, and not in the other.
            let is_plain = parameters.trim_ascii().eq_ignore_ascii_case("charset=utf-8");
            Self::Json(if is_plain { name } else { written })
        } else if is_text {
            Self::Text
        } else {
            Self::Other
        }
    }
}
