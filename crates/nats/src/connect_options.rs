//! How to connect to servers.

use std::path::PathBuf;

use crate::Servers;

/// The servers, and how to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The servers, and the account to use.
    pub servers: Servers,
    /// A file with the key of a user, and its JWT if it has one. It is read for each connection.
    pub credentials: Option<PathBuf>,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// The client's name in the server's list of connections.
    pub name: &'static str,
}
