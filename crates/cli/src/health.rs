//! `forebay health`: the health check of a container, which has no other program for it.

use std::time::Duration;

use anyhow::{anyhow, bail};
use config::Role;
use settings::Environment;

use crate::admin_address;
use crate::flags::HealthFlags;
use admin_api::paths::{HEALTH, READY};

/// The limit of the whole exchange.
const LIMIT: Duration = Duration::from_secs(3);

/// Asks the server of the flags' role, or else of `role`. Returns the process's exit code.
///
/// # Errors
/// The message names the reason.
pub(crate) fn run(flags: &HealthFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let address = admin_address::of_flags(&flags.at, flags.role.or(role).unwrap_or(Role::Serve), environment)?;
    let path = if flags.ready { READY } else { HEALTH };
    let asked = flags.at.ca.server(&address)?.ask(("GET", path, &[]), None, (LIMIT, Some(LIMIT)));
    let answer = asked.map_err(|error| {
        anyhow!("no response from {address}{path}: {error}. Start the server, or name its admin address with --admin")
    })?;
    if answer.status != 200 {
        bail!("{address}{path} responded with {}: {}", answer.status, answer.text().trim_end());
    }
    Ok(0)
}
