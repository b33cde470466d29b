//! Writes the events of `tracing` to the log. Spans aren't used: each event has all of its fields.

use std::fmt;

use config::LogLevel;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::level::least;
use super::line::Line;
use super::{UNLIMITED, write};

/// The field with the time of an event that happened earlier: microseconds since 1970, UTC.
const TIME: &str = "time";

pub(super) struct LogSubscriber;

impl Subscriber for LogSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= least()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(least())
    }

    fn event(&self, event: &Event<'_>) {
        let mut found = Found::default();
        event.record(&mut found);
        let metadata = event.metadata();
        let level = match *metadata.level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warning,
            Level::INFO => LogLevel::Info,
            _ => LogLevel::Debug,
        };
        let at = found.at.unwrap_or_else(clock::unix_microseconds);
        let line = Line { at, level, message: &found.message, fields: found.fields };
        write(line, metadata.target() != UNLIMITED);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The content of an event.
#[derive(Default)]
struct Found {
    message: String,
    at: Option<i64>,
    fields: Vec<(&'static str, Value)>,
}

impl Visit for Found {
    fn record_i64(&mut self, field: &Field, value: i64) {
        match field.name() {
            TIME => self.at = Some(value),
            name => self.fields.push((name, value.into())),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            name => self.fields.push((name, text.into())),
        }
    }
}
