//! Values as text: times, durations, names, escapes, plurals, commands for operators.
//!
//! This crate does no I/O and reads no clock.

pub mod calendar;
mod checked_name;
pub mod duration;
mod escape_control;
pub mod hex;
mod operator_command;
pub mod percent;
mod plural;
pub mod rfc3339;
pub mod time_fields;

pub use checked_name::{CheckedName, NameRule, is_name_of};
pub use escape_control::escape_control;
pub use operator_command::{OperatorCommand, OwnFlags, set_own_flags};
pub use plural::counted;
