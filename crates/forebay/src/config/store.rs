//! What sinks for servers have in common: an authority and a time-out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use event::limits;

use super::reader::Reader;
use super::section::Section;
use super::{duration, file};

/// A file with authorities; a relative path leads from `folder`.
pub(super) fn ca(reader: &mut Reader<'_>, section: &Section<'_>, folder: &Path) -> Option<PathBuf> {
    file::read(reader, section, "ca", folder, file::PEM).map(|found| found.value)
}

/// How long a server may take for an answer.
pub(super) fn timeout(reader: &mut Reader<'_>, section: &Section<'_>) -> Duration {
    let within = |text: &str| duration::within(text, limits::STORE_TIMEOUT_MIN, limits::STORE_TIMEOUT_MAX);
    reader.text(section, "timeout", within).map_or(limits::STORE_TIMEOUT, |found| found.value)
}
