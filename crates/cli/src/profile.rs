//! `forebay profile`: where a running process spends its CPU time, or what allocates memory.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::bail;
use config::Role;
use settings::Environment;

use crate::admin_client::AdminClient;
use crate::flags::{ProfileFlags, ProfileFormat};
use crate::output::print;
use admin_api::paths::{DEBUG_HEAP, DEBUG_PROFILE};

/// The process may be short of CPU: it gets so much longer for its answer than it takes samples.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Asks the process of the flags' role, or else of `role`, and returns the exit code.
///
/// # Errors
/// The process can't be asked, or rejects the request; or the output would be bytes on a terminal.
pub(crate) fn run(flags: &ProfileFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    if flags.format == ProfileFormat::Pprof && io::stdout().is_terminal() {
        bail!("--format pprof writes compressed bytes, which a terminal can't show: redirect them to a file");
    }
    let process = AdminClient::find(&flags.at, flags.role.or(role).unwrap_or(Role::Serve), environment)?;
    let path = if flags.heap { DEBUG_HEAP } else { DEBUG_PROFILE };
    let path = format!("{path}?seconds={}&format={}", flags.seconds, flags.format.as_str());
    let limit = Duration::from_secs(flags.seconds) + ANSWER_MAX;
    let profile = process.fetch("POST", &path, &[], Some(limit))?.map_err(|problem| process.refused(problem))?;
    print(|output| output.write_all(&profile))?;
    Ok(0)
}
