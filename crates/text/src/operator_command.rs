//! Commands in messages, for an operator to copy. Each has the flags that it needs to reach this process's server.
//!
//! The answers to requests without a valid token don't contain such a command: its flags show paths of the server.

use std::fmt;
use std::sync::{PoisonError, RwLock};

/// The flags of this process that aren't defaults. Paths are absolute, because the operator's shell may have another working
/// directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFlags {
    /// `--config`.
    pub config: Option<String>,
    /// `--data`.
    pub data: Option<String>,
    /// `--admin`, unless the configuration file has this address.
    pub admin: Option<String>,
    /// `--ca`.
    pub ca: Option<String>,
    /// `--token-file`.
    pub token_file: Option<String>,
    /// `--file` of `forebay token`.
    pub tokens: Option<String>,
}

static OWN: RwLock<OwnFlags> =
    RwLock::new(OwnFlags { config: None, data: None, admin: None, ca: None, token_file: None, tokens: None });

/// Changes the flags that commands get from now on.
pub fn set_own_flags(change: impl FnOnce(&mut OwnFlags)) {
    change(&mut OWN.write().unwrap_or_else(PoisonError::into_inner));
}

/// A command that a message names. Its text is in backticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorCommand<'a> {
    /// Lists dead letters of a sink, or those of one type.
    DeadList(&'a str, Option<&'a str>),
    /// Shows a dead letter of a sink.
    DeadShow(&'a str),
    /// Replays the dead letters of a sink, or those of one type.
    DeadReplay(&'a str, Option<&'a str>),
    /// Drops the dead letters of a sink.
    DeadDrop(&'a str),
    /// Lists the routes.
    RouteList,
    /// Discards the backlog of a sink.
    RouteDrop(&'a str),
    /// Resumes the stopped lanes of a sink.
    RouteAccept(&'a str),
    /// Checks the data directory.
    JournalVerify,
    /// Moves damaged parts aside.
    JournalRepair,
    /// Accepts lost events.
    JournalAcceptLoss,
    /// Creates a token with this scope.
    TokenNew(&'a str),
    /// Creates a token with this scope in this file of tokens.
    TokenNewAt(&'a str, &'a str),
    /// Creates a token for the batches of the gateway with this id.
    TokenNewOf(&'a str),
    /// Lists the tokens.
    TokenList,
    /// Runs the role of this name.
    Run(&'a str),
}

/// The flags that a command accepts.
#[derive(Clone, Copy)]
enum Accepts {
    /// Of a running server, or of its data directory.
    Server,
    /// Of a data directory.
    Directory,
    /// Of the tokens of a data directory.
    Tokens,
    Nothing,
}

impl OperatorCommand<'_> {
    /// The command with these flags, without backticks.
    #[must_use]
    pub fn with(&self, own: &OwnFlags) -> String {
        let OwnFlags { config, data, admin, ca, token_file, tokens } = own;
        let of_directory = [("--config", config), ("--data", data)];
        let further = match self.accepts() {
            Accepts::Server => vec![("--admin", admin), ("--ca", ca), ("--token-file", token_file)],
            Accepts::Directory => Vec::new(),
            Accepts::Tokens => vec![("--file", tokens)],
            Accepts::Nothing => return format!("forebay {}", self.words()),
        };
        let set = of_directory.into_iter().chain(further).filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
        let flags: String = set.map(|(flag, value)| format!(" {flag} {}", quoted(value))).collect();
        format!("forebay {}{flags}", self.words())
    }

    fn words(&self) -> String {
        let of_type = |name: Option<&str>| name.map_or_else(String::new, |name| format!(" --type {}", quoted(name)));
        match *self {
            Self::DeadList(sink, name) => format!("dead list --sink {}{}", quoted(sink), of_type(name)),
            Self::DeadShow(sink) => format!("dead show ID --sink {}", quoted(sink)),
            Self::DeadReplay(sink, name) => format!("dead replay --sink {}{}", quoted(sink), of_type(name)),
            Self::DeadDrop(sink) => format!("dead drop --sink {}", quoted(sink)),
            Self::RouteList => "route list".to_owned(),
            Self::RouteDrop(sink) => format!("route drop {}", quoted(sink)),
            Self::RouteAccept(sink) => format!("route accept {}", quoted(sink)),
            Self::JournalVerify => "journal verify".to_owned(),
            Self::JournalRepair => "journal repair".to_owned(),
            Self::JournalAcceptLoss => "journal accept-loss".to_owned(),
            Self::TokenNew(scope) => format!("token new NAME --scope {scope}"),
            Self::TokenNewAt(scope, file) => format!("token new NAME --scope {scope} --file {}", quoted(file)),
            Self::TokenNewOf(gateway) => format!("token new NAME --scope deliver --gateway {gateway}"),
            Self::TokenList => "token list".to_owned(),
            Self::Run(role) => role.to_owned(),
        }
    }

    const fn accepts(&self) -> Accepts {
        match self {
            Self::DeadList(..)
            | Self::DeadShow(_)
            | Self::DeadReplay(..)
            | Self::DeadDrop(_)
            | Self::RouteList
            | Self::RouteDrop(_)
            | Self::RouteAccept(_) => Accepts::Server,
            Self::JournalVerify | Self::JournalRepair | Self::JournalAcceptLoss | Self::Run(_) => Accepts::Directory,
            Self::TokenNewAt(..) => Accepts::Nothing,
            Self::TokenNew(_) | Self::TokenNewOf(_) | Self::TokenList => Accepts::Tokens,
        }
    }
}

impl fmt::Display for OperatorCommand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.with(&OWN.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// One word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_has_the_flags_that_it_accepts() {
        let all = |text: &str| Some(text.to_owned());
        let own = OwnFlags {
            config: all("/etc/forebay.toml"),
            data: all("/var/my data"),
            admin: all("http://[::1]:9100"),
            ca: all("/etc/ca.pem"),
            token_file: all("/run/token"),
            tokens: all("/etc/tokens.json"),
        };
        let of_directory = "--config /etc/forebay.toml --data '/var/my data'";
        for (command, expected) in [
            (
                OperatorCommand::DeadList("local", Some("a.b")),
                format!(
                    "dead list --sink local --type a.b {of_directory} --admin 'http://[::1]:9100' --ca /etc/ca.pem --token-file /run/token"
                ),
            ),
            (OperatorCommand::JournalVerify, format!("journal verify {of_directory}")),
            (
                OperatorCommand::TokenNew("admin"),
                format!("token new NAME --scope admin {of_directory} --file /etc/tokens.json"),
            ),
            (OperatorCommand::Run("gateway"), format!("gateway {of_directory}")),
        ] {
            assert_eq!(command.with(&own), format!("forebay {expected}"));
        }
        assert_eq!(OperatorCommand::RouteDrop("a").with(&OwnFlags::default()), "forebay route drop a");
    }

    #[test]
    fn every_word_is_one_for_the_shell() {
        for (word, expected) in
            [("a-b.c", "a-b.c"), ("", "''"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("$x", "'$x'"), ("*", "'*'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
