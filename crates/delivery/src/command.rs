//! Commands to a delivery that runs.

use std::io;
use std::time::Duration;

use event::TypeName;
use ledger::{Accept, GivenUp, SinkName};
use tokio::sync::{mpsc, oneshot};

use crate::setup::Setup;

/// What the supervisor is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run,
    /// Deliver what is durable, for this long at most, then save and close.
    Stop(Duration),
    /// Close all windows and deliver everything, until that is done or another order arrives; then save and close.
    Drain,
    /// Leave everything as it is.
    Abandon,
}

/// Orders that wait for the delivery.
pub(crate) const ORDERS_MAX: usize = 4;

/// Why a delivery goes on as it was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The events that wait for a route can't be counted.
    #[error("can't count the events in the journal: {0}")]
    Journal(#[source] io::Error),
    /// The states of aggregates can't be read or written.
    #[error("can't begin an aggregate: {0}")]
    Aggregates(#[source] io::Error),
    /// What has changed can't be saved.
    #[error("the ledger can't be saved; free space on the disk of the data directory")]
    Save,
    /// Nothing can be given up.
    #[error("{0}")]
    NothingHeld(String),
    /// It has ended.
    #[error("Forebay is stopping")]
    Stopping,
}

/// What a delivery is told while it runs.
pub(crate) enum Change {
    Configuration(Setup, oneshot::Sender<Result<(), ChangeError>>),
    GiveUp(SinkName, Option<TypeName>, oneshot::Sender<Result<GivenUp, ChangeError>>),
    Accept(SinkName, Accept, oneshot::Sender<Result<u64, ChangeError>>),
}

/// Changes a delivery that runs. Cheap to clone.
#[derive(Clone)]
pub struct DeliveryControl(pub(crate) mpsc::Sender<Change>);

impl DeliveryControl {
    /// Goes on with these routes, sinks and aggregates. The driver of a sink that stays as it is should be the one that it has. An
    /// aggregate that stays as it is goes on undisturbed.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn configure(&self, setup: Setup) -> Result<(), ChangeError> {
        self.order(|reply| Change::Configuration(setup, reply)).await
    }

    /// Gives up the events that routes hold which were taken out of the configuration: those to this sink, from one type
    /// or from all. Lanes of the sink that have stopped because their store has lost what isn't in the journal any
    /// more go on behind that.
    ///
    /// # Errors
    /// Nothing was given up.
    pub async fn give_up(&self, sink: SinkName, only: Option<TypeName>) -> Result<GivenUp, ChangeError> {
        self.order(|reply| Change::GiveUp(sink, only, reply)).await
    }

    /// Permits stopped lanes of this sink, whose store and journal disagree, to accept what the store has and to go on. With `resend`, they
    /// resend what the journal has after their saved cursors. Says how many lanes that are.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn accept(&self, sink: SinkName, resend: bool) -> Result<u64, ChangeError> {
        self.order(|reply| Change::Accept(sink, Accept { resend }, reply)).await
    }

    async fn order<T>(
        &self,
        change: impl FnOnce(oneshot::Sender<Result<T, ChangeError>>) -> Change,
    ) -> Result<T, ChangeError> {
        let (reply, answer) = oneshot::channel();
        self.0.send(change(reply)).await.map_err(|_| ChangeError::Stopping)?;
        answer.await.unwrap_or(Err(ChangeError::Stopping))
    }
}
