//! What happens to an event between the wire and the journal, as pure functions: split a batch, check the
//! JSON, find what stands at a pointer, work out expressions. No clock, no disk, no network: what they need is an argument.

pub mod aggregate;
pub mod batch;
pub mod expression;
pub mod json;
pub mod pointer;
mod refusal;

pub use refusal::{Refusal, RefusalCode};
