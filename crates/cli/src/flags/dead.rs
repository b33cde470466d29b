//! The command line of `forebay dead`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use dead_letters::ChosenIds;
use event::EventId;
use ledger::Condition;
use load::ServerUrl;
use text::rfc3339;

use super::path_value::path;
use super::{CaFlag, Data, OutputFlags, TokenFlag};

/// The commands for dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadCommand {
    /// Lists dead letters: received, sink, type, id, reason
    #[command(after_help = "Example: forebay dead list --sink local --since 2026-11-21T00:00:00Z")]
    List(DeadList),
    /// Shows envelope, reason and payload of an event
    #[command(after_help = "Example: forebay dead show 2651fa94-4d60-8482-855f-ec6e00000007")]
    Show {
        #[command(flatten)]
        event: DeadEvent,
        #[command(flatten)]
        output: OutputFlags,
    },
    /// Sends dead letters to their sinks again, under the same ids
    ///
    /// Events that the sink stores are then counted as stored instead of dead. Events that it rejects again stay dead letters, with the newer
    /// reason. Exits with 0 if all were stored, and with 1 if some stay.
    #[command(after_help = "Example: forebay dead replay --sink local --type access")]
    Replay(DeadLetters),
    /// Replaces a dead letter's payload; a replay then sends it
    ///
    /// The id stays the same. Without --payload, the editor that VISUAL or EDITOR names opens the payload. If you don't change it, nothing is
    /// saved.
    #[command(after_help = "Example: forebay dead edit 2651fa94-4d60-8482-855f-ec6e00000007 --payload corrected.json")]
    Edit {
        #[command(flatten)]
        event: DeadEvent,
        /// A file with the new payload; - reads the standard input
        #[arg(long, value_name = "FILE")]
        payload: Option<PathBuf>,
    },
    /// Discards dead letters permanently; they stay counted as dead
    #[command(after_help = "Example: forebay dead drop --id 2651fa94-4d60-8482-855f-ec6e00000007")]
    Drop {
        #[command(flatten)]
        letters: DeadLetters,
        /// Drops all dead letters, if no filter is given
        #[arg(long)]
        all: bool,
    },
}

/// Where dead letters are.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadAt {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The configuration file (TOML) of the running server; the command reads the admin address from it
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path())]
    pub(crate) config: Option<PathBuf>,
    /// The admin address of the running server [default: as configured, or 127.0.0.1:9000]; with TLS a URL, as https://localhost:9000
    #[arg(long, value_name = "ADDR", value_parser = admin)]
    pub(crate) admin: Option<ServerUrl>,
    #[command(flatten)]
    pub(crate) ca: CaFlag,
    #[command(flatten)]
    pub(crate) token: TokenFlag,
}

/// Which dead letters; without a filter, all.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DeadChoice {
    /// Only those that this sink rejected
    #[arg(long)]
    pub(crate) sink: Option<String>,
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) type_name: Option<String>,
    /// Only those with these ids, separated by commas
    #[arg(long = "id", value_name = "IDS")]
    pub(crate) ids: Option<ChosenIds>,
    /// Only those received at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = rfc3339::parse)]
    pub(crate) since: Option<i64>,
    /// Only those received before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = rfc3339::parse)]
    pub(crate) until: Option<i64>,
    /// Only those whose reason contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Only those whose payload meets this condition, as in: status == 500 && path.startsWith("/api")
    #[arg(long = "where", value_name = "CEL")]
    pub(crate) condition: Option<Condition>,
}

/// `forebay dead list`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadList {
    #[command(flatten)]
    pub(crate) at: DeadAt,
    #[command(flatten)]
    pub(crate) choice: DeadChoice,
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) limit: u64,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// The dead letters of one event.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadEvent {
    #[command(flatten)]
    pub(crate) at: DeadAt,
    /// The event's id
    pub(crate) id: EventId,
    /// Only the dead letter of this sink
    #[arg(long)]
    pub(crate) sink: Option<String>,
}

/// The dead letters of a replay or a drop.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadLetters {
    #[command(flatten)]
    pub(crate) at: DeadAt,
    #[command(flatten)]
    pub(crate) choice: DeadChoice,
    /// At most this many of each sink
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only show how many dead letters match
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// An address in the form of the server's `--admin`, or a URL.
pub(super) fn admin(text: &str) -> Result<ServerUrl, <ServerUrl as FromStr>::Err> {
    match text.parse::<SocketAddr>() {
        Ok(address) => format!("http://{address}").parse(),
        Err(_) => text.parse(),
    }
}
