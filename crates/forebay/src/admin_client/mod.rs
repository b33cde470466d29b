//! A client of the admin port, for commands that ask a running server.

mod address;
mod call;

pub(crate) use address::{of_server, of_writer};
pub(crate) use call::{Call, call, call_within};
