//! `[admin]`: the admin port. Its address is in `[gateway]`.

use std::path::Path;

use settings::{Section, SettingsReader};

use crate::port::tls;
use crate::port::tls_files::TlsFiles;

/// The tables within `[admin]`; it has no other settings.
const TABLES: &[&str] = &["tls"];

/// The admin port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admin {
    /// The certificate of the port, if it uses TLS.
    pub tls: Option<TlsFiles>,
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Admin {
    reader.check_keys(section, TABLES);
    Admin { tls: tls::read(reader, section, folder) }
}
