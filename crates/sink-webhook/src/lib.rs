//! Web hooks: each event is a request to somebody's server, signed as Standard Webhooks 1.0.0 says
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).
//!
//! Keyed: a message has the event's id in every attempt, by which its receiver tells a repetition. Nothing is known of what a
//! receiver did that didn't answer: it is sent again.

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
