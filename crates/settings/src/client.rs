//! Settings that all clients of servers share: authorities, the timeout, limits of requests and connections.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use event::limits;

use crate::diagnostics::Diagnostic;
use crate::invalid_value::InvalidValue;
use crate::reader::SettingsReader;
use crate::section::Section;
use crate::{duration, path};

/// A file with authorities; a relative path starts at `folder`.
pub fn ca(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<PathBuf> {
    path::read(reader, section, "ca", folder, path::PEM).map(|found| found.value)
}

/// The values of a list of texts.
pub fn each<T>(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, InvalidValue>,
) -> Vec<T> {
    let texts = reader.texts(section, key).map(|found| found.value).unwrap_or_default();
    let mut values = Vec::new();
    for text in texts {
        match parse(&text.value) {
            Ok(value) => values.push(value),
            Err(wrong) => {
                let title = format!("`{}` {}", section.key_path(key), wrong.what);
                reader.push(Diagnostic::new(title, text.span, wrong.label));
            }
        }
    }
    values
}

/// How many requests may be in flight.
///
/// # Errors
/// The number is out of range.
pub fn requests(number: i64) -> Result<NonZeroUsize, InvalidValue> {
    let max = limits::STORE_REQUESTS_MAX;
    let number = usize::try_from(number).ok().filter(|number| *number <= max).and_then(NonZeroUsize::new);
    number.ok_or_else(|| InvalidValue::new("is out of range", format!("wanted 1 to {max}")))
}

/// How many connections there may be.
pub fn connections_max(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<NonZeroUsize> {
    let count = |number: i64| {
        let count = usize::try_from(number).ok().filter(|count| *count <= limits::STORE_CONNECTIONS_MAX);
        let wrong = || InvalidValue::new("is out of range", format!("wanted 1 to {}", limits::STORE_CONNECTIONS_MAX));
        count.and_then(NonZeroUsize::new).ok_or_else(wrong)
    };
    reader.integer(section, "max_connections", count).map(|found| found.value)
}

/// The timeout of a request.
pub fn timeout(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Duration {
    let within = |text: &str| duration::within(text, limits::STORE_TIMEOUT_MIN, limits::STORE_TIMEOUT_MAX);
    reader.text(section, "timeout", within).map_or(limits::STORE_TIMEOUT, |found| found.value)
}
