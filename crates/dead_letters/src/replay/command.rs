//! The commands to a replayer.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::filter::DeadFilter;
use crate::replay::outcome::{DeadAction, DeadOutcome};
use crate::replay::progress::DeadProgress;

/// A command to a replayer.
pub(crate) struct DeadCommand {
    pub(crate) action: DeadAction,
    pub(crate) filter: DeadFilter,
    pub(crate) limit: u64,
    /// Only dead letters up to this position of the journal.
    pub(crate) until: u64,
    pub(crate) progress: Arc<DeadProgress>,
    pub(crate) reply: oneshot::Sender<DeadOutcome>,
}
