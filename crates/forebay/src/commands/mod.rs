//! The commands that compose a server, or parts of it: each runs and ends. The others are in the crate `cli`.

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod report;
pub(crate) mod test;
pub(crate) mod try_event;
