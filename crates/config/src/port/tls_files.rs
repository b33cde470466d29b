//! The files of a port's certificates and key.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use net::tls::{Identity, IdentityError};
use settings::files;

/// A chain of certificates takes a few kilobytes. A larger file is something else, and may have no end.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The paths of a port's certificates and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and the chain to its authority.
    pub certificate: PathBuf,
    /// The key to the first of them.
    pub key: PathBuf,
}

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// The chain of certificates.
    Certificate,
    /// The key.
    Key,
}

/// Why the files can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .path.display())]
pub struct TlsFilesError {
    /// The file at fault; the key if they don't fit.
    pub file: TlsFile,
    /// Its path.
    pub path: PathBuf,
    /// The error.
    pub source: TlsFault,
}

/// The error of a file.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// It can't be read: the operating system's error.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// Its content is wrong.
    #[error(transparent)]
    Wrong(#[from] IdentityError),
}

impl TlsFiles {
    /// Reads both.
    ///
    /// # Errors
    /// One can't be read, or they aren't a certificate and its key.
    pub fn read(&self) -> Result<Identity, TlsFilesError> {
        let failed = |file, source| TlsFilesError { file, path: self.path(file).to_owned(), source };
        let read = |file| read(self.path(file)).map_err(|error| failed(file, error.into()));
        let (certificate, key) = (read(TlsFile::Certificate)?, read(TlsFile::Key)?);
        Identity::from_pem(&certificate, &key).map_err(|error| {
            let file = if error.is_of_certificate() { TlsFile::Certificate } else { TlsFile::Key };
            failed(file, error.into())
        })
    }

    fn path(&self, file: TlsFile) -> &Path {
        match file {
            TlsFile::Certificate => &self.certificate,
            TlsFile::Key => &self.key,
        }
    }
}

/// The bytes of a regular file: a pipe could block the reader forever.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut bytes = Vec::new();
    files::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too large for certificates or a key"));
    }
    Ok(files::content(&bytes).to_vec())
}
