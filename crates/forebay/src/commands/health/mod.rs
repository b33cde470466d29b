//! `forebay health`: the health check of a container, which has no other program for it.

mod address;

use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use config::Role;
use load::{Server, Target};
use settings::Environment;

use crate::admin::{HEALTH, READY};
use crate::cli::{CaError, HealthFlags};
use crate::commands::admin_client::{self, Answer, Call};

/// The limit of the whole exchange, and of each of its steps.
const LIMIT: Duration = Duration::from_secs(3);

/// Why the server doesn't count as healthy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HealthError {
    /// The admin address can't be found.
    #[error("{0}. Name the admin address with --admin.")]
    Address(String),
    /// The server's certificate can't be verified.
    #[error(transparent)]
    Ca(#[from] CaError),
    /// No answer.
    #[error("{address}{path} does not answer: {source}. Start the server, or name its admin address with --admin.")]
    NoAnswer {
        /// The admin address.
        address: Target,
        /// The path.
        path: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// Another status than 200.
    #[error("{address}{path} answers {status}: {body}")]
    Status {
        /// The admin address.
        address: Target,
        /// The path.
        path: &'static str,
        /// The status of the answer.
        status: u16,
        /// The body of the answer, without the last line's end.
        body: String,
    },
}

/// Asks the server of the flags' role, or else of `role`. Returns the process's exit code.
///
/// # Errors
/// [`HealthError`] names the reason.
pub(crate) fn run(flags: &HealthFlags, role: Option<Role>, environment: &Environment) -> Result<u8, HealthError> {
    let address = match &flags.admin {
        Some(address) => address.clone(),
        None => {
            let role = flags.role.or(role).unwrap_or(Role::Serve);
            address::find(role, flags.config.as_deref(), environment).map_err(HealthError::Address)?
        }
    };
    let path = if flags.ready { READY } else { HEALTH };
    let answer = ask(flags.ca.server(&address)?, path).map_err(|source| HealthError::NoAnswer {
        address: address.clone(),
        path,
        source,
    })?;
    if answer.status == 200 {
        return Ok(0);
    }
    Err(HealthError::Status { address, path, status: answer.status, body: answer.body.trim_end().to_owned() })
}

/// A server that sends a byte now and then would keep each step within its limit.
fn ask(server: Server, path: &'static str) -> io::Result<Answer> {
    let (send, answer) = channel();
    thread::spawn(move || {
        let call = Call { method: "GET", target: path, body: &[] };
        // Nobody waits any more after the limit.
        let _ = send.send(admin_client::call_within(&server, call, LIMIT));
    });
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {LIMIT:?}"));
    match answer.recv_timeout(LIMIT) {
        Ok(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => Err(late()),
        Ok(answered) => answered,
        Err(_) => Err(late()),
    }
}
