//! `forebay check`: reads the configuration as a role would, and reports its errors.

use std::fmt::Display;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use config::Role;
use journal::disk::ReadOnlyDisk;
use settings::Environment;

use crate::configuration_report::shown;
use crate::memory_plan::{Plan, WriterPlan};
use cli::EXIT_CONFIGURATION;
use cli::output::Output;
use cli::{CheckFlags, Common};

/// Checks the configuration of the role that the flags name, or else `role`: a valid one is printed to the standard output, errors to
/// the error output. Gives the process's exit code.
///
/// # Errors
/// The output can't be written.
pub(crate) fn run(flags: CheckFlags, role: Option<Role>, environment: &Environment) -> io::Result<u8> {
    let role = flags.role.or(role).unwrap_or(Role::Serve);
    let common = flags.into_common(role);
    common.warn_of_overlooked();
    if role == Role::Writer {
        return conclude(shown(common.load_writer(environment)), |configuration| {
            warn_of_memory(WriterPlan::of(configuration).warning())?;
            Ok(String::new())
        });
    }
    conclude(shown(common.load(environment)), |configuration| {
        let shards = configuration.gateway.shards_for(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
        warn_of_memory(Plan::of(configuration, shards.get().into()).warning())?;
        Ok(gateway_id(&common))
    })
}

/// Shows a valid configuration, with additional facts.
fn conclude<T: Display>(loaded: Option<T>, add: impl FnOnce(&T) -> io::Result<String>) -> io::Result<u8> {
    let Some(configuration) = loaded else { return Ok(EXIT_CONFIGURATION) };
    let added = add(&configuration)?;
    write!(Output::lock(), "ok\n{configuration}{added}")?;
    Ok(0)
}

fn warn_of_memory(warning: Option<String>) -> io::Result<()> {
    warning.map_or(Ok(()), |warning| writeln!(io::stderr(), "warning: {warning}"))
}

/// The id of the gateway, which is the origin of its data directory, if it has started once.
fn gateway_id(common: &Common) -> String {
    let path: &Path = common.directory();
    // A directory that can't be read is a matter of the start.
    let origin = journal::origin_of(Arc::new(ReadOnlyDisk), path).ok().flatten();
    origin.map_or_else(String::new, |origin| format!("gateway id {origin}, of {}\n", path.display()))
}
