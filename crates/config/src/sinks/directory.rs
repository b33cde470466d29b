//! What sinks of kind `directory` have: where their files are, and how large.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use ::objects::{Codec, ObjectRules, Prefix};

use settings::{InvalidValue, Section, SettingsReader};
use sink_directory::DirectoryConfig;

use crate::sinks::objects;

/// The settings.
pub(crate) const KEYS: &[&str] = &[
    "kind",
    "from",
    "max_backlog",
    "max_dead_letters",
    "path",
    "codec",
    "envelope",
    "max_bytes",
    "max_records",
    "max_age",
    "serve",
    "cache_control",
    "revalidate",
    "stale",
];

/// What Forebay itself keeps in its data directory.
const OWN: &[&str] = &[
    "aggregates",
    "dead",
    "duplicates",
    "journal",
    "ledger.0",
    "ledger.1",
    "ledger.new",
    "lock",
    "losses.0",
    "losses.1",
    "losses.new",
    "objects",
    "origin.0",
    "origin.1",
    "origin.new",
    "replays",
    "reserve",
    "tokens.json",
    "tokens.json.new",
    "tokens.lock",
];

/// Whether Forebay itself makes a file or a directory of this name in its data directory.
pub fn is_own(name: &OsStr) -> bool {
    OWN.iter().any(|own| name == *own)
}

/// Reads them; a relative path leads from `data`.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, data: &Path) -> Option<DirectoryConfig> {
    let help = "add the directory that files are made in, as in path = \"archive\"";
    let path = reader.required(section, "path", help, |text| path(text, data));
    let rules = rules(reader, section);
    Some(DirectoryConfig { path: path?, rules })
}

/// Reads how files are coded, and how large they get.
pub(crate) fn rules(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> ObjectRules {
    let codec = reader.text(section, "codec", codec).map_or(Codec::default(), |found| found.value);
    objects::rules(reader, section, codec, Prefix::NONE)
}

fn path(text: &str, data: &Path) -> Result<PathBuf, InvalidValue> {
    let wrong = |label: &str| InvalidValue::new("is not the path of a directory", label);
    if text.is_empty() {
        return Err(wrong("wanted the name of a directory"));
    }
    if text.contains('\0') {
        return Err(wrong("holds a NUL character"));
    }
    let path = plain(&data.join(text));
    refuse_own(&path, data)
        .map_err(|wrong| wrong.help("name a directory of its own; a relative path leads from the data directory"))?;
    Ok(path)
}

/// The path without parts that lead nowhere.
pub(crate) fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// Refuses a path that is the data directory, or one of those within it that Forebay keeps its own files in.
pub(crate) fn refuse_own(path: &Path, data: &Path) -> Result<(), InvalidValue> {
    let (path, data) = (plain(path), plain(data));
    let within = path.strip_prefix(data).ok().map(|rest| rest.components().next());
    let is_own = within.is_some_and(|first| first.is_none_or(|first| is_own(first.as_os_str())));
    if is_own {
        return Err(InvalidValue::new("is where Forebay keeps its own files", "not for a sink"));
    }
    Ok(())
}

fn codec(text: &str) -> Result<Codec, InvalidValue> {
    text.parse().map_err(|error: ::objects::UnknownCodec| InvalidValue::new("is not a coding", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_the_data_directory_and_not_into_what_it_holds() {
        let shown = |text| path(text, Path::new("./data")).map(|path| path.display().to_string());
        assert_eq!(shown("archive/").unwrap(), "data/archive");
        assert_eq!(shown("./x/./archive").unwrap(), "data/x/archive");
        assert_eq!(shown("/var/archive").unwrap(), "/var/archive");
        assert_eq!(shown("..").unwrap(), "data/..");
        for bad in ["", ".", "./", "journal", "./dead/x", "objects", "a\0b"] {
            assert!(path(bad, Path::new("./data")).is_err(), "{bad:?}");
        }
        assert!(path("/data", Path::new("/data")).is_err());
    }
}
