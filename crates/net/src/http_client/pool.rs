//! Connections that wait for their next request.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::yield_now;

use super::connection::PooledConnection;
use super::origin::HttpOrigin;

/// Unused connections to one server that are kept.
const IDLE_COUNT_MAX: usize = 16;

/// The connections, the one that was used last at the end.
#[derive(Default)]
pub(super) struct Pool(Mutex<HashMap<HttpOrigin, Vec<PooledConnection>>>);

impl Pool {
    fn held(&self) -> MutexGuard<'_, HashMap<HttpOrigin, Vec<PooledConnection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A usable connection, if this thread has opened one: then its events depend on no other thread's work.
    pub(super) async fn take(&self, origin: &HttpOrigin) -> Option<PooledConnection> {
        loop {
            let mut connection = {
                let mut held = self.held();
                let idle = held.get_mut(origin)?;
                let at = idle.iter().rposition(PooledConnection::is_of_this_thread)?;
                idle.remove(at)
            };
            // The runtime processes what has arrived since, such as the connection's end.
            yield_now().await;
            if connection.check_fresh().await {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose response is read, if it can be used again.
    pub(super) async fn keep(&self, origin: &HttpOrigin, mut connection: PooledConnection) {
        if !connection.check_fresh().await {
            return;
        }
        let mut held = self.held();
        // Connections to an address that is no longer used would stay open forever.
        held.retain(|_, idle| {
            idle.retain(|connection| !connection.is_old());
            !idle.is_empty()
        });
        let idle = held.entry(origin.clone()).or_default();
        if idle.len() < IDLE_COUNT_MAX {
            idle.push(connection);
        }
    }

    pub(super) fn clear(&self) {
        self.held().clear();
    }
}
