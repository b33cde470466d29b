//! The flags of `forebay top` and `forebay tap`.

use clap::builder::PossibleValuesParser;
use clap::{Args, value_parser};
use config::Role;
use ledger::Condition;

use super::{AdminServer, OutputFlags};

/// The points at which events pass, in the order in which an event meets them.
const POINTS: [&str; 5] = ["received", "accepted", "refused", "stored", "dead"];

/// `forebay top`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TopFlags {
    /// The role of the process [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub(crate) role: Option<Role>,
    #[command(flatten)]
    pub(crate) at: AdminServer,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// `forebay tap`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TapFlags {
    /// The role of the process [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub(crate) role: Option<Role>,
    #[command(flatten)]
    pub(crate) server: AdminServer,
    /// The point that events pass; at `received` their steps haven't run [default: accepted; of a writer: stored]
    #[arg(long = "at", value_name = "POINT", value_parser = PossibleValuesParser::new(POINTS))]
    pub(crate) point: Option<String>,
    /// Only events of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) type_name: Option<String>,
    /// Only events of this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Only events that this sink stores or rejects, with --at stored or dead
    #[arg(long)]
    pub(crate) sink: Option<String>,
    /// Only events whose payload meets this condition, as in: status == 500 && path.startsWith("/api")
    #[arg(long = "where", value_name = "CEL")]
    pub(crate) condition: Option<Condition>,
    /// Show at most this many events a second
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u32).range(1..=2_000))]
    pub(crate) rate: u32,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}
