//! What sinks for stores of objects over HTTP have in common: a URL, a container, a key, how objects are coded, and what their names
//! begin with.

use ::sink::http_client::{Endpoint, InvalidEndpoint};
use ::sink::object::InvalidPrefix;
use ::sink::object::over_http::{Container, InvalidContainer, Secret};
use ::sink::{Codec, ObjectRules, Prefix};

use super::objects;
use super::reader::{Reader, Wrong};
use super::section::Section;

/// What `format` may say.
const FORMATS: [(&str, Codec); 3] = [("ndjson", Codec::None), ("ndjson.gz", Codec::Gzip), ("ndjson.zst", Codec::Zstd)];

/// Reads how objects are coded and named, and how large they get.
pub(super) fn rules(reader: &mut Reader<'_>, section: &Section<'_>) -> ObjectRules {
    let codec = reader.text(section, "format", format).map_or(Codec::default(), |found| found.value);
    let prefix = reader.text(section, "object", prefix).map_or(Prefix::NONE, |found| found.value);
    objects::rules(reader, section, codec, prefix)
}

fn format(text: &str) -> Result<Codec, Wrong> {
    let known = FORMATS.iter().find(|(name, _)| *name == text).map(|(_, codec)| *codec);
    known.ok_or_else(|| Wrong::new("is not a format", "wanted \"ndjson\", \"ndjson.gz\" or \"ndjson.zst\""))
}

fn prefix(text: &str) -> Result<Prefix, Wrong> {
    text.parse().map_err(|error: InvalidPrefix| {
        Wrong::new("can't be what names begin with", error.to_string()).help("for example \"access/{day}/\"")
    })
}

/// Who asks has settings of its own.
pub(super) fn url(text: &str) -> Result<Endpoint, Wrong> {
    let wrong = |label: String| Wrong::new("is not the URL of a store", label);
    let url: Endpoint = text.parse().map_err(|error: InvalidEndpoint| wrong(error.to_string()))?;
    if url.user.is_some() {
        return Err(wrong("who asks has settings of its own".to_owned()));
    }
    Ok(url)
}

pub(super) fn container(text: &str) -> Result<Container, Wrong> {
    text.parse().map_err(|error: InvalidContainer| Wrong::new("can't be the name of a container", error.to_string()))
}

pub(super) fn secret(text: &str) -> Result<Secret, Wrong> {
    word(text).map(|text| Secret::from(text.as_str()))
}

pub(super) fn word(text: &str) -> Result<String, Wrong> {
    if text.is_empty() { Err(Wrong::new("is empty", "wanted a text")) } else { Ok(text.to_owned()) }
}
