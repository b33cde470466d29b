//! Settings that name a file.

use std::path::{Path, PathBuf};

use super::reader::{Reader, Wrong};
use super::section::{Found, Section};

/// What a setting for a certificate, a key or authorities wants.
pub(super) const PEM: &str = "wanted the path of a PEM file";

/// Reads a path. A relative one that stands in the configuration's file leads from its `folder`, others from where the process is.
pub(super) fn read(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    setting: &str,
    folder: &Path,
    wanted: &'static str,
) -> Option<Found<PathBuf>> {
    let Found { value, spot } = reader.text(section, setting, |text| parse(text, wanted))?;
    let is_of_file = spot.source == section.spot().source;
    Some(Found { value: if is_of_file { folder.join(value) } else { value }, spot })
}

/// A text that can be a path.
pub(super) fn parse(text: &str, wanted: &'static str) -> Result<PathBuf, Wrong> {
    // A person may put in what the file should hold.
    if text.is_empty() || text.contains(['\0', '\n']) || text.starts_with("-----") {
        return Err(Wrong::new("is no path", wanted));
    }
    Ok(text.into())
}
