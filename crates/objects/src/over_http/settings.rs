//! The settings of all stores of objects over HTTP: the URL, the container, the key, the codec, and the prefix of names.

use std::sync::Arc;

use net::http_client::{Endpoint, InvalidEndpoint};
use settings::{
    Diagnostic, InvalidValue, POINTER, Section, Setting, SettingsReader, Unset, client, name_array, pointer, words,
};

use crate::over_http::Secret;
use crate::settings::{folder, read_rules};
use crate::{AttachmentRule, Codec, InvalidPrefix, ObjectFormat, Prefix, SideFolder};

/// The settings of a writer's sink that a gateway reads too, in addition to [`OBJECT_SETTINGS`](crate::OBJECT_SETTINGS).
pub const SETTINGS: &[Setting] = &ALL;
/// Their names.
pub const LAYOUT: &[&str] = &name_array(&ALL);
const ALL: [Setting; 6] = [
    Setting::choice("format", &words(&FORMATS), "the format of objects; `parquet` is for [tables](../../guides/stores/directory.md#tables)")
        .or(Unset::Text("ndjson")),
    Setting::text(
        "object",
        "the prefix of names: ASCII letters, digits and `. _ - = /`, `{type}` (separates types), `{day}` and `{hour}`; at most 256 bytes with \
         the longest name of a type",
    )
    .or(Unset::Text(""))
    .example("\"access/{day}/\""),
    Setting::choice(
        "object_time",
        &words(&TIMES),
        "the time of `{day}` and `{hour}`: `received` is when an object's first event was received; with `event` an object holds events of \
         [one day or hour](../../guides/stores/objects.md#by-the-time-of-the-events)",
    )
    .or(Unset::Text("received")),
    Setting::new(
        "object_from",
        POINTER,
        "the JSON pointer to a base64 string whose bytes become a separate object \
         ([parts of payloads](../../guides/stores/objects.md#parts-of-payloads-as-objects))",
    )
    .example("\"/image\""),
    Setting::new("object_type_from", POINTER, "with `object_from`: the JSON pointer to that object's content type")
        .or(Unset::Described("`application/octet-stream`"))
        .example("\"/image_type\""),
    Setting::text(
        "parts",
        "with `object_from`: the folder of these objects, in the form of `manifests`; `\"\"` puts each below the object with its line",
    )
    .or(Unset::Text("_parts")),
];
/// The timeout of stores of objects.
pub const TIMEOUT: Setting = Setting {
    text: "how long the store may make no progress with an object or its response ([timeouts](sinks.md#timeouts-of-http-stores))",
    ..client::TIMEOUT
};
/// The values of `object_time`: whether names follow the time of the events.
const TIMES: [(&str, bool); 2] = [("received", false), ("event", true)];
/// The values of `format`.
const FORMATS: [(&str, Codec); 4] =
    [("ndjson", Codec::None), ("ndjson.gz", Codec::Gzip), ("ndjson.zst", Codec::Zstd), ("parquet", Codec::Parquet)];

/// Reads the encoding, the names and the limits of objects.
pub fn rules(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> ObjectFormat {
    let codec = reader.text(section, "format", format).map_or(Codec::default(), |found| found.value);
    let prefix = reader.text(section, "object", prefix).map_or(Prefix::NONE, |found| found.value);
    let prefix = with_time(reader, section, prefix);
    let apart = attachment_rule(reader, section);
    ObjectFormat { apart, ..read_rules(reader, section, codec, prefix) }
}

/// Reads the time that names use.
fn with_time(reader: &mut SettingsReader<'_>, section: &Section<'_>, prefix: Prefix) -> Prefix {
    let parse = |text: &str| settings::one_of(&TIMES, text, "isn't a time for names");
    let Some(found) = reader.text(section, "object_time", parse) else { return prefix };
    if !prefix.has_time() {
        let title = format!("unused setting `{}`", section.key_path("object_time"));
        let label = "needs `{day}` or `{hour}` in `object`, whose time it selects".to_owned();
        reader.push(Diagnostic::new(title, found.span, label));
    }
    if found.value { prefix.by_event_time() } else { prefix }
}

/// Reads the rule for attachments.
fn attachment_rule(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<AttachmentRule> {
    let data = reader.text(section, "object_from", part);
    let content_type = reader.text(section, "object_type_from", part);
    if let (None, Some(found)) = (&data, &content_type) {
        let title = format!("unused setting `{}`", section.key_path("object_type_from"));
        let label = "needs `object_from`, whose content type it names".to_owned();
        reader.push(Diagnostic::new(title, found.span.clone(), label));
    }
    let folder = folder(reader, section, "parts").unwrap_or_else(SideFolder::parts);
    Some(AttachmentRule { data: data?.value, content_type: content_type.map(|found| found.value), folder })
}

/// Parses a pointer to a part of a payload. It is saved as a part of a line.
fn part(text: &str) -> Result<Arc<str>, InvalidValue> {
    let pointer: json::JsonPointer = pointer::parse(text)?;
    if pointer.as_str().is_empty() || text.contains(char::is_control) {
        let label = "expected a pointer to a part of the payload, without control characters";
        return Err(InvalidValue::new("isn't a pointer to an attachment", label).help("for example \"/image\""));
    }
    Ok(text.into())
}

fn format(text: &str) -> Result<Codec, InvalidValue> {
    let known = FORMATS.iter().find(|(name, _)| *name == text).map(|(_, codec)| *codec);
    known.ok_or_else(|| {
        InvalidValue::new("isn't a format", "expected \"ndjson\", \"ndjson.gz\", \"ndjson.zst\" or \"parquet\"")
    })
}

fn prefix(text: &str) -> Result<Prefix, InvalidValue> {
    text.parse().map_err(|error: InvalidPrefix| {
        InvalidValue::new("isn't a valid prefix of names", error.to_string()).help("for example \"access/{day}/\"")
    })
}

/// Parses the URL of a store. Credentials have separate settings.
///
/// # Errors
/// The text isn't one.
pub fn url(text: &str) -> Result<Endpoint, InvalidValue> {
    let wrong = |label: String| InvalidValue::new("isn't the URL of a store", label);
    let url: Endpoint = text.parse().map_err(|error: InvalidEndpoint| wrong(error.to_string()))?;
    if url.user.is_some() {
        return Err(wrong("credentials have separate settings".to_owned()));
    }
    Ok(url)
}

/// Parses a secret.
///
/// # Errors
/// It is empty.
pub fn secret(text: &str) -> Result<Secret, InvalidValue> {
    word(text).map(|text| Secret::from(text.as_str()))
}

/// Parses a text.
///
/// # Errors
/// It is empty.
pub fn word(text: &str) -> Result<String, InvalidValue> {
    if text.is_empty() {
        Err(InvalidValue::new("is empty", "expected at least one character"))
    } else {
        Ok(text.to_owned())
    }
}
