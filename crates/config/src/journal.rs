//! `[journal]`: how much of its disk the journal may use.

use settings::{Section, Setting, SettingsReader, Unset, names};

/// The settings of `[journal]`.
pub(crate) const SETTINGS: &[Setting] = &[KEEP_FREE];
const KEEP_FREE: Setting = Setting::size(
    "keep_free",
    (0, u64::MAX),
    "the minimum free space on the disk of the data directory, as `512MiB` or `1.5GB`. If less is free, events are rejected with 507",
)
.or(Unset::Described("5 % of the disk, 16 MiB to 1 GiB"))
.example("\"1GiB\"");

/// How much of its disk the journal may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// Bytes of the disk that are kept free, if the configuration says how many.
    pub keep_free: Option<u64>,
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Journal {
    reader.check_keys(section, names(SETTINGS));
    Journal { keep_free: reader.size(section, &KEEP_FREE).map(|found| found.value) }
}
