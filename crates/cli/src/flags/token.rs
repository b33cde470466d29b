//! The command line of `forebay token`.

use std::path::PathBuf;
use std::time::Duration;

use access::{Name, PartialStatus, Scope, TypePattern};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use config::Role;
use config::configuration_file::ConfigurationFile;
use config::token_file::TokenFile;
use event::Origin;
use settings::Environment;

use super::{OutputFlags, Place};

/// The longest life of a token; without the flag it doesn't expire.
const EXPIRES_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The commands for tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Creates a token and prints it once
    ///
    /// Only its SHA-256 is stored: a lost token can't be shown again. Revoke it and create another.
    #[command(after_help = "Example: forebay token new shop --scope ingest --expires 90d")]
    New(TokenNew),
    /// Lists tokens: name, scopes, source, gateway id, creation, expiry
    #[command(after_help = "Example: forebay token list --data /var/lib/forebay")]
    List(TokenList),
    /// Revokes a token
    #[command(after_help = "Example: forebay token revoke shop")]
    Revoke(TokenRevoke),
}

/// The file of tokens that a command works on.
#[derive(Clone, Debug, Args)]
pub(crate) struct TokenPlace {
    #[command(flatten)]
    place: Place,
    /// The file of tokens [default: `token_file` of the configuration, or tokens.json of the data directory]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl TokenPlace {
    /// The file that has them, for a server of this role.
    ///
    /// # Errors
    /// The configuration file can't be read.
    pub(crate) fn file(&self, role: Role, environment: &Environment) -> anyhow::Result<TokenFile> {
        if let Some(file) = &self.file {
            return Ok(TokenFile::at(file));
        }
        let named = self.place.config.as_deref().map(ConfigurationFile::read).transpose();
        let named =
            named.and_then(|file| file.unwrap_or_default().token_file(role, environment)).map_err(|reason| {
                anyhow!("can't find the file of tokens: {reason}. Correct the configuration, or name the file of tokens with --file.")
            })?;
        Ok(named.map_or_else(|| TokenFile::within(self.place.directory()), |path| TokenFile::at(&path)))
    }
}

/// `forebay token list`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TokenList {
    #[command(flatten)]
    pub(crate) place: TokenPlace,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// `forebay token new`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TokenNew {
    #[command(flatten)]
    pub(crate) place: TokenPlace,
    /// The token's name: A-Z, a-z, 0-9, `.`, `_` and `-`, at most 64 bytes
    pub(crate) name: Name,
    /// The scopes, joined by commas: ingest (post events), read (read events, metrics and state), admin (the admin port), deliver (for gateways: a
    /// writer's port)
    #[arg(long, value_name = "SCOPES", required = true, value_delimiter = ',')]
    pub(crate) scope: Vec<Scope>,
    /// How long the token is valid, as 90d or 12h [default: until you revoke it]
    #[arg(long, value_name = "TIME", value_parser = expires)]
    pub(crate) expires: Option<Duration>,
    /// The source of the events posted with the token [default: the token's name]
    ///
    /// Two tokens with one source share their keys: an event that one has posted is a duplicate if the other posts it.
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<Name>,
    /// With the scope deliver: only the gateway with this id can use the token; `forebay check` shows gateway ids
    #[arg(long, value_name = "ID")]
    pub(crate) gateway: Option<Origin>,
    /// Status of partly accepted batches: 200, for senders that resend a batch after a 207, or 207 [default: its types decide]
    ///
    /// The body of the response is the same. A type keeps its rejected events if it has `refused_to`.
    #[arg(long, value_name = "STATUS")]
    pub(crate) partial: Option<PartialStatus>,
    /// With the scope ingest: only events of these types can be posted, as orders,segment.* [default: all types]
    ///
    /// `segment.*` has all names that begin with `segment.`. Reading events back is not limited.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) types: Vec<TypePattern>,
    /// Keep the token itself in this file instead of printing it
    ///
    /// The command reads the file, or creates it with a new token. It can be repeated: if the token of this name is the one in the file, and
    /// has these scopes, nothing changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret: Option<PathBuf>,
}

/// `forebay token revoke`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TokenRevoke {
    #[command(flatten)]
    pub(crate) place: TokenPlace,
    /// The token's name
    pub(crate) name: Name,
}

fn expires(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let is_sound = !duration.is_zero() && duration <= EXPIRES_MAX;
    is_sound.then_some(duration).ok_or_else(|| "the time must be longer than 0s, and at most 100 years".to_owned())
}
