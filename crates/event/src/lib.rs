//! The words of Forebay as types: what an event is called, where it stands, and how big anything may be.
//!
//! This crate does no I/O and reads no clock: times and randomness are arguments.

pub mod calendar;
pub mod cells;
mod checked_name;
mod counted;
pub mod hex;
pub mod id;
pub mod length;
pub mod limits;
pub mod memory;
mod name;
pub mod object;
mod operator_command;
pub mod percent;
mod position;
pub mod read;
pub mod rfc3339;
pub mod time_fields;
mod visible;

pub use checked_name::{CheckedName, NameRule, is_name_of};
pub use counted::counted;
pub use id::{EventId, FURTHER_VALUES_FROM, IdGenerator, KeyedIds};
pub use name::{InvalidTypeName, TypeName, TypeNameRule};
pub use operator_command::{OperatorCommand, OwnFlags, set_own_flags};
pub use position::{InvalidOrigin, InvalidPosition, Lane, Origin, Position};
pub use visible::visible;
