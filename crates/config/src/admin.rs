//! `[admin]`: the admin port. Its address is in `[gateway]`.

use std::path::Path;

use settings::{Section, SettingsReader};

use crate::port::tls;
use crate::port::tls_files::TlsFiles;

/// The admin port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admin {
    /// The certificate of the port, if it uses TLS.
    pub tls: Option<TlsFiles>,
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Admin {
    // It has no other settings.
    reader.check_keys(section, [tls::TABLE]);
    Admin { tls: tls::read(reader, section, folder) }
}
