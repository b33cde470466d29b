//! Ends the calls in flight when a sink is closed.

use std::future::Future;
use std::pin::pin;

use futures_util::future::{Either, select};
use tokio::sync::watch;

/// Notifies the calls in flight that their sink is closed. Later calls are not affected.
#[derive(Debug, Default)]
pub struct CloseSignal(watch::Sender<u64>);

impl CloseSignal {
    /// Ends the calls in flight.
    pub fn close(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Does the work, unless the sink is closed during it: then the work is dropped, and the result is `closed`.
    ///
    /// # Errors
    /// The errors of the work, and `closed`.
    pub async fn unless_closed<T, E>(&self, closed: E, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let mut signal = self.0.subscribe();
        match select(pin!(work), pin!(signal.changed())).await {
            Either::Left((done, _)) => done,
            Either::Right(_) => Err(closed),
        }
    }
}
