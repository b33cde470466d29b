//! Who takes a command to a server and brings its answer.

use std::future::Future;

use super::error::Failure;
use super::protocol::{Answer, Command};

/// A server, or several of which each has some keys.
pub(super) trait Execute {
    /// What the server that has `key` answers. A refusal is a failure.
    fn execute(&mut self, key: &str, command: Command) -> impl Future<Output = Result<Answer, Failure>> + Send;
}
