//! The log on stderr: one event after the other, each with its time, level, message and fields, as text or JSON. Payloads and secrets are
//! never part of an event. Repeated messages are counted instead. In a server no caller ever waits for stderr.

mod level;
mod limiter;
mod line;
mod recent;
pub(crate) mod refusals;
mod subscriber;
mod writer;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use config::{LogFormat, LogLevel};
use metrics::Counter;

pub(crate) use level::{choose, levels};
use limiter::{Limiter, LogDecision};
use line::Line;
use subscriber::LogSubscriber;
use writer::Writer;

/// The target of events that are never suppressed, because the caller limits their number.
pub(crate) const UNLIMITED: &str = "unlimited";

static FORMAT: AtomicU8 = AtomicU8::new(LogFormat::Text as u8);
static LIMITER: Mutex<Limiter> = Mutex::new(Limiter::new());
static SUPPRESSED: Counter = Counter::new();
static WRITER: Writer = Writer::new();
/// Lines get this long to be written when the process ends.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// From now on the events of `tracing` are written.
pub(crate) fn subscribe() {
    // There is no other subscriber: nothing but `main` sets one.
    let _ = tracing::subscriber::set_global_default(LogSubscriber);
}

/// How events are written from now on, and from which level.
pub(crate) fn configure(format: LogFormat, least: LogLevel) {
    FORMAT.store(format as u8, Ordering::Relaxed);
    level::configure(least);
}

/// Events that were left out because there were too many of their kind.
pub(crate) fn suppressed() -> u64 {
    SUPPRESSED.get()
}

/// Lines that were dropped because nothing read stderr, or because a write to it failed.
pub(crate) fn dropped() -> u64 {
    WRITER.dropped().get()
}

/// The last lines that were written, or wait for that, the oldest first. A command has none.
pub(crate) fn recent() -> Vec<String> {
    WRITER.recent()
}

/// From now on a thread writes the log, and nothing else waits for stderr.
pub(crate) fn start_thread() {
    let notice = |dropped| {
        let message =
            format!("the log lacks {}: stderr was full. Keep its reader running.", text::counted(dropped, "line"));
        Line::now(LogLevel::Warning, &message).shown(is_json())
    };
    WRITER.start(io::stderr(), notice);
}

/// From now on panics are logged, and end the process (decision 005), also in builds whose panics unwind.
pub(crate) fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        fatal(format_args!("thread {} {panic}", thread.name().unwrap_or("without a name")));
        flush();
        std::process::abort();
    }));
}

/// Waits until the log is written, for a second at most. To be called before the process ends.
pub(crate) fn flush() {
    WRITER.flush(FLUSH_MAX);
}

/// Writes the reason why the process ends, regardless of the level and of lines that wait.
pub(crate) fn fatal(message: impl fmt::Display) {
    put(Line::now(LogLevel::Error, &message.to_string()).shown(is_json()), true);
}

/// Writes a text of several lines unchanged, or as the message of one JSON object, regardless of the level.
pub(crate) fn text(level: LogLevel, text: &str) {
    let text = text.trim_end_matches('\n');
    put(if is_json() { Line::now(level, text).shown(true) } else { format!("{text}\n") }, true);
}

/// If the write to stderr fails, there is no other place for the line.
fn put(line: String, must: bool) {
    if let Some(line) = WRITER.queue(line, must) {
        let _ = writer::write(&mut io::stderr().lock(), &line);
    }
}

/// Whether each line of the output must be a JSON object.
pub(crate) fn is_json() -> bool {
    FORMAT.load(Ordering::Relaxed) == LogFormat::Json as u8
}

/// Writes an event, or counts it if there were too many of its kind.
fn write(mut line: Line<'_>, is_limited: bool) {
    if is_limited {
        let mut limiter = LIMITER.lock().unwrap_or_else(PoisonError::into_inner);
        let decision = limiter.judge(line.level, line.message, line.subject(), Instant::now());
        drop(limiter);
        match decision {
            LogDecision::Suppress => return SUPPRESSED.add(1),
            LogDecision::Write { suppressed: 0 } => {}
            LogDecision::Write { suppressed } => line.fields.push(("suppressed", suppressed.into())),
        }
    }
    put(line.shown(is_json()), false);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set in the process that panics.
    const PANICS: &str = "FOREBAY_TEST_PANICS";

    #[test]
    fn panic_logs_one_json_line_and_exits() {
        if std::env::var_os(PANICS).is_some() {
            configure(LogFormat::Json, LogLevel::Info);
            abort_on_panic();
            panic!("two\nlines");
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "log::tests::panic_logs_one_json_line_and_exits", "--test-threads=1"]);
        let output = child.env(PANICS, "1").output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (None, 1), "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(line["message"].as_str().unwrap().ends_with("two\nlines"), "{text}");
    }
}
