//! Settings that all clients of servers share: authorities, the timeout, limits of requests and connections.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostics::Diagnostic;
use crate::invalid_value::{InvalidValue, number_within};
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
                let title = format!("invalid value for `{}`", section.key_path(key));
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
    not_zero(number, limits::STORE_REQUESTS_MAX)
}

/// How many connections there may be.
pub fn connections_max(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<NonZeroUsize> {
    reader
        .integer(section, "max_connections", |number| not_zero(number, limits::STORE_CONNECTIONS_MAX))
        .map(|found| found.value)
}

/// The timeout of a request.
pub fn timeout(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Duration {
    let within = |text: &str| duration::within(text, limits::STORE_TIMEOUT_MIN, limits::STORE_TIMEOUT_MAX);
    reader.text(section, "timeout", within).map_or(limits::STORE_TIMEOUT, |found| found.value)
}

/// A number from 1 to `max`.
///
/// # Errors
/// It is another one.
pub fn not_zero(number: i64, max: usize) -> Result<NonZeroUsize, InvalidValue> {
    Ok(NonZeroUsize::new(number_within(number, 1..=max)?).unwrap_or(NonZeroUsize::MIN))
}
