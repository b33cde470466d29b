//! The command line, with what the configuration file says before it is read as a whole: the role, and the default of the data directory.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use config::configuration_file::{self, ConfigurationFile};
use config::{LogFormat, Role};
use settings::Environment;
use text::set_own_flags;

use super::{Cli, WRITER_DATA, old_flags};

/// The id of the flag `--data` of every command but `check`, whose default depends on its flags.
const DATA_ID: &str = "directory";
const CONFIG: &str = "FOREBAY_CONFIG";
/// Commands that need the data directory, and don't read the whole configuration, which would report its mistakes.
const UNCHECKED: [&str; 4] = ["dead", "journal", "route", "token"];

/// The configuration file that a command line or the environment names.
pub struct EarlyFile {
    path: Option<PathBuf>,
    role: Option<Role>,
    data: Result<Option<PathBuf>, String>,
}

impl EarlyFile {
    /// Reads the file, if one is named.
    pub fn of(arguments: &[OsString], environment: &Environment) -> Self {
        let path = named(arguments).or_else(|| std::env::var_os(CONFIG).map(|value| trimmed(&value)));
        let path = path.filter(|path| !path.as_os_str().is_empty());
        let file = path.as_deref().map_or_else(|| Ok(ConfigurationFile::default()), ConfigurationFile::read);
        // A wrong role is reported where the whole file is read.
        let role = file.as_ref().ok().and_then(|file| file.role(environment).ok().flatten());
        Self { role, data: file.and_then(|file| file.data(environment)), path }
    }

    /// The role that the file names.
    pub const fn role(&self) -> Option<Role> {
        self.role
    }

    /// The format of the log that the environment or the file names.
    pub fn log_format(&self, environment: &Environment) -> Option<LogFormat> {
        configuration_file::log_format(self.path.as_deref(), environment)
    }

    /// Parses the command line of a process with this role in its environment or its file.
    ///
    /// # Errors
    /// clap's, and a data directory that only a broken file could name.
    pub fn parse(&self, arguments: Vec<OsString>, role: Option<Role>) -> Result<Cli, clap::Error> {
        let mut command = self.with_defaults(Cli::command(), role);
        let mut matches = command.try_get_matches_from_mut(old_flags::renew(arguments)?)?;
        let (name, leaf) = leaf(&matches);
        if let Err(reason) = &self.data
            && UNCHECKED.contains(&name)
            && source(leaf, DATA_ID) == Some(ValueSource::DefaultValue)
        {
            let text = format!(
                "can't find the data directory: {reason}. Correct the file, or name the directory with --data.\n"
            );
            return Err(clap::Error::raw(clap::error::ErrorKind::ValueValidation, text));
        }
        remember_flags(name, leaf);
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }

    fn with_defaults(&self, command: Command, role: Option<Role>) -> Command {
        match (&self.data, role) {
            (Ok(Some(data)), _) => with_default(command, data.as_os_str(), &|_| true),
            // The commands of roles have their own defaults.
            (_, Some(Role::Writer)) => with_default(command, WRITER_DATA.as_ref(), &|name| UNCHECKED.contains(&name)),
            _ => command,
        }
    }
}

/// Sets the default of `--data` for the chosen commands and all below them.
fn with_default(command: Command, data: &OsStr, is_chosen: &dyn Fn(&str) -> bool) -> Command {
    let of_data = command.get_arguments().find(|argument| argument.get_long() == Some("data"));
    let command = match of_data.map(|argument| argument.get_id().clone()) {
        Some(id) if is_chosen(command.get_name()) => command.mut_arg(id, |flag| flag.default_value(data.to_owned())),
        _ => command,
    };
    command.mut_subcommands(|below| {
        let is_below = is_chosen(below.get_name());
        with_default(below, data, &|name| is_below || is_chosen(name))
    })
}

/// The value of `--config`.
fn named(arguments: &[OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            return arguments.next().map(|value| trimmed(value));
        }
        if let Some(value) = argument.as_bytes().strip_prefix(b"--config=") {
            return Some(trimmed(OsStr::from_bytes(value)));
        }
    }
    None
}

/// As [`super::path_value::path`] parses it.
fn trimmed(value: &OsStr) -> PathBuf {
    let bytes = value.as_bytes();
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    OsStr::from_bytes(&bytes[..end]).into()
}

/// The innermost command, with the name of the outermost.
fn leaf(matches: &ArgMatches) -> (&str, &ArgMatches) {
    let Some((name, mut leaf)) = matches.subcommand() else { return ("", matches) };
    while let Some((_, below)) = leaf.subcommand() {
        leaf = below;
    }
    (name, leaf)
}

fn source(matches: &ArgMatches, id: &str) -> Option<ValueSource> {
    matches.ids().any(|known| known.as_str() == id).then(|| matches.value_source(id)).flatten()
}

/// Commands in messages get the flags that this command got from its command line or the environment.
fn remember_flags(name: &str, leaf: &ArgMatches) {
    let value = |id: &str| {
        source(leaf, id).filter(|source| *source != ValueSource::DefaultValue)?;
        Some(leaf.get_raw(id)?.next()?.to_string_lossy().trim_end().to_owned()).filter(|value| !value.is_empty())
    };
    let path = |id: &str| {
        let path = value(id)?;
        Some(std::path::absolute(Path::new(&path)).map_or(path, |path| path.to_string_lossy().into_owned()))
    };
    set_own_flags(|own| {
        own.config = path("config");
        own.data = path(DATA_ID).or_else(|| path("data"));
        own.admin = value("admin");
        own.ca = path("ca");
        own.token_file = path("token_file");
        own.tokens = path("file").filter(|_| name == "token");
    });
}
