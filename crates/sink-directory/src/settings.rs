//! The settings of sinks of kind `directory`: the path of the files, and their size.

use objects::{OBJECT_LAYOUT, OBJECT_SETTINGS, layout_of, rules_of_files};
use sink::local_path::{plain, refuse_own};
use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{DirectoryConfig, OsFiles};
use settings::{InvalidValue, PATH, Section, Setting, SettingsReader, Unset};

const SETTINGS: &[Setting] = &[
    Setting::new(
        "path",
        PATH,
        "the directory, relative to the data directory. Two sinks can't share one, and it can't be where Forebay keeps its own files",
    )
    .required()
    .example("\"archive\""),
    Setting::choice(
        "codec",
        &["none", "gzip", "zstd", "parquet"],
        "the compression of lines; `parquet` is for [tables](../../guides/stores/directory.md#tables)",
    )
    .or(Unset::Text("none")),
];

/// Reads the settings; a relative path starts at `data`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, data: &Path) -> Option<DirectoryConfig> {
    let help = "add the directory for the files, as in path = \"archive\"";
    let path = reader.required(section, "path", help, |text| path(text, data));
    let rules = rules_of_files(reader, section);
    Some(DirectoryConfig { path: path?, rules })
}

fn path(text: &str, data: &Path) -> Result<PathBuf, InvalidValue> {
    let wrong = |label: &str| InvalidValue::new("is not the path of a directory", label);
    if text.is_empty() {
        return Err(wrong("expected the name of a directory"));
    }
    if text.contains('\0') {
        return Err(wrong("contains a NUL character"));
    }
    let path = plain(&data.join(text));
    refuse_own(&path, data)
        .map_err(|wrong| wrong.help("use a separate directory; a relative path starts at the data directory"))?;
    Ok(path)
}

/// Sinks of kind `directory`.
pub static KIND: SinkKind = SinkKind {
    settings: &[SETTINGS, OBJECT_SETTINGS],
    is_embedded: true,
    layout: &[("", OBJECT_LAYOUT), ("", &["codec"])],
    ..SinkKind::new("directory", |reader, section, folders| Some(Box::new(read(reader, section, folders.data)?)))
};

impl StoreConfig for DirectoryConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        crate::sink(self.clone(), Arc::new(OsFiles))
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![self.kind().name.to_owned(), self.path.display().to_string()];
        Some(Destination { id, what: "directory", another: "another `path`" })
    }

    fn layout(&self) -> Layout {
        layout_of(&self.rules, "codec")
    }

    fn local_path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn memory_bytes(&self) -> usize {
        self.rules.memory_bytes()
    }

    fn look_command(&self) -> Option<String> {
        Some(format!("ls {}", self.path.display()))
    }
}

impl fmt::Display for DirectoryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, rules } = self;
        write!(f, "directory {}, codec {}, files of at most {}", path.display(), rules.codec, rules.limits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_but_outside_the_data_directory() {
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
