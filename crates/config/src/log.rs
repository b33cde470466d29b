//! `[log]`: format and level of messages on stderr.

use std::fmt;

use settings::{Section, Setting, SettingsReader, Unset, names, word, words};

use crate::flags::Flags;

/// The severity of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    /// For a search: what lanes, discovery and requests do.
    Debug,
    /// For information.
    #[default]
    Info,
    /// Something is wrong; Forebay continues.
    Warning,
    /// Something failed.
    Error,
}

/// The format of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LogFormat {
    /// A line of text.
    #[default]
    Text,
    /// One object per line: `time`, `level`, `message`, and the event's fields.
    Json,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARN",
            Self::Error => "ERROR",
        })
    }
}

impl LogLevel {
    /// The level in JSON, and in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        LEVELS.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }
}

/// The settings of `[log]`.
pub(crate) const SETTINGS: &[Setting] = &[FORMAT, LEVEL];
const FORMAT: Setting = Setting::choice(
    "format",
    &words(&FORMATS),
    "the format of log events on stderr: with `json`, each line is an object with `time`, `level`, `message` and the \
     [fields](../logs.md#fields)",
)
.or(Unset::Text("text"));
const LEVEL: Setting =
    Setting::choice("level", &words(&LEVELS), "the lowest level that is logged; also `--log-level LEVEL`")
        .or(Unset::Text(LogLevel::Info.name()));
const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];
const LEVELS: [(&str, LogLevel); 4] = [
    (LogLevel::Debug.name(), LogLevel::Debug),
    (LogLevel::Info.name(), LogLevel::Info),
    (LogLevel::Warning.name(), LogLevel::Warning),
    (LogLevel::Error.name(), LogLevel::Error),
];

/// The messages on stderr, and their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// How a message is written.
    pub format: LogFormat,
    /// The least severe level that is logged.
    pub level: LogLevel,
}

/// The format of this name.
pub(crate) fn format_of(name: &str) -> Option<LogFormat> {
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, flags: &Flags) -> Log {
    reader.check_keys(section, names(SETTINGS));
    let format = reader.word(section, FORMAT.name, "is not a log format", &FORMATS).map(|found| found.value);
    // The flag is not called --level: a reader of the command line wouldn't know whose.
    let level = reader.text_or_named_flag(section, LEVEL.name, ("log-level", flags.log_level.as_deref()), |text| {
        word(text, "is not a log level", &LEVELS)
    });
    Log { format: format.unwrap_or_default(), level: level.map(|found| found.value).unwrap_or_default() }
}
