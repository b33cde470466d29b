//! The configuration of an etcd in which writers register, for both roles.

use std::fmt;
use std::path::PathBuf;

use net::http_client::Endpoint;

/// An etcd, and the keys of the writers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// Its members, at least one.
    pub endpoints: Vec<Endpoint>,
    /// The prefix of the writers' keys. It ends with a slash.
    pub prefix: String,
    /// The user, if etcd has authentication enabled.
    pub account: Option<EtcdAccount>,
    /// A PEM file with the trusted authorities. `None`: the machine's.
    pub ca: Option<PathBuf>,
}

/// A user of etcd.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdAccount {
    /// The user's name.
    pub user: String,
    /// The user's password.
    pub password: String,
}

/// Omits the password.
impl fmt::Debug for EtcdAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EtcdAccount({}, …)", self.user)
    }
}

/// The members and the prefix, as in `http://etcd1:2379 http://etcd2:2379 under /forebay/writers/`.
impl fmt::Display for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoints.iter().try_for_each(|endpoint| write!(f, "{endpoint} "))?;
        write!(f, "under {}", self.prefix)
    }
}
