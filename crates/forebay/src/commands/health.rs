//! `forebay health`: the health check of a container, which has no other program for it.

use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use anyhow::{anyhow, bail};
use config::Role;
use load::{IngestResponse, ServerConnector};
use settings::Environment;

use crate::admin::{HEALTH, READY};
use crate::admin_address;
use crate::cli::HealthFlags;

/// The limit of the whole exchange, and of each of its steps.
const LIMIT: Duration = Duration::from_secs(3);

/// Asks the server of the flags' role, or else of `role`. Returns the process's exit code.
///
/// # Errors
/// The message names the reason.
pub(crate) fn run(flags: &HealthFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let address = admin_address::of_flags(&flags.at, flags.role.or(role).unwrap_or(Role::Serve), environment)?;
    let path = if flags.ready { READY } else { HEALTH };
    let answer = ask(flags.at.ca.server(&address)?, path).map_err(|error| {
        anyhow!("{address}{path} does not answer: {error}. Start the server, or name its admin address with --admin.")
    })?;
    if answer.status != 200 {
        bail!("{address}{path} answers {}: {}", answer.status, answer.body.trim_end());
    }
    Ok(0)
}

/// A server that sends a byte now and then would keep each step within its limit.
fn ask(server: ServerConnector, path: &'static str) -> io::Result<IngestResponse> {
    let (send, answer) = channel();
    thread::spawn(move || {
        // Nobody waits any more after the limit.
        let _ = send.send(server.ask(("GET", path, &[]), None, (LIMIT, Some(LIMIT))));
    });
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {LIMIT:?}"));
    match answer.recv_timeout(LIMIT) {
        Ok(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => Err(late()),
        Ok(answered) => answered,
        Err(_) => Err(late()),
    }
}
