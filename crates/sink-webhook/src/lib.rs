//! Web hooks: each event is a request to somebody's server, signed as Standard Webhooks 1.0.0 says
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).
//!
//! Keyed: a message has the event's id in every attempt, by which its receiver tells a repetition. Nothing is known of what a
//! receiver did that didn't answer: it is sent again.

mod config;
mod fault;
mod message;
mod outcome;
mod secret;
mod settings;
mod write;

use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use tokio::sync::Semaphore;

pub use config::{HookHeader, HookUrl, InvalidHook, MessageShape, WebhookConfig};
pub use secret::{InvalidSigningSecret, SigningSecret};
pub use settings::KIND;

use net::http_client::{HttpClient, HttpOptions};
use outcome::Failure;
use sink::close_signal::CloseSignal;
use sink::{Batch, SinkError, Store, WriteOutcome};
use write::Pause;

/// How long a server may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// The store.
pub struct Webhook {
    config: WebhookConfig,
    client: HttpClient,
    /// Requests that may be in flight.
    turns: Semaphore,
    /// Until when the receiver wants to be left alone.
    pause: Pause,
    /// Which message of a batch is sent first.
    first: AtomicUsize,
    closed: CloseSignal,
}

impl Webhook {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: WebhookConfig) -> Self {
        let client = HttpClient::new(HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_TIMEOUT.min(config.timeout),
            silence_max: config.timeout,
            // The whole sink waits, not each request.
            waits_for_retry_after: false,
        });
        let turns = Semaphore::new(config.requests_max.get());
        Self {
            config,
            client,
            turns,
            pause: Pause::default(),
            first: AtomicUsize::new(0),
            closed: CloseSignal::default(),
        }
    }
}

#[async_trait]
impl Store for Webhook {
    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        if let Some(rejected) = batch.misnamed() {
            return Ok(rejected);
        }
        let Self { config, closed, .. } = self;
        closed.unless_closed(Failure::Closed.into_sink_error(&config.url), write::write(self, batch)).await
    }

    /// Ends the calls in flight and closes the connections that wait.
    async fn close(&self) -> Result<(), SinkError> {
        self.closed.close();
        self.client.close_idle();
        Ok(())
    }
}
