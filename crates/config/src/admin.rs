//! `[admin]`: the admin port of each role. Its address is in `[gateway]` or `[writer]`.

use std::path::Path;

use settings::{Diagnostic, Section, Setting, SettingsReader, TEXTS, names};

use crate::port::tls_files::TlsFiles;
use crate::port::{hosts, tls};

/// The table's name.
pub(crate) const TABLE: &str = "admin";
/// The settings of `[admin]` apart from its table.
pub(crate) const SETTINGS: &[Setting] = &[Setting::new(
    "allowed_hosts",
    TEXTS,
    "host names by which browsers reach the admin port, as `console.example.com`, without port: those of [proxies](../../guides/behind-a-proxy.md#console). \
     IP addresses and `localhost` are always allowed. Requests with a bearer token may use any name",
)
.example("[\"console.example.com\"]")];

/// The admin port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admin {
    /// The certificate of the port, if it uses TLS. A writer's doesn't.
    pub tls: Option<TlsFiles>,
    /// The host names by which browsers may reach it.
    pub allowed_hosts: Vec<String>,
}

pub(crate) fn read(reader: &mut SettingsReader<'_>, file: &Section<'_>, folder: &Path) -> Admin {
    let section = reader.table(file, TABLE);
    reader.check_keys(&section, names(SETTINGS).chain([tls::TABLE]));
    Admin { tls: tls::read(reader, &section, folder), allowed_hosts: hosts::read_exact(reader, &section) }
}

/// Reads the table for a writer, whose admin port has no TLS.
pub(crate) fn read_of_writer(reader: &mut SettingsReader<'_>, file: &Section<'_>) -> Admin {
    let section = reader.table(file, TABLE);
    reader.check_keys(&section, names(SETTINGS).chain([tls::TABLE]));
    if let Some((key, _)) = section.entry(tls::TABLE) {
        let title = "unused setting `admin.tls`: the admin port of a writer has no TLS";
        let help = "remove the table, and use a proxy with TLS";
        reader.push(Diagnostic::new(title, section.span_of(key), "not read here").help(help.to_owned()));
    }
    Admin { tls: None, allowed_hosts: hosts::read_exact(reader, &section) }
}
