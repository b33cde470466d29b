//! Webhooks: each event is a request to an external server, signed as Standard Webhooks 1.0.0 describes
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).
//!
//! An idempotent store: a message has the event's id in every attempt, by which its receiver detects duplicates. If a
//! receiver didn't respond, its state is unknown, and the message is resent.

mod config;
mod error;
mod fault;
mod mapping;
mod outcome;
mod secret;
mod settings;
mod store;
mod write;

pub use config::{HookHeader, HookUrl, InvalidHook, MessageShape, WebhookConfig};
pub use secret::{InvalidSigningSecret, SigningSecret};
pub use settings::KIND;
pub use store::Webhook;
