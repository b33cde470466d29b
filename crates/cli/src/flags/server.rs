//! How a server is known that a command talks to.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use config::port::tls_files;
use load::{ServerConnector, ServerUrl};

use super::path_value::path;
use crate::errors::unreadable;

/// The flag of every command that talks to a server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CaFlag {
    /// Check the certificate of an https:// server with the authorities in this PEM file, instead of this machine's
    #[arg(long, value_name = "FILE", env = "FOREBAY_CA", value_parser = path())]
    ca: Option<PathBuf>,
}

impl CaFlag {
    /// The server of this address, trusted as the flag says.
    ///
    /// # Errors
    /// The file can't be used, or is needed and not named.
    pub(crate) fn server(&self, target: &ServerUrl) -> anyhow::Result<ServerConnector> {
        let Some(path) = &self.ca else { return Ok(ServerConnector::new(target.clone(), None)?) };
        let authorities = tls_files::read(path).map_err(unreadable(path))?;
        let server = ServerConnector::new(target.clone(), Some((path, &authorities)));
        server.map_err(|error| anyhow!("{}: {error}", path.display()))
    }
}
