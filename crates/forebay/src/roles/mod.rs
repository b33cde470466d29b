//! The roles of a process, from start to stop.

pub(crate) mod serve;
mod startup_message;
pub(crate) mod writer;
