//! The settings of sinks that store objects: their size, and the content of a line.

use std::time::Duration;

use settings::{Section, Setting, SettingsReader, Unset, name_array, parsed};
use sink::{Layout, NONE};

use crate::{Codec, Line, ObjectFormat, Prefix, SideFolder};

/// The settings of all stores of objects. A gateway reads them for a writer's sink too, because it creates the objects.
pub const OBJECT_SETTINGS: &[Setting] = &OBJECTS;
/// Their names.
pub const OBJECT_LAYOUT: &[&str] = &name_array(&OBJECTS);
const OBJECTS: [Setting; 9] = [
    ENVELOPE,
    Setting::text(
        "manifests",
        "the folder of the [manifests](../../guides/stores/directory.md#manifest): ASCII letters, digits and `. _ - = /`, at most 64 bytes; `\"\"` \
         puts each next to its object. A change applies to the next object",
    )
    .or(Unset::Text("_manifests")),
    MAX_BYTES,
    MAX_RECORDS,
    MAX_AGE,
    Setting::flag(
        "serve",
        "`true` serves objects at `/objects/X/NAME` of the intake port ([reading objects](../../guides/stores/objects.md#reading-objects-back)). \
         `cache_control`, `revalidate` and `stale` need it",
    ),
    Setting::text("cache_control", "the `Cache-Control` header of responses with an object").or(Unset::Text("private, no-cache")),
    Setting::duration(
        "revalidate",
        (Duration::ZERO, limits::OBJECT_AGE_READ_MAX),
        "the age at which Forebay asks the store whether an object is unchanged",
    )
    .or(Unset::Duration(limits::OBJECT_REVALIDATE)),
    Setting::duration(
        "stale",
        (Duration::ZERO, limits::OBJECT_AGE_READ_MAX),
        "how much longer a cached object is served if the store does not answer (`stale-if-error`)",
    )
    .or(Unset::Duration(Duration::ZERO)),
];
const ENVELOPE: Setting = Setting::flag(
    "envelope",
    "`true`: a line has id, type, source, times, position and payload; `false`: only the payload",
);
const MAX_BYTES: Setting = Setting::size(
    "max_bytes",
    (limits::OBJECT_BYTES_MIN, limits::OBJECT_BYTES_MAX),
    "the approximate size of an object's lines before compression",
)
.or(Unset::Size(limits::OBJECT_BYTES));
const MAX_RECORDS: Setting =
    Setting::integer("max_records", (1, limits::OBJECT_RECORDS_MAX as i64), "how many events an object has")
        .or(Unset::Integer(limits::OBJECT_RECORDS as i64));
const MAX_AGE: Setting = Setting::duration(
    "max_age",
    (limits::OBJECT_AGE_MIN, limits::OBJECT_AGE_MAX),
    "how long the first event of an object waits for others",
)
.or(Unset::Duration(limits::OBJECT_AGE));

/// Reads the rules of objects.
pub fn read_rules(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    codec: Codec,
    prefix: Prefix,
) -> ObjectFormat {
    let bytes_max = reader.size_or_default(section, &MAX_BYTES);
    let records = reader.number(section, &MAX_RECORDS).map(|found| found.value);
    let age_max = reader.duration_or_default(section, &MAX_AGE);
    let has_envelope = reader.boolean_or_default(section, &ENVELOPE);
    ObjectFormat {
        line: if has_envelope { Line::Envelope } else { Line::Payload },
        codec,
        bytes_max,
        records_max: records.unwrap_or(limits::OBJECT_RECORDS),
        age_max,
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
