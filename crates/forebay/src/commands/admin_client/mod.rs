//! A client of the admin port, for commands that ask a running server.

mod address;
mod call;

pub(crate) use address::{of_server, target};
pub(crate) use call::{Answer, Call, call, call_within};
