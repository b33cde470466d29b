//! The interface that sends a command to a server and returns its response.

use std::future::Future;

use super::error::Failure;
use super::protocol::{Answer, Command};

/// A server, or several servers that each have some keys.
pub(super) trait Execute {
    /// Sends a command to the server that has `key`. An error response is a failure.
    fn execute(&mut self, key: &str, command: Command) -> impl Future<Output = Result<Answer, Failure>> + Send;
}
