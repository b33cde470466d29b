//! Shows the errors of a configuration.

use std::io::{self, IsTerminal};

use config::{ConfigError, LogLevel};
use settings::Diagnostics;

use crate::log;

/// Shows the warnings of a configuration, or its errors: then there is none.
pub(crate) fn shown<T>(loaded: Result<(T, Diagnostics), ConfigError>) -> Option<T> {
    match loaded {
        Ok((configuration, warnings)) => {
            if !warnings.is_empty() {
                show(LogLevel::Warning, &ConfigError::Invalid(warnings));
            }
            Some(configuration)
        }
        Err(error) => {
            show(LogLevel::Error, &error);
            None
        }
    }
}

/// Shows the errors of a configuration: then there is none. Its warnings aren't shown.
pub(crate) fn valid<T>(loaded: Result<(T, Diagnostics), ConfigError>) -> Option<T> {
    loaded.map_err(|error| show(LogLevel::Error, &error)).ok().map(|(configuration, _)| configuration)
}

/// Whether to use colours on a stream: on a terminal, unless the operator doesn't want them.
pub(crate) fn is_coloured(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes errors and warnings to stderr, with colours if that is a terminal.
pub(crate) fn show(level: LogLevel, error: &ConfigError) {
    let coloured = is_coloured(&io::stderr()) && !log::is_json();
    let text = match error {
        ConfigError::Invalid(report) => report.render(coloured),
        ConfigError::Unreadable { .. } | ConfigError::Tokens(_) => format!("error: {error}\n"),
    };
    log::text(level, &text);
}
