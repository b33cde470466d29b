//! `[gateway.tls]` and `[admin.tls]`: the certificate of a port. The files are read to check whether they can be used;
//! their content is read again when it is needed.

use std::path::{Path, PathBuf};

use net::tls::IdentityError;
use settings::{Diagnostic, Located, PATH, Section, Setting, SettingsReader, names, path, path::PEM};

use crate::port::tls_files::{TlsFault, TlsFile, TlsFiles, TlsFilesError};

/// The settings of both.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        CERTIFICATE,
        PATH,
        "a PEM file: the certificate of the port, followed by the intermediate certificates",
    )
    .example("\"intake.pem\""),
    Setting::new(KEY, PATH, "a PEM file: the key to it, without a password").example("\"intake.key\""),
];
const CERTIFICATE: &str = "certificate";
const KEY: &str = "key";
/// The table's name.
pub(crate) const TABLE: &str = "tls";

/// Reads the table `tls` within `parent`. Relative paths of the file start at `folder`, others at the process's working
/// directory.
pub(crate) fn read(reader: &mut SettingsReader<'_>, parent: &Section<'_>, folder: &Path) -> Option<TlsFiles> {
    let is_there = parent.get(TABLE).is_some();
    let errors_before = reader.errors();
    let section = reader.table(parent, TABLE);
    reader.check_keys(&section, names(SETTINGS));
    let certificate = path::read(reader, &section, CERTIFICATE, folder, PEM);
    let key = path::read(reader, &section, KEY, folder, PEM);
    if reader.errors() > errors_before {
        return None;
    }
    let missing = |reader: &mut SettingsReader<'_>, key: &str, span| {
        let title = format!("missing setting `{}`", section.key_path(key));
        let help = "TLS needs both: `certificate` with the chain of certificates and `key` with the key, PEM files";
        reader.push(Diagnostic::new(title, span, "needs it").help(help.to_owned()));
        None
    };
    match (certificate, key) {
        (Some(certificate), Some(key)) => check(reader, &section, certificate, key),
        (Some(found), None) => missing(reader, KEY, found.span),
        (None, Some(found)) => missing(reader, CERTIFICATE, found.span),
        (None, None) if is_there => missing(reader, CERTIFICATE, section.span().clone()),
        (None, None) => None,
    }
}

fn check(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    certificate: Located<PathBuf>,
    key: Located<PathBuf>,
) -> Option<TlsFiles> {
    let files = TlsFiles { certificate: certificate.value, key: key.value };
    let Err(TlsFilesError { file, path, source }) = files.read() else { return Some(files) };
    let (name, at) = match file {
        TlsFile::Certificate => (CERTIFICATE, &certificate.span),
        TlsFile::Key => (KEY, &key.span),
    };
    let title = format!("invalid value for `{}`: {source}", section.key_path(name));
    let mut mistake = Diagnostic::new(title, at.clone(), format!("this is {}", path.display()));
    if matches!(source, TlsFault::Wrong(IdentityError::Mismatch)) {
        mistake = mistake.also(certificate.span, "the certificate");
    }
    reader.push(mistake);
    None
}
