//! The files of a port's certificates and key.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use net::tls::{Identity, IdentityError};
use settings::files;

/// A chain of certificates takes a few kilobytes. What is larger is something else, and may have no end.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Where a port's certificates and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those that lead to its authority.
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
pub enum TlsFilesError {
    /// One can't be read.
    #[error("can't read {path}: {source}")]
    Unreadable {
        /// Which of the two.
        file: TlsFile,
        /// Its path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// What is in them is wrong.
    #[error("{path}: {source}")]
    Wrong {
        /// Which of the two is at fault; the key where they don't fit.
        file: TlsFile,
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        source: IdentityError,
    },
}

impl TlsFiles {
    /// Reads both.
    ///
    /// # Errors
    /// One can't be read, or they aren't a certificate and its key.
    pub fn read(&self) -> Result<Identity, TlsFilesError> {
        let read = |file| {
            let path = self.path(file);
            read(path).map_err(|source| TlsFilesError::Unreadable { file, path: path.to_owned(), source })
        };
        let (certificate, key) = (read(TlsFile::Certificate)?, read(TlsFile::Key)?);
        Identity::from_pem(&certificate, &key).map_err(|source| {
            let file = if source.is_of_certificate() { TlsFile::Certificate } else { TlsFile::Key };
            TlsFilesError::Wrong { file, path: self.path(file).to_owned(), source }
        })
    }

    fn path(&self, file: TlsFile) -> &Path {
        match file {
            TlsFile::Certificate => &self.certificate,
            TlsFile::Key => &self.key,
        }
    }
}

impl TlsFilesError {
    /// The file at fault, and its path.
    pub fn file(&self) -> (TlsFile, &Path) {
        match self {
            Self::Unreadable { file, path, .. } | Self::Wrong { file, path, .. } => (*file, path),
        }
    }

    /// What is wrong, without the file's name.
    pub fn what(&self) -> String {
        match self {
            Self::Unreadable { source, .. } => source.to_string(),
            Self::Wrong { source, .. } => source.to_string(),
        }
    }
}

/// The bytes of a regular file: a pipe could block the reader for ever.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let mut bytes = Vec::new();
    files::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too large for certificates or a key"));
    }
    Ok(files::content(&bytes).to_vec())
}
