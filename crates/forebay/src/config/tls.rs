//! `[gateway.tls]` and `[admin.tls]`: what a port shows of itself. The files are read to see whether they can be used;
//! what is in them is read again where it is needed.

use std::path::{Path, PathBuf};

use net::tls::IdentityError;

use super::file::{self, PEM};
use super::reader::Reader;
use super::report::Mistake;
use super::section::{Found, Section};
use crate::tls_files::{TlsFile, TlsFiles, TlsFilesError};

/// The settings of both.
pub(super) const KEYS: &[&str] = &["certificate", "key"];

/// Reads the table `tls` within `parent`. Relative paths of the file lead from `folder`, others from where the process is.
pub(super) fn read(reader: &mut Reader<'_>, parent: &Section<'_>, folder: &Path) -> Option<TlsFiles> {
    let is_there = parent.get("tls").is_some();
    let mistakes_before = reader.mistakes();
    let section = reader.table(parent, "tls");
    reader.check_keys(&section, KEYS);
    let certificate = file::read(reader, &section, "certificate", folder, PEM);
    let key = file::read(reader, &section, "key", folder, PEM);
    if reader.mistakes() > mistakes_before {
        return None;
    }
    let missing = |reader: &mut Reader<'_>, key: &str, spot| {
        let title = format!("`{}` is missing", section.key_path(key));
        let help = "TLS needs both: `certificate` with the chain of certificates and `key` with the key, PEM files";
        reader.push(Mistake::new(title, spot, "of no use without it").help(help.to_owned()));
        None
    };
    match (certificate, key) {
        (Some(certificate), Some(key)) => check(reader, &section, certificate, key),
        (Some(found), None) => missing(reader, "key", found.spot),
        (None, Some(found)) => missing(reader, "certificate", found.spot),
        (None, None) if is_there => missing(reader, "certificate", section.spot().clone()),
        (None, None) => None,
    }
}

fn check(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    certificate: Found<PathBuf>,
    key: Found<PathBuf>,
) -> Option<TlsFiles> {
    let files = TlsFiles { certificate: certificate.value, key: key.value };
    let Err(error) = files.read() else { return Some(files) };
    let (file, path) = error.file();
    let (name, at) = match file {
        TlsFile::Certificate => ("certificate", &certificate.spot),
        TlsFile::Key => ("key", &key.spot),
    };
    let title = format!("`{}` can't be used: {}", section.key_path(name), error.what());
    let mut mistake = Mistake::new(title, at.clone(), format!("this is {}", path.display()));
    if matches!(error, TlsFilesError::Wrong { source: IdentityError::Mismatch, .. }) {
        mistake = mistake.also(certificate.spot, "the certificate");
    }
    reader.push(mistake);
    None
}
