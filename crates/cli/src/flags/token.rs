//! What can be typed after `forebay token`.

use std::path::PathBuf;
use std::time::Duration;

use access::{Name, PartialStatus, Scope};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use config::Role;
use config::configuration_file::ConfigurationFile;
use config::token_file::TokenFile;
use event::Origin;
use settings::Environment;

use super::{OutputFlags, Place};

/// No token is good for longer: who wants one for ever leaves the flag out.
const EXPIRES_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Makes a token and prints it, this once
    ///
    /// Only its SHA-256 is stored: a token that is lost can't be shown again, but revoked and replaced.
    #[command(after_help = "Example: forebay token new shop --scope ingest --expires 90d")]
    New(TokenNew),
    /// Prints a table: name, scopes, source and gateway id of each, when it was made, and when it expires
    #[command(after_help = "Example: forebay token list --data /var/lib/forebay")]
    List(TokenList),
    /// Makes a token worthless
    #[command(after_help = "Example: forebay token revoke shop")]
    Revoke(TokenRevoke),
}

/// Which tokens are meant.
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
                anyhow!("the file of tokens isn't known: {reason}. Correct that, or name the file with --file.")
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
    /// What to call it: A-Z, a-z, 0-9, `.`, `_` and `-`, at most 64 bytes
    pub(crate) name: Name,
    /// What it allows: ingest (to post events), read (to read events and metrics), admin (the admin port), deliver (for gateways: a
    /// writer's port); several joined by commas
    #[arg(long, value_name = "SCOPES", required = true, value_delimiter = ',')]
    pub(crate) scope: Vec<Scope>,
    /// For how long it is good, as 90d or 12h; without it, until it is revoked
    #[arg(long, value_name = "TIME", value_parser = expires)]
    pub(crate) expires: Option<Duration>,
    /// The source of the events that are posted with it [default: its name]
    ///
    /// Two tokens with one source share their keys: what one has posted is a duplicate when the other posts it.
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<Name>,
    /// With the scope deliver: the only gateway whose batches it delivers, by the gateway id, which `forebay check` shows
    #[arg(long, value_name = "ID")]
    pub(crate) gateway: Option<Origin>,
    /// Status of partly accepted batches: 200, for senders that resend a batch after a 207, or 207 [default: its types decide]
    ///
    /// The body of the response is the same. A type keeps its rejected events if it has `refused_to`.
    #[arg(long, value_name = "STATUS")]
    pub(crate) partial: Option<PartialStatus>,
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
    /// Its name
    pub(crate) name: Name,
}

fn expires(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let is_sound = !duration.is_zero() && duration <= EXPIRES_MAX;
    is_sound.then_some(duration).ok_or_else(|| "more than 0s, and 100 years at most".to_owned())
}
