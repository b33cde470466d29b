//! Shows what is wrong with a configuration.

use std::io::{self, IsTerminal};

use config::LoadError;
use settings::Diagnostics;

use crate::log;

/// The exit code of a process whose configuration has errors.
pub(crate) const EXIT_CONFIGURATION: u8 = 2;

/// Shows the warnings of a configuration, or its errors: then there is none.
pub(crate) fn shown<T>(loaded: Result<(T, Diagnostics), LoadError>) -> Option<T> {
    match loaded {
        Ok((configuration, warnings)) => {
            if !warnings.is_empty() {
                show(&LoadError::Invalid(warnings));
            }
            Some(configuration)
        }
        Err(error) => {
            show(&error);
            None
        }
    }
}

/// Writes errors and warnings to stderr, with colours if that is a terminal.
pub(crate) fn show(error: &LoadError) {
    let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    log::text(match error {
        LoadError::Invalid(report) => report.render(coloured),
        LoadError::Unreadable { .. } | LoadError::Tokens(_) => format!("error: {error}\n"),
    });
}
