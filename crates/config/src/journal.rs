//! `[journal]`: how much of its disk the journal may use.

use settings::{Section, SettingsReader, size};

/// The settings of `[journal]`.
pub(crate) const KEYS: &[&str] = &["keep_free"];

/// How much of its disk the journal may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// Bytes of the disk that are kept free, if the configuration says how many.
    pub keep_free: Option<u64>,
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Journal {
    reader.check_keys(section, KEYS);
    Journal { keep_free: reader.text(section, "keep_free", size::parse).map(|found| found.value) }
}
