//! `[console]`: the page of the admin port. Each role has it.

use std::path::Path;

use settings::{Section, Setting, SettingsReader, Unset, names};

use sink_remote::UpstreamConfig;

use crate::peers;

/// The table's name.
pub(crate) const TABLE: &str = "console";
/// The settings of `[console]`.
pub(crate) const SETTINGS: &[Setting] = &[ENABLED];
const ENABLED: Setting = Setting::flag(
    "enabled",
    "`false` disables the [console](../../guides/console.md): the admin port then answers 404 to `/`. The requests of `/api` remain available",
)
.or(Unset::Boolean(true));

/// The page of the admin port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// Whether the admin port serves the page.
    pub is_enabled: bool,
    /// The other processes that it shows, one upstream for each source of addresses.
    pub peers: Vec<UpstreamConfig>,
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, file: &Section<'_>, folder: &Path) -> Console {
    let section = reader.table(file, TABLE);
    reader.check_keys(&section, names(SETTINGS).chain([peers::TABLE]));
    let is_enabled = reader.boolean_or_default(&section, &ENABLED);
    Console { is_enabled, peers: peers::read(reader, &section, folder) }
}
