//! `forebay health`: the health check of a container, whose image has no other program.

use std::io;
use std::time::Duration;

use load::Target;

use crate::admin::{HEALTH, READY};
use crate::admin_client::{self, Call};
use crate::cli::{CaError, HealthFlags};
use crate::config::{self, Environment, LoadError};
use crate::role::Role;

/// The limit of each step: connect, TLS, write, read.
const STEP_MAX: Duration = Duration::from_secs(3);

/// Why the health check failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HealthError {
    /// The configuration is wrong, so its admin address is unknown.
    #[error("{0}")]
    Configuration(LoadError),
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
    /// A status other than 200.
    #[error("{address}{path} answers {status}: {body}")]
    Status {
        /// The admin address.
        address: Target,
        /// The path.
        path: &'static str,
        /// The status of the answer.
        status: u16,
        /// The body of the answer, without white space at its end.
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
        None => configured(flags, flags.role.or(role).unwrap_or(Role::Serve), environment)?,
    };
    let path = if flags.ready { READY } else { HEALTH };
    let server = flags.ca.server(&address)?;
    let answer = admin_client::call_within(&server, Call { method: "GET", target: path, body: &[] }, STEP_MAX)
        .map_err(|source| HealthError::NoAnswer { address: address.clone(), path, source })?;
    if answer.status == 200 {
        return Ok(0);
    }
    Err(HealthError::Status { address, path, status: answer.status, body: answer.body.trim_end().to_owned() })
}

fn configured(flags: &HealthFlags, role: Role, environment: &Environment) -> Result<Target, HealthError> {
    let common = flags.to_common(role);
    if role == Role::Writer {
        let loaded = config::load_writer(&common, environment);
        return loaded
            .map(|(configuration, _)| admin_client::of_writer(&configuration))
            .map_err(HealthError::Configuration);
    }
    let loaded = config::load(common.config.as_deref(), environment, &common.flags(), &common.data.directory);
    loaded.map(|(configuration, _)| admin_client::of_server(Some(&configuration))).map_err(HealthError::Configuration)
}
