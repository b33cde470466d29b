//! The certificates of ports, which are read again when their files change.

pub(crate) mod listeners;
pub(crate) mod watch;
