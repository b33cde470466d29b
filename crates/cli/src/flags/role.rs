//! The role of a process on its command line. A container selects it with a variable instead of a command.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use config::Role;
use settings::Environment;

/// The variable that names a role.
const VARIABLE: &str = "FOREBAY_ROLE";
/// Arguments that clap answers in any role.
const ANSWERED: [&str; 5] = ["-h", "--help", "-V", "--version", "help"];

/// Why no role can be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleError {
    /// The variable names no role.
    #[error("{VARIABLE} is not a role. Set it to gateway, writer or serve, or unset it.")]
    Unknown,
    /// The command is another role than the variable's.
    #[error(
        "{VARIABLE} is `{of_variable}` and the command is `{of_command}`: the role is ambiguous. Start `forebay` without a command, or unset \
        {VARIABLE}."
    )]
    Two {
        /// The role of the variable.
        of_variable: &'static str,
        /// The role of the command.
        of_command: &'static str,
    },
}

/// Parses the value of a flag.
pub(super) fn parser() -> impl TypedValueParser<Value = Role> {
    let value = |role: Role| {
        PossibleValue::new(role.name()).help(match role {
            Role::Serve => "Accepts events and stores them, in one process",
            Role::Gateway => "Accepts events and sends them to writers",
            Role::Writer => "Stores the events that gateways send",
        })
    };
    PossibleValuesParser::new(Role::ALL.map(value)).try_map(|name| Role::of_name(&name).ok_or("no role"))
}

/// The role that the variable names, if it is set.
///
/// # Errors
/// It names no role.
pub fn of_environment(environment: &Environment) -> Result<Option<Role>, RoleError> {
    let Some(text) = environment.get(VARIABLE) else { return Ok(None) };
    text.ok().and_then(|value| Role::of_name(&value.text)).map(Some).ok_or(RoleError::Unknown)
}

/// The role of the environment, or else of the configuration file, and the command line with the role's command. A command wins over the
/// file's role.
///
/// # Errors
/// The environment names no role, or another one than the command.
pub fn select(
    of_environment: Result<Option<Role>, RoleError>,
    of_file: Option<Role>,
    typed: Vec<OsString>,
) -> Result<(Option<Role>, Vec<OsString>), RoleError> {
    let of_environment = of_environment?;
    let line = match (of_environment, of_file) {
        (Some(role), _) => command_line(role, typed)?,
        (None, Some(role)) => command_line(role, typed.clone()).unwrap_or(typed),
        (None, None) => typed,
    };
    Ok((of_environment.or(of_file), line))
}

/// Whether this command line starts a process whose log other programs read: a role, or `drain`.
pub fn runs_on(typed: &[OsString]) -> bool {
    let first = typed.get(1).map(|first| first.to_string_lossy()).unwrap_or_default();
    first.is_empty() || first.starts_with('-') || first == "drain" || Role::of_name(&first).is_some()
}

/// Adds the role's command to a command line that has none. Tools such as `forebay token` run with any value of the variable.
///
/// # Errors
/// The command line has the command of another role.
fn command_line(role: Role, mut arguments: Vec<OsString>) -> Result<Vec<OsString>, RoleError> {
    let first = arguments.get(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(typed) = Role::of_name(&first) {
        let two = RoleError::Two { of_variable: role.name(), of_command: typed.name() };
        return if typed == role { Ok(arguments) } else { Err(two) };
    }
    let is_other = !first.is_empty() && !first.starts_with('-') || ANSWERED.contains(&&*first);
    if !is_other {
        arguments.insert(arguments.len().min(1), role.name().into());
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(role: Role, typed: &str) -> Result<String, RoleError> {
        let arguments = typed.split_whitespace().map(OsString::from).collect();
        let line = command_line(role, arguments)?;
        Ok(line.iter().map(|part| part.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn role_runs_without_a_command() {
        for (typed, becomes) in [
            ("forebay", "forebay gateway"),
            ("forebay --data x", "forebay gateway --data x"),
            ("forebay --writer http://w:1", "forebay gateway --writer http://w:1"),
            ("forebay gateway --data x", "forebay gateway --data x"),
            ("forebay token list", "forebay token list"),
            ("forebay check", "forebay check"),
            ("forebay --help", "forebay --help"),
            ("forebay --version", "forebay --version"),
            ("forebay help writer", "forebay help writer"),
        ] {
            assert_eq!(line(Role::Gateway, typed).as_deref(), Ok(becomes));
        }
        for (role, typed) in [(Role::Gateway, "writer"), (Role::Writer, "serve"), (Role::Serve, "gateway")] {
            let two = RoleError::Two { of_variable: role.name(), of_command: typed };
            assert_eq!(line(role, &format!("forebay {typed} --data x")), Err(two.clone()));
        }
    }

    #[test]
    fn variable_names_one_of_three() {
        let of = |text: &str| of_environment(&[(VARIABLE, text)].into_iter().collect());
        assert_eq!(of(""), Ok(None));
        for role in [Role::Serve, Role::Gateway, Role::Writer] {
            assert_eq!(of(role.name()), Ok(Some(role)));
        }
        for wrong in ["Gateway", "check", "gateway "] {
            assert_eq!(of(wrong), Err(RoleError::Unknown));
        }
    }
}
