//! The role of a process: everything in one, or one of two services. A container selects it with a variable instead of a command.

use std::ffi::OsString;

use clap::ValueEnum;

use settings::Environment;

/// The variable that names a role.
pub(crate) const VARIABLE: &str = "FOREBAY_ROLE";
/// Arguments that clap answers itself, in any role.
const ANSWERED: [&str; 5] = ["-h", "--help", "-V", "--version", "help"];

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Takes events and stores them, in one process.
    Serve,
    /// Takes events and hands them to writers.
    Gateway,
    /// Stores what gateways hand to it.
    Writer,
}

/// Why no role can be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RoleError {
    /// The variable names no role.
    #[error("{VARIABLE} names no role. Set it to gateway, writer or serve, or unset it.")]
    Unknown,
    /// The command is another role than the variable's.
    #[error(
        "{VARIABLE} is `{of_variable}` and the command is `{of_command}`: it is not clear which role to run. Start `forebay` without a \
         command, or unset {VARIABLE}."
    )]
    Two {
        /// The role of the variable.
        of_variable: &'static str,
        /// The role of the command.
        of_command: &'static str,
    },
}

impl Role {
    /// The role that the variable names, if it is set.
    ///
    /// # Errors
    /// It names no role.
    pub(crate) fn of_environment(environment: &Environment) -> Result<Option<Self>, RoleError> {
        let Some(text) = environment.get(VARIABLE) else { return Ok(None) };
        text.ok().and_then(|value| Self::of_name(&value.text)).map(Some).ok_or(RoleError::Unknown)
    }

    /// Adds the role's command to a command line that has none. Tools such as `forebay token` run with any value of the variable.
    ///
    /// # Errors
    /// The command line has the command of another role.
    pub(crate) fn into_command_line(self, mut arguments: Vec<OsString>) -> Result<Vec<OsString>, RoleError> {
        let first = arguments.get(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(typed) = Self::of_name(&first) {
            let two = RoleError::Two { of_variable: self.name(), of_command: typed.name() };
            return if typed == self { Ok(arguments) } else { Err(two) };
        }
        let is_other = !first.is_empty() && !first.starts_with('-') || ANSWERED.contains(&&*first);
        if !is_other {
            arguments.insert(arguments.len().min(1), self.name().into());
        }
        Ok(arguments)
    }

    fn of_name(text: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|role| role.name() == text)
    }

    /// The role's name, which is its command.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Gateway => "gateway",
            Self::Writer => "writer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(role: Role, typed: &str) -> Result<String, RoleError> {
        let arguments = typed.split_whitespace().map(OsString::from).collect();
        let line = role.into_command_line(arguments)?;
        Ok(line.iter().map(|part| part.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_role_is_run_where_no_command_is_typed() {
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
    fn the_variable_names_one_of_three() {
        let of = |text: &str| Role::of_environment(&[(VARIABLE, text)].into_iter().collect());
        assert_eq!(of(""), Ok(None));
        for role in [Role::Serve, Role::Gateway, Role::Writer] {
            assert_eq!(of(role.name()), Ok(Some(role)));
        }
        for wrong in ["Gateway", "check", "gateway "] {
            assert_eq!(of(wrong), Err(RoleError::Unknown));
        }
    }
}
