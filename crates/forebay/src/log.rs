//! What the process says on stderr: one message after the other, each with its time and level, as text or JSON. Payloads
//! and secrets are never part of a message. Messages of one kind that come thick and fast are counted instead.

mod limiter;

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use event::cells::Counter;
use limiter::{Limiter, Verdict};
use serde::Serialize;

/// How much a message matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    /// Worth knowing.
    #[default]
    Info,
    /// Something isn't as it should be; Forebay goes on.
    Warning,
    /// Something failed.
    Error,
}

/// How a message is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// An object a line: `time`, `level`, `message`.
    Json,
}

static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);
static FORMAT: AtomicU8 = AtomicU8::new(Format::Text as u8);
static LIMITER: Mutex<Limiter> = Mutex::new(Limiter::new());
static SUPPRESSED: Counter = Counter::new();

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "INFO",
            Self::Warning => "WARN",
            Self::Error => "ERROR",
        })
    }
}

/// How messages are written from now on, and from which level.
pub(crate) fn configure(format: Format, least: Level) {
    FORMAT.store(format as u8, Ordering::Relaxed);
    LEAST.store(least as u8, Ordering::Relaxed);
}

/// Messages that were left out because there were too many of their kind.
pub(crate) fn suppressed() -> u64 {
    SUPPRESSED.get()
}

/// Writes a message. Where stderr can't be written to there is nobody to tell.
pub(crate) fn write(level: Level, message: impl fmt::Display) {
    if (level as u8) < LEAST.load(Ordering::Relaxed) {
        return;
    }
    let mut message = message.to_string();
    let verdict = LIMITER.lock().unwrap_or_else(PoisonError::into_inner).judge(&message, Instant::now());
    match verdict {
        Verdict::Suppress => return SUPPRESSED.add(1),
        Verdict::Write { left_out: 0 } => {}
        Verdict::Write { left_out } => message += &format!(" ({left_out} more like this were left out)"),
    }
    let is_json = FORMAT.load(Ordering::Relaxed) == Format::Json as u8;
    let _ = io::stderr().lock().write_all(line(level, &message, is_json).as_bytes());
}

#[derive(Serialize)]
struct Line<'a> {
    time: &'a str,
    level: &'a str,
    message: &'a str,
}

fn line(level: Level, message: &str, is_json: bool) -> String {
    let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    // A message may have several lines. Nothing in one is obeyed by the terminal that shows it.
    let message = &*message.split('\n').map(event::visible).collect::<Vec<_>>().join("\n");
    if !is_json {
        return format!("{time} {level:5} {message}\n");
    }
    let level = match level {
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    // Texts can't fail to be written.
    serde_json::to_string(&Line { time: &time, level, message }).unwrap_or_default() + "\n"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_one_object_on_one_line() {
        let line = line(Level::Warning, "two\nlines and \"quotes\"", true);
        assert!(line.ends_with("\"level\":\"warning\",\"message\":\"two\\nlines and \\\"quotes\\\"\"}\n"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
