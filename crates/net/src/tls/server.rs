//! The identity of a port. It can be replaced while connections are open.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;

use super::Identity;

/// The identity of a port, shared by all acceptors.
#[derive(Debug)]
pub struct ServerTls {
    current: RwLock<Arc<ServerConfig>>,
}

impl ServerTls {
    /// A port that shows `identity`.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self { current: RwLock::new(identity.0) }
    }

    /// Shows `identity` to clients that connect from now on. Open connections continue unchanged. A client with an older ticket does the whole
    /// handshake, and sees the new identity too.
    pub fn publish(&self, identity: Identity) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = identity.0;
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
