//! Sinks of kind `sqlite`.

use sink::local_path::{plain, refuse_own};
use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sink::TableName;

use crate::{Sqlite, SqliteConfig};
use settings::{InvalidValue, PATH as PATH_KIND, Section, Setting, SettingsReader, Unset};

/// The page caches of SQLite: 2 MiB for writes, and 2 MiB for reads.
const SQLITE_BYTES: usize = 4 << 20;
const PATH: &str = "events.db";
const TABLE: &str = "events";
const SETTINGS: &[Setting] = &[
    Setting::new("path", PATH_KIND, "the database's file, relative to the data directory").or(Unset::Text(PATH)),
    Setting::text(
        "table",
        "the table: A-Z, a-z, 0-9 and `_`, not beginning with a digit, `sqlite_` or `forebay_`; at most 63 bytes. Two sinks can't share one. \
         Forebay creates a missing one",
    )
    .or(Unset::Text(TABLE)),
    RETENTION,
];
/// Rows that are kept for less time would be deleted before a reader reads them. The longest time is a hundred years of 365.25 days.
const RETENTION: Setting = Setting::duration(
    "retention",
    (Duration::from_mins(1), Duration::from_hours(100 * 8_766)),
    "rows accepted longer ago are [deleted](../../guides/retention.md). Without a configuration file, set \
     `FOREBAY_SINKS_LOCAL_RETENTION=30d`",
)
.or(Unset::Described("all rows are kept"))
.example("\"30d\"");

fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, data: &Path) -> Option<SqliteConfig> {
    let path = reader.text_or(section, "path", PATH, |text| file_path(text, data));
    let table = read_table(reader, section);
    let retention = reader.duration(section, &RETENTION);
    Some(SqliteConfig { path: path?, table: table?, retention: retention.map(|found| found.value) })
}

fn read_table(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<TableName> {
    reader.text_or(section, "table", TABLE, table)
}

fn file_path(text: &str, data: &Path) -> Result<PathBuf, InvalidValue> {
    if text.ends_with('/') || Path::new(text).file_name().is_none() {
        return Err(InvalidValue::new("is not the path of a file", "expected the name of a database file"));
    }
    if text.contains('\0') {
        return Err(InvalidValue::new("is not the path of a file", "contains a NUL character"));
    }
    let path = plain(&data.join(text));
    refuse_own(&path, data)?;
    Ok(path)
}

fn table(text: &str) -> Result<TableName, InvalidValue> {
    TableName::new(text).map_err(|error| InvalidValue::new("isn't a valid table name", error.to_string()))
}

/// Sinks of kind `sqlite`.
pub static KIND: SinkKind = SinkKind {
    settings: &[SETTINGS],
    is_fenced: true,
    is_embedded: true,
    is_read_by_default: true,
    layout: &[("table", &["table"])],
    read_layout: |reader, section| {
        read_table(reader, section).map(|table| ("table", table.to_string())).into_iter().collect()
    },
    ..SinkKind::new("sqlite", |reader, section, folders| Some(Box::new(read(reader, section, folders.data)?)))
};

impl StoreConfig for SqliteConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        Sink::new(Sqlite::new(self.clone()))
    }

    /// To SQLite `Events` and `events` are one table.
    fn destination(&self) -> Option<Destination> {
        let id = vec![
            self.kind().name.to_owned(),
            self.path.display().to_string(),
            self.table.as_str().to_ascii_lowercase(),
        ];
        Some(Destination { id, what: "table", another: "another `path` or `table`" })
    }

    fn layout(&self) -> Layout {
        vec![("table", self.table.to_string())]
    }

    fn can_read(&self) -> bool {
        true
    }

    fn local_path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn memory_bytes(&self) -> usize {
        SQLITE_BYTES
    }

    fn look_command(&self) -> Option<String> {
        Some(format!("sqlite3 {} \"select payload from {}\"", self.path.display(), self.table.as_str()))
    }
}

impl fmt::Display for SqliteConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlite {}, table {}", self.path.display(), self.table)?;
        let Some(retention) = self.retention else { return Ok(()) };
        write!(f, ", rows are kept for {}", humantime::format_duration(retention))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_data_directory() {
        let path = |text| file_path(text, Path::new("data")).map(|path| path.display().to_string());
        assert_eq!(path("events.db").unwrap(), "data/events.db");
        assert_eq!(path("./x/./events.db").unwrap(), "data/x/events.db");
        assert_eq!(path("/var/events.db").unwrap(), "/var/events.db");
        for bad in ["", "/", ".", "..", "x/", "a\0b"] {
            assert!(path(bad).is_err(), "{bad:?}");
        }
    }
}
