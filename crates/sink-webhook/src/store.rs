//! The store: it can be closed while it sends.

use async_trait::async_trait;
use sink::close_signal::CloseSignal;
use sink::{Batch, Examination, SinkError, Store, WriteOutcome};

use crate::config::WebhookConfig;
use crate::error::Failure;
use crate::write::Sender;

/// The store.
pub struct Webhook {
    sender: Sender,
    closed: CloseSignal,
}

impl Webhook {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: WebhookConfig) -> Self {
        Self { sender: Sender::new(config), closed: CloseSignal::default() }
    }
}

#[async_trait]
impl Store for Webhook {
    /// Asks for the root of the receiver: the path of `url` may accept events.
    async fn examine(&self, _: bool) -> Result<Examination, SinkError> {
        self.sender.examine().await.map_err(|failure| failure.into_sink_error(&self.sender.config.url))
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        if let Some(rejected) = batch.misnamed() {
            return Ok(rejected);
        }
        let closed = Failure::Closed.into_sink_error(&self.sender.config.url);
        self.closed.unless_closed(closed, self.sender.write(batch)).await
    }

    /// Ends the calls in flight and closes the connections that wait.
    async fn close(&self) -> Result<(), SinkError> {
        self.closed.close();
        self.sender.close_idle();
        Ok(())
    }
}
