//! What happens to an event between the wire and the journal, as pure functions: split a batch, check the
//! JSON, find what stands at a pointer, work out expressions, hold it against a schema, transform it. No clock, no disk,
//! no network: what they need is an argument.

pub mod aggregate;
pub mod batch;
pub mod choice;
mod event_time;
pub mod expression;
pub mod json;
mod nearest;
mod pattern;
pub mod pointer;
mod refusal;
mod regex_fault;
pub mod schema;
pub mod storable;
pub mod transform;
mod values;

pub use event_time::TimeRule;
pub use refusal::{Refusal, RefusalCode};
pub use values::{Values, View};
