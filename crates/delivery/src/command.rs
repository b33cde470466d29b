//! Commands to a running delivery.

use std::io;
use std::time::Duration;

use event::TypeName;
use ledger::{Accept, Discarded, SinkName};
use tokio::sync::{mpsc, oneshot};

use crate::setup::Setup;

/// Commands to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run,
    /// Deliver what is durable, for this long at most, then save and close.
    Stop(Duration),
    /// Close all windows and deliver everything, until that is done or another command arrives; then save and close.
    Drain,
    /// Leave everything as it is.
    Abandon,
}

/// Changes that may wait for the delivery.
pub(crate) const CHANGES_MAX: usize = 4;

/// Why a change was not applied; the delivery continues with its old configuration.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The events that wait for a route can't be counted.
    #[error(
        "can't count the events in the journal: {0}. Check the disk and permissions of the data directory, then \
         reload again"
    )]
    Journal(#[source] io::Error),
    /// The states of aggregates can't be read or written.
    #[error("can't start an aggregate: {0}. Check the disk and permissions of the data directory, then reload again")]
    Aggregates(#[source] io::Error),
    /// What has changed can't be saved.
    #[error("can't save the ledger: free space on the disk of the data directory")]
    Save,
    /// There is nothing to discard or to accept.
    #[error("{0}")]
    NothingToDo(String),
    /// The number to discard or to accept differs from the expected one.
    #[error("{now} match now, and {expected} were expected: repeat the dry run")]
    Changed {
        /// Events or lanes now.
        now: u64,
        /// The same as the caller knows it.
        expected: u64,
    },
    /// The delivery has ended.
    #[error("Forebay is stopping")]
    Stopping,
}

/// A change of a running delivery.
pub(crate) enum Change {
    Configuration(Setup, oneshot::Sender<Result<(), ChangeError>>),
    Discard(SinkName, Option<TypeName>, Option<u64>, oneshot::Sender<Result<Discarded, ChangeError>>),
    PlanDiscard(SinkName, Option<TypeName>, oneshot::Sender<Result<Discarded, ChangeError>>),
    Accept(SinkName, Accept, Option<u64>, oneshot::Sender<Result<u64, ChangeError>>),
    PlanAccept(SinkName, oneshot::Sender<Result<u64, ChangeError>>),
}

/// Changes a running delivery. Cheap to clone.
#[derive(Clone)]
pub struct DeliveryControl(pub(crate) mpsc::Sender<Change>);

impl DeliveryControl {
    /// Continues with these routes, sinks and aggregates. An unchanged sink should keep its driver. An unchanged
    /// aggregate continues without interruption.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn configure(&self, setup: Setup) -> Result<(), ChangeError> {
        self.request(|reply| Change::Configuration(setup, reply)).await
    }

    /// Discards the events of removed routes to this sink, from one type or from all. Lanes of the sink that have
    /// stopped because their store has lost events that are no longer in the journal continue after that. `expected` is
    /// the number of these events, if the caller knows it.
    ///
    /// # Errors
    /// Nothing was discarded.
    pub async fn discard(
        &self,
        sink: SinkName,
        only: Option<TypeName>,
        expected: Option<u64>,
    ) -> Result<Discarded, ChangeError> {
        self.request(|reply| Change::Discard(sink, only, expected, reply)).await
    }

    /// What [`Self::discard`] would discard now. It changes nothing.
    ///
    /// # Errors
    /// It would discard nothing.
    pub async fn plan_discard(&self, sink: SinkName, only: Option<TypeName>) -> Result<Discarded, ChangeError> {
        self.request(|reply| Change::PlanDiscard(sink, only, reply)).await
    }

    /// Permits stopped lanes of this sink, whose store and journal disagree, to accept what the store has and to
    /// continue. With `resend` they resend everything after their saved cursors that the journal has. `expected` is the
    /// number of these lanes, if the caller knows it. Returns their number.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn accept(&self, sink: SinkName, resend: bool, expected: Option<u64>) -> Result<u64, ChangeError> {
        self.request(|reply| Change::Accept(sink, Accept { resend }, expected, reply)).await
    }

    /// The number of lanes that [`Self::accept`] would resume now. It changes nothing.
    ///
    /// # Errors
    /// It would resume none.
    pub async fn plan_accept(&self, sink: SinkName) -> Result<u64, ChangeError> {
        self.request(|reply| Change::PlanAccept(sink, reply)).await
    }

    async fn request<T>(
        &self,
        change: impl FnOnce(oneshot::Sender<Result<T, ChangeError>>) -> Change,
    ) -> Result<T, ChangeError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(change(reply)).await.map_err(|_| ChangeError::Stopping)?;
        answer.await.unwrap_or(Err(ChangeError::Stopping))
    }
}
