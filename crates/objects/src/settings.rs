//! The settings of sinks that store objects: their size, and the content of a line.

use std::time::Duration;

use settings::{InvalidValue, Section, SettingsReader, duration, parsed, size};
use sink::{Layout, NONE};

use crate::{Codec, Line, ObjectFormat, Prefix, SideFolder};

/// The settings of all stores of objects. A gateway reads them for a writer's sink too, because it creates the objects.
pub const OBJECT_LAYOUT: &[&str] =
    &["envelope", "manifests", "max_bytes", "max_records", "max_age", "serve", "cache_control", "revalidate", "stale"];

/// Reads the rules of objects.
pub fn read_rules(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    codec: Codec,
    prefix: Prefix,
) -> ObjectFormat {
    let bytes = reader.text(section, "max_bytes", bytes).map(|found| found.value);
    let records = reader.integer(section, "max_records", records).map(|found| found.value);
    let age = reader.text(section, "max_age", age).map(|found| found.value);
    let has_envelope = reader.boolean(section, "envelope").is_some_and(|found| found.value);
    ObjectFormat {
        line: if has_envelope { Line::Envelope } else { Line::Payload },
        codec,
        bytes_max: bytes.unwrap_or(limits::OBJECT_BYTES),
        records_max: records.unwrap_or(limits::OBJECT_RECORDS),
        age_max: age.unwrap_or(limits::OBJECT_AGE),
        prefix,
        apart: None,
        manifests: folder(reader, section, "manifests").unwrap_or_else(SideFolder::manifests),
    }
}

/// Reads a folder for objects that aren't rows.
pub(super) fn folder(reader: &mut SettingsReader<'_>, section: &Section<'_>, key: &str) -> Option<SideFolder> {
    let folder = parsed("isn't a valid folder");
    let parse = |text: &str| folder(text).map_err(|wrong| wrong.help("for example \"_manifests\""));
    reader.text(section, key, parse).map(|found| found.value)
}

/// Reads the rules of objects that are files: their names have no prefix.
pub fn rules_of_files(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> ObjectFormat {
    let codec = reader.text(section, "codec", parsed("isn't a codec")).map_or(Codec::default(), |found| found.value);
    read_rules(reader, section, codec, Prefix::NONE)
}

/// The layout of objects. `codec_key` is the setting of the codec.
#[must_use]
pub fn layout_of(rules: &ObjectFormat, codec_key: &'static str) -> Layout {
    let ObjectFormat { line, codec, prefix, apart, .. } = rules;
    let part = |part: Option<&str>| part.unwrap_or(NONE).to_owned();
    let apart = apart.as_ref();
    vec![
        (codec_key, codec.to_string()),
        ("object", prefix.to_string()),
        ("envelope", (*line == Line::Envelope).to_string()),
        ("object_from", part(apart.map(|apart| &*apart.data))),
        ("object_type_from", part(apart.and_then(|apart| apart.content_type.as_deref()))),
    ]
}

fn bytes(text: &str) -> Result<u64, InvalidValue> {
    let bytes = size::parse(text)?;
    if (limits::OBJECT_BYTES_MIN..=limits::OBJECT_BYTES_MAX).contains(&bytes) {
        return Ok(bytes);
    }
    let (min, max) = (limits::OBJECT_BYTES_MIN >> 10, limits::OBJECT_BYTES_MAX >> 30);
    Err(InvalidValue::new("is out of range", format!("expected {min}KiB to {max}GiB")))
}

fn records(number: i64) -> Result<u64, InvalidValue> {
    let max = limits::OBJECT_RECORDS_MAX;
    let records = u64::try_from(number).ok().filter(|number| (1..=max).contains(number));
    records.ok_or_else(|| InvalidValue::new("is out of range", format!("expected 1 to {max}")))
}

fn age(text: &str) -> Result<Duration, InvalidValue> {
    duration::within(text, limits::OBJECT_AGE_MIN, limits::OBJECT_AGE_MAX)
}
