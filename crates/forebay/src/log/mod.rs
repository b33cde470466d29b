//! The log on stderr: one message after the other, each with its time and level, as text or JSON. Payloads
//! and secrets are never part of a message. Messages of one kind that come thick and fast are counted instead.
//! In a server no caller ever waits for stderr.

mod limiter;
pub(crate) mod refusals;
mod writer;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use config::{LogFormat, LogLevel};
use metrics::Counter;
use serde::Serialize;
use text::rfc3339;

use limiter::{Limiter, LogDecision};
use writer::Writer;

static LEAST: AtomicU8 = AtomicU8::new(LogLevel::Info as u8);
static FORMAT: AtomicU8 = AtomicU8::new(LogFormat::Text as u8);
static LIMITER: Mutex<Limiter> = Mutex::new(Limiter::new());
static SUPPRESSED: Counter = Counter::new();
static WRITER: Writer = Writer::new();
/// Lines get this long to be written when the process ends.
const FLUSH_MAX: Duration = Duration::from_secs(1);
/// Bytes of a time down to its milliseconds.
const MILLISECONDS_END: usize = 23;

/// How messages are written from now on, and from which level.
pub(crate) fn configure(format: LogFormat, least: LogLevel) {
    FORMAT.store(format as u8, Ordering::Relaxed);
    LEAST.store(least as u8, Ordering::Relaxed);
}

/// Messages that were left out because there were too many of their kind.
pub(crate) fn suppressed() -> u64 {
    SUPPRESSED.get()
}

/// Lines that were dropped because nothing read stderr, or because it refused them.
pub(crate) fn dropped() -> u64 {
    WRITER.dropped().get()
}

/// From now on a thread writes the log, and nothing else waits for stderr.
pub(crate) fn start_thread() {
    let notice = |dropped| {
        let message =
            format!("the log lacks {}: stderr took no more. Keep its reader running.", text::counted(dropped, "line"));
        line(LogLevel::Warning, &message, is_json())
    };
    WRITER.start(io::stderr(), notice);
}

/// From now on panics are logged, and end the process (decision 005), also in builds whose panics unwind.
pub(crate) fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let message = format!("thread {} {panic}", thread.name().unwrap_or("without a name"));
        put(line(LogLevel::Error, &message, is_json()), true);
        flush();
        std::process::abort();
    }));
}

/// Waits until the log is written, for a second at most. To be called before the process ends.
pub(crate) fn flush() {
    WRITER.flush(FLUSH_MAX);
}

/// Writes the reason for which the process ends, whatever waits before it.
pub(crate) fn fatal(message: impl fmt::Display) {
    put(line(LogLevel::Error, &message.to_string(), is_json()), true);
}

/// Writes a text of several lines unchanged, or as the message of one JSON object.
pub(crate) fn text(level: LogLevel, text: &str) {
    let text = text.trim_end_matches('\n');
    put(if is_json() { line(level, text, true) } else { format!("{text}\n") }, true);
}

/// If stderr refuses a line, there is no other place for it.
fn put(line: String, must: bool) {
    if let Some(line) = WRITER.queue(line, must) {
        let _ = writer::write(&mut io::stderr().lock(), &line);
    }
}

/// Whether each line of the output must be a JSON object.
pub(crate) fn is_json() -> bool {
    FORMAT.load(Ordering::Relaxed) == LogFormat::Json as u8
}

/// Writes a message.
pub(crate) fn write(level: LogLevel, message: impl fmt::Display) {
    if (level as u8) < LEAST.load(Ordering::Relaxed) {
        return;
    }
    let mut message = message.to_string();
    let verdict = LIMITER.lock().unwrap_or_else(PoisonError::into_inner).judge(&message, Instant::now());
    match verdict {
        LogDecision::Suppress => return SUPPRESSED.add(1),
        LogDecision::Write { left_out: 0 } => {}
        LogDecision::Write { left_out } => message += &format!(" ({left_out} more like this were left out)"),
    }
    put(line(level, &message, is_json()), false);
}

#[derive(Serialize)]
struct Line<'a> {
    time: &'a str,
    level: &'a str,
    message: &'a str,
}

fn line(level: LogLevel, message: &str, is_json: bool) -> String {
    line_at(clock::unix_microseconds(), level, message, is_json)
}

fn line_at(at: i64, level: LogLevel, message: &str, is_json: bool) -> String {
    let time = rfc3339::format(at);
    let time = time.get(..MILLISECONDS_END).unwrap_or_default().to_owned() + "Z";
    // A message may have several lines. Nothing in one is obeyed by the terminal that shows it.
    let message = &*message.split('\n').map(text::escape_control).collect::<Vec<_>>().join("\n");
    if !is_json {
        return format!("{time} {level:5} {message}\n");
    }
    let level = match level {
        LogLevel::Info => "info",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
    };
    // Texts can't fail to be written.
    serde_json::to_string(&Line { time: &time, level, message }).unwrap_or_default() + "\n"
}

/// Writes something worth knowing, of a kind of which the caller bounds the number of messages.
pub(crate) fn bounded_info(message: impl fmt::Display) {
    bounded_info_at(clock::unix_microseconds(), message);
}

/// The same for something that happened at this time, in microseconds since 1970.
pub(crate) fn bounded_info_at(at: i64, message: impl fmt::Display) {
    if (LogLevel::Info as u8) >= LEAST.load(Ordering::Relaxed) {
        put(line_at(at, LogLevel::Info, &message.to_string(), is_json()), false);
    }
}

/// Writes something worth knowing.
pub(crate) fn info(message: impl fmt::Display) {
    write(LogLevel::Info, message);
}

/// Writes what isn't as it should be.
pub(crate) fn warning(message: impl fmt::Display) {
    write(LogLevel::Warning, message);
}

/// Writes what failed.
pub(crate) fn error(message: impl fmt::Display) {
    write(LogLevel::Error, message);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set in the process that panics.
    const PANICS: &str = "FOREBAY_TEST_PANICS";

    #[test]
    fn panic_is_one_json_line_and_ends_the_process() {
        if std::env::var_os(PANICS).is_some() {
            configure(LogFormat::Json, LogLevel::Info);
            abort_on_panic();
            panic!("two\nlines");
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "log::tests::panic_is_one_json_line_and_ends_the_process", "--test-threads=1"]);
        let output = child.env(PANICS, "1").output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (None, 1), "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(line["message"].as_str().unwrap().ends_with("two\nlines"), "{text}");
    }

    #[test]
    fn json_is_one_object_on_one_line() {
        let line = line(LogLevel::Warning, "two\nlines and \"quotes\"", true);
        assert!(line.ends_with("\"level\":\"warning\",\"message\":\"two\\nlines and \\\"quotes\\\"\"}\n"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
