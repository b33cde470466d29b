//! Settings that all clients of servers share: authorities, the timeout, limits of requests and connections.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostics::Diagnostic;
use crate::invalid_value::InvalidValue;
use crate::path;
use crate::reader::SettingsReader;
use crate::section::Section;
use crate::setting::{PATH, Setting, Unset};

/// The file of authorities.
pub const CA: Setting = Setting::new(
    "ca",
    PATH,
    "a PEM file with the authorities of the server's certificate, or with [that certificate itself](../../guides/tls.md#with-stores); \
     relative to the configuration file. Read for each connection",
)
.or(Unset::Described("the machine's authorities"))
.example("\"ca.pem\"");
/// The timeout of a request.
pub const TIMEOUT: Setting = Setting::duration(
    "timeout",
    (limits::STORE_TIMEOUT_MIN, limits::STORE_TIMEOUT_MAX),
    "how long the server may take for one request",
)
.or(Unset::Duration(limits::STORE_TIMEOUT));
/// The limit on connections.
pub const MAX_CONNECTIONS: Setting =
    Setting::integer("max_connections", (1, limits::STORE_CONNECTIONS_MAX as i64), "connections to the server")
        .example("16");
/// The limit on requests in flight.
pub const MAX_REQUESTS: Setting =
    Setting::integer("max_requests", (1, limits::STORE_REQUESTS_MAX as i64), "concurrent requests")
        .or(Unset::Integer(limits::STORE_REQUESTS as i64));

/// A file with authorities; a relative path starts at `folder`.
pub fn ca(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<PathBuf> {
    path::read(reader, section, CA.name, folder, path::PEM).map(|found| found.value)
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
pub fn requests_max(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<NonZeroUsize> {
    reader.count(section, &MAX_REQUESTS).map(|found| found.value).or(NonZeroUsize::new(limits::STORE_REQUESTS))
}

/// How many connections there may be.
pub fn connections_max(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<NonZeroUsize> {
    reader.count(section, &MAX_CONNECTIONS).map(|found| found.value)
}

/// The timeout of a request.
pub fn timeout(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Duration {
    reader.duration_or_default(section, &TIMEOUT)
}
