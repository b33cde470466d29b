//! `forebay check`: reads the configuration as `serve` would, and says what is wrong with it.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::thread;

use crate::cli::Common;
use crate::config::{self, Environment, LoadError};
use crate::log;
use crate::memory::Plan;
use crate::output::Output;

/// What the process exits with when the configuration is wrong.
pub(crate) const EXIT_CONFIGURATION: u8 = 2;

/// Checks the configuration: what is right goes to the standard output, what is wrong to the error output.
/// Gives the process's exit code.
///
/// # Errors
/// The output can't be written.
pub(crate) fn run(common: &Common, environment: &Environment) -> io::Result<u8> {
    common.warn_of_overlooked();
    match config::load(common.config.as_deref(), environment, &common.flags(), &common.data.directory) {
        Ok((configuration, warnings)) => {
            if !warnings.is_empty() {
                show(&LoadError::Wrong(warnings));
            }
            let shards = configuration.gateway.shards_for(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
            if let Some(warning) = Plan::of(&configuration, shards.get().into()).warning() {
                writeln!(io::stderr(), "warning: {warning}")?;
            }
            write!(Output::lock(), "ok\n{configuration}")?;
            Ok(0)
        }
        Err(error) => {
            show(&error);
            Ok(EXIT_CONFIGURATION)
        }
    }
}

/// Writes what is wrong to the error output, with colours if that is a terminal.
pub(crate) fn show(error: &LoadError) {
    let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    log::text(match error {
        LoadError::Wrong(report) => report.render(coloured),
        LoadError::Unreadable { .. } | LoadError::Tokens(_) => format!("error: {error}\n"),
    });
}
