//! What sinks have that store whole objects: how they are coded, how large they get, and what their names begin with.

use std::time::Duration;

use ::sink::{Codec, ObjectRules, Prefix};
use event::limits;

use super::reader::{Reader, Wrong};
use super::section::Section;
use super::{duration, size};

/// What `format` may say.
#[cfg(feature = "objects-over-http")]
const FORMATS: [(&str, Codec); 3] = [("ndjson", Codec::None), ("ndjson.gz", Codec::Gzip), ("ndjson.zst", Codec::Zstd)];

/// Reads the limits.
pub(super) fn rules(reader: &mut Reader<'_>, section: &Section<'_>, codec: Codec, prefix: Prefix) -> ObjectRules {
    let bytes = reader.text(section, "max_bytes", bytes).map(|found| found.value);
    let records = reader.integer(section, "max_records", records).map(|found| found.value);
    let age = reader.text(section, "max_age", age).map(|found| found.value);
    ObjectRules {
        codec,
        bytes_max: bytes.unwrap_or(limits::OBJECT_BYTES),
        records_max: records.unwrap_or(limits::OBJECT_RECORDS),
        age_max: age.unwrap_or(limits::OBJECT_AGE),
        prefix,
    }
}

/// Reads what objects over HTTP have besides.
#[cfg(feature = "objects-over-http")]
pub(super) fn named_rules(reader: &mut Reader<'_>, section: &Section<'_>) -> ObjectRules {
    let codec = reader.text(section, "format", format).map_or(Codec::default(), |found| found.value);
    let prefix = reader.text(section, "object", prefix).map_or(Prefix::NONE, |found| found.value);
    rules(reader, section, codec, prefix)
}

#[cfg(feature = "objects-over-http")]
fn format(text: &str) -> Result<Codec, Wrong> {
    let known = FORMATS.iter().find(|(name, _)| *name == text).map(|(_, codec)| *codec);
    known.ok_or_else(|| Wrong::new("is not a format", "wanted \"ndjson\", \"ndjson.gz\" or \"ndjson.zst\""))
}

#[cfg(feature = "objects-over-http")]
fn prefix(text: &str) -> Result<Prefix, Wrong> {
    text.parse().map_err(|error: ::sink::object::InvalidPrefix| {
        Wrong::new("can't be what names begin with", error.to_string()).help("for example \"access/{day}/\"")
    })
}

fn bytes(text: &str) -> Result<u64, Wrong> {
    let bytes = size::parse(text)?;
    if (limits::OBJECT_BYTES_MIN..=limits::OBJECT_BYTES_MAX).contains(&bytes) {
        return Ok(bytes);
    }
    let (min, max) = (limits::OBJECT_BYTES_MIN >> 10, limits::OBJECT_BYTES_MAX >> 30);
    Err(Wrong::new("is out of range", format!("wanted {min}KiB to {max}GiB")))
}

fn records(number: i64) -> Result<u64, Wrong> {
    let max = limits::OBJECT_RECORDS_MAX;
    let records = u64::try_from(number).ok().filter(|number| (1..=max).contains(number));
    records.ok_or_else(|| Wrong::new("is out of range", format!("wanted 1 to {max}")))
}

fn age(text: &str) -> Result<Duration, Wrong> {
    duration::within(text, limits::OBJECT_AGE_MIN, limits::OBJECT_AGE_MAX)
}
