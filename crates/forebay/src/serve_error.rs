//! Why a server, a gateway, a writer or `forebay drain` can't start or continue.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use config::port::tls_files::TlsFilesError;
use config::token_file::TokenFileError;

use crate::process::disk_size::SmallDisk;

/// Why Forebay can't serve, or stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The data directory can't be used.
    #[error(transparent)]
    Directory(#[from] journal::DirectoryError),
    /// Its disk is too small.
    #[error(transparent)]
    SmallDisk(#[from] SmallDisk),
    /// The tokens can't be read.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// Certificates or keys can't be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsFilesError),
    /// The ledger can't be read.
    #[error(transparent)]
    Ledger(#[from] delivery::LoadError),
    /// A journal can't be opened.
    #[error(transparent)]
    Log(#[from] eventlog::OpenLogError),
    /// Delivery can't start.
    #[error(transparent)]
    Delivery(#[from] delivery::StartError),
    /// An address can't be listened on.
    #[error("can't listen on {address}: {source}; choose another address with {flag}, or end what has it")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The flag that sets it.
        flag: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// A system call that every start needs failed.
    #[error("can't {what}: {source}")]
    System {
        /// The action.
        what: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The data directory's shards can't be listed.
    #[error("can't read {path}: {source}")]
    Shards {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The journal failed while Forebay ran.
    #[error("{0}")]
    JournalFailed(String),
}
