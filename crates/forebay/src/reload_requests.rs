//! Requests for a reload, and their counters: between the admin port, the metrics and the task that reloads.

use admin_api::reload::ReloadJson;
use metrics::Counter;
use tokio::sync::{mpsc, oneshot};

use crate::caller::Caller;

/// Callers of the admin API that may wait at a time.
const WAITING_MAX: usize = 4;
/// Why nothing has changed when a reload is cancelled.
const STOPPING: &str = "the reload was cancelled, because Forebay is stopping";

/// How often the configuration was read again.
#[derive(Debug, Default)]
pub(crate) struct ReloadCounters {
    /// The new configuration is in use.
    pub(crate) applied: Counter,
    /// Nothing has changed.
    pub(crate) refused: Counter,
}

/// Why a reload changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    /// The configuration can't be used; the text for the operator says why.
    #[error("{0}")]
    Configuration(String),
    /// The configuration is right and could not be applied now.
    #[error("{0}")]
    Failed(String),
}

/// The receiver of a reload's result.
pub(crate) type Reply = oneshot::Sender<Result<ReloadJson, ReloadError>>;

/// A request of the admin API.
pub(crate) struct ReloadRequest {
    pub(crate) by: Caller,
    /// Whether to report the changes without applying them.
    pub(crate) is_dry_run: bool,
    pub(crate) reply: Reply,
}

/// The admin API's handle for reloads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ReloadHandle(mpsc::Sender<ReloadRequest>);

/// The reload requests that wait.
pub(crate) struct ReloadRequests(pub(crate) mpsc::Receiver<ReloadRequest>);

impl ReloadHandle {
    pub(crate) fn new() -> (Self, ReloadRequests) {
        let (handle, requests) = mpsc::channel(WAITING_MAX);
        (Self(handle), ReloadRequests(requests))
    }

    /// Reads the configuration again for this caller, and applies it unless it is a dry run.
    ///
    /// # Errors
    /// What is wrong with it, in a text for the operator; nothing has changed.
    pub(crate) async fn reload(&self, by: Caller, is_dry_run: bool) -> Result<ReloadJson, ReloadError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(ReloadRequest { by, is_dry_run, reply }).await.map_err(|_| stopping())?;
        answer.await.unwrap_or_else(|_| Err(stopping()))
    }
}

/// The process ends before the reload.
pub(crate) fn stopping() -> ReloadError {
    ReloadError::Failed(STOPPING.to_owned())
}
