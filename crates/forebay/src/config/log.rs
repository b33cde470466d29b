//! `[log]`: what is said on stderr, and how.

use super::Flags;
use crate::log::{Format, Level};
use settings::{InvalidValue, Section, SettingsReader};

/// The settings of `[log]`.
pub(super) const KEYS: &[&str] = &["format", "level"];

/// What is said on stderr, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    /// How a message is written.
    pub(crate) format: Format,
    /// What matters less is left out.
    pub(crate) level: Level,
}

pub(super) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, flags: &Flags) -> Log {
    reader.check_keys(section, KEYS);
    let format = reader.text(section, "format", format).map(|found| found.value);
    // The flag is not called --level: a reader of the command line wouldn't know whose.
    let level = reader.text_or_named_flag(section, "level", ("log-level", flags.log_level.as_deref()), level);
    Log { format: format.unwrap_or_default(), level: level.map(|found| found.value).unwrap_or_default() }
}

fn format(text: &str) -> Result<Format, InvalidValue> {
    match text {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err(InvalidValue::new("is no format of the log", "wanted \"text\" or \"json\"")),
    }
}

fn level(text: &str) -> Result<Level, InvalidValue> {
    match text {
        "info" => Ok(Level::Info),
        "warning" => Ok(Level::Warning),
        "error" => Ok(Level::Error),
        _ => Err(InvalidValue::new("is no level of messages", "wanted \"info\", \"warning\" or \"error\"")),
    }
}
