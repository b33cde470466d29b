//! Sinks of kind `sqlite`.

use std::path::{Path, PathBuf};

use ::sink::TableName;

use settings::{InvalidValue, Section, SettingsReader};
use sink_sqlite::SqliteConfig;

use crate::sinks::directory;

/// The settings.
pub(crate) const KEYS: &[&str] = &["kind", "from", "max_backlog", "max_dead_letters", "path", "table"];
const PATH: &str = "events.db";
const TABLE: &str = "events";

pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, data: &Path) -> Option<SqliteConfig> {
    let path = reader.text_or(section, "path", PATH, |text| file_path(text, data));
    Some(SqliteConfig { path: path?, table: read_table(reader, section)? })
}

pub(crate) fn read_table(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<TableName> {
    reader.text_or(section, "table", TABLE, table)
}

fn file_path(text: &str, data: &Path) -> Result<PathBuf, InvalidValue> {
    if text.ends_with('/') || Path::new(text).file_name().is_none() {
        return Err(InvalidValue::new("is not the path of a file", "wanted the name of a database file"));
    }
    if text.contains('\0') {
        return Err(InvalidValue::new("is not the path of a file", "holds a NUL character"));
    }
    let path = directory::plain(&data.join(text));
    directory::refuse_own(&path, data)?;
    Ok(path)
}

fn table(text: &str) -> Result<TableName, InvalidValue> {
    TableName::new(text).map_err(|error| InvalidValue::new("can't be the name of a table", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_the_data_directory() {
        let path = |text| file_path(text, Path::new("data")).map(|path| path.display().to_string());
        assert_eq!(path("events.db").unwrap(), "data/events.db");
        assert_eq!(path("./x/./events.db").unwrap(), "data/x/events.db");
        assert_eq!(path("/var/events.db").unwrap(), "/var/events.db");
        for bad in ["", "/", ".", "..", "x/", "a\0b"] {
            assert!(path(bad).is_err(), "{bad:?}");
        }
    }
}
