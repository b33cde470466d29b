//! How a server is known that a command talks to.

use std::io;
use std::path::PathBuf;

use clap::Args;
use config::port::tls_files;
use load::{Server, Target};

/// The flag of every command that talks to a server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CaFlag {
    /// Trust a server with https:// by the authorities of this PEM file, instead of those of this machine
    #[arg(long, value_name = "FILE", env = "FOREBAY_CA")]
    ca: Option<PathBuf>,
}

/// Why nobody can be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaError {
    /// The file can't be read.
    #[error("can't read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file has no authorities.
    #[error("{path}: {source}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: net::tls::TrustError,
    },
    /// This machine has none.
    #[error(transparent)]
    System(net::tls::TrustError),
}

impl CaFlag {
    /// The server of this address, to be trusted as the flag says.
    ///
    /// # Errors
    /// The file can't be used, or is needed and not named.
    pub(crate) fn server(&self, target: &Target) -> Result<Server, CaError> {
        let Some(path) = &self.ca else { return Server::new(target.clone(), None).map_err(CaError::System) };
        let unreadable = |source| CaError::Unreadable { path: path.clone(), source };
        let authorities = tls_files::read(path).map_err(unreadable)?;
        Server::new(target.clone(), Some(&authorities)).map_err(|source| CaError::Wrong { path: path.clone(), source })
    }
}
