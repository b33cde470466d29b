//! `[admin]`: the admin port, but for its address, which stands beside that of the intake port.

use std::path::Path;

use super::tls;
use crate::tls_files::TlsFiles;
use settings::{Section, SettingsReader};

/// The tables within `[admin]`; it has no settings of its own.
const TABLES: &[&str] = &["tls"];

/// The admin port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admin {
    /// What it shows of itself, if it speaks TLS.
    pub(crate) tls: Option<TlsFiles>,
}

pub(super) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Admin {
    reader.check_keys(section, TABLES);
    Admin { tls: tls::read(reader, section, folder) }
}
