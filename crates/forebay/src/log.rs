//! What the process says on stderr: one line for each message, with its time and level. Payloads and secrets are
//! never part of a message.

use std::fmt;
use std::io::{self, Write};
use std::time::SystemTime;

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Worth knowing.
    Info,
    /// Something isn't as it should be; Forebay goes on.
    Warning,
    /// Something failed.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "INFO",
            Self::Warning => "WARN",
            Self::Error => "ERROR",
        })
    }
}

/// Writes a message. Where stderr can't be written to there is nobody to tell.
pub(crate) fn write(level: Level, message: impl fmt::Display) {
    let time = humantime::format_rfc3339_millis(SystemTime::now());
    let _ = writeln!(io::stderr().lock(), "{time} {level:5} {message}");
}

/// Writes something worth knowing.
pub(crate) fn info(message: impl fmt::Display) {
    write(Level::Info, message);
}

/// Writes what isn't as it should be.
pub(crate) fn warning(message: impl fmt::Display) {
    write(Level::Warning, message);
}

/// Writes what failed.
pub(crate) fn error(message: impl fmt::Display) {
    write(Level::Error, message);
}
