//! Settings that are paths of files.

use std::path::{Path, PathBuf};

use crate::invalid_value::InvalidValue;
use crate::reader::SettingsReader;
use crate::section::{Located, Section};

/// The label of settings for certificates, keys and authorities.
pub const PEM: &str = "expected the path of a PEM file";

/// Reads a path. A relative one in the configuration's file starts at its `folder`, others at the process's working directory.
pub fn read(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    setting: &str,
    folder: &Path,
    wanted: &'static str,
) -> Option<Located<PathBuf>> {
    let Located { value, span } = reader.text(section, setting, |text| parse(text, wanted))?;
    let is_of_file = span.source == section.span().source;
    Some(Located { value: if is_of_file { folder.join(value) } else { value }, span })
}

/// A text that can be a path.
///
/// # Errors
/// It can't: `wanted` is the label.
pub fn parse(text: &str, wanted: &'static str) -> Result<PathBuf, InvalidValue> {
    // The operator may have set the file's content.
    if text.is_empty() || text.contains(['\0', '\n']) || text.starts_with("-----") {
        return Err(InvalidValue::new("is not a path", wanted));
    }
    Ok(text.into())
}
