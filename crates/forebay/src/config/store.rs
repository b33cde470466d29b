//! What sinks for servers have in common: an authority, a time-out, and how much they are asked at a time.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use event::limits;

use super::reader::Reader;
use super::reader::Wrong;
#[cfg(any(feature = "redis", feature = "webhook"))]
use super::report::Mistake;
use super::section::Section;
use super::{duration, file};

/// A file with authorities; a relative path leads from `folder`.
pub(super) fn ca(reader: &mut Reader<'_>, section: &Section<'_>, folder: &Path) -> Option<PathBuf> {
    file::read(reader, section, "ca", folder, file::PEM).map(|found| found.value)
}

/// What the texts of a list stand for.
#[cfg(any(feature = "redis", feature = "webhook"))]
pub(super) fn each<T>(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, Wrong>,
) -> Vec<T> {
    let texts = reader.texts(section, key).map(|found| found.value).unwrap_or_default();
    let mut values = Vec::new();
    for text in texts {
        match parse(&text.value) {
            Ok(value) => values.push(value),
            Err(wrong) => {
                let title = format!("`{}` {}", section.key_path(key), wrong.what);
                reader.push(Mistake::new(title, text.spot, wrong.label));
            }
        }
    }
    values
}

/// How many requests may be in flight.
#[cfg(any(feature = "elasticsearch", feature = "webhook"))]
pub(super) fn requests(number: i64) -> Result<NonZeroUsize, Wrong> {
    let max = limits::STORE_REQUESTS_MAX;
    let number = usize::try_from(number).ok().filter(|number| *number <= max).and_then(NonZeroUsize::new);
    number.ok_or_else(|| Wrong::new("is out of range", format!("wanted 1 to {max}")))
}

/// How many connections there may be.
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
pub(super) fn connections_max(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<NonZeroUsize> {
    let count = |number: i64| {
        let count = usize::try_from(number).ok().filter(|count| *count <= limits::STORE_CONNECTIONS_MAX);
        let wrong = || Wrong::new("is out of range", format!("wanted 1 to {}", limits::STORE_CONNECTIONS_MAX));
        count.and_then(NonZeroUsize::new).ok_or_else(wrong)
    };
    reader.integer(section, "max_connections", count).map(|found| found.value)
}

/// How long a server may take for an answer.
pub(super) fn timeout(reader: &mut Reader<'_>, section: &Section<'_>) -> Duration {
    let within = |text: &str| duration::within(text, limits::STORE_TIMEOUT_MIN, limits::STORE_TIMEOUT_MAX);
    reader.text(section, "timeout", within).map_or(limits::STORE_TIMEOUT, |found| found.value)
}
