//! Webhooks to a receiver of the tests, over real HTTP: the conformance suite of all sinks, the meaning of responses,
//! and that a receiver which follows the standard can verify the sender of a message and detect duplicates.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

mod answers;
mod conformance;
mod receiver;
mod signatures;

use std::num::NonZeroUsize;
use std::time::Duration;

use sink::Sink;
use sink_webhook::{MessageShape, Webhook, WebhookConfig};

/// A sink's configuration for a receiver.
fn config(url: &str) -> WebhookConfig {
    WebhookConfig {
        url: url.parse().unwrap(),
        secrets: Vec::new(),
        headers: Vec::new(),
        shape: MessageShape::Payload,
        requests_max: NonZeroUsize::new(4).unwrap(),
        ca: None,
        timeout: Duration::from_secs(60),
    }
}

fn sink(config: WebhookConfig) -> Sink {
    Sink::new(Webhook::new(config))
}
