//! Web hooks to a receiver of the tests' own, over real HTTP: the suite of all sinks, what answers mean, and that a receiver which follows
//! the standard can tell who sent a message and whether it came before.
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
