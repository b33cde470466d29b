//! An event's id, its type's name, its position, and the interface through which stored events and objects are read.
//!
//! This crate does no I/O and reads no clock: times and randomness are arguments.

pub mod id;
mod name;
pub mod object;
mod position;
pub mod read;
mod serde_as_text;
mod trace;

pub use id::{EventId, FURTHER_VALUES_FROM, IdGenerator, InvalidEventId, KeyedIds};
pub use name::{InvalidTypeName, TypeName, TypeNameRule};
pub use position::{InvalidOrigin, InvalidPosition, Lane, Origin, Position};
pub use trace::TraceParent;
