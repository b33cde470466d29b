//! What a port shows of itself now. It can be replaced while connections are open.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;

use super::Identity;

/// The identity of a port, shared by all who accept there.
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

    /// Shows `identity` to those who connect from now on. Connections that are open go on with what they agreed on;
    /// who comes back with a ticket of before does the whole handshake, and sees it too.
    pub fn publish(&self, identity: Identity) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = identity.0;
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
