//! The flags of `forebay log`.

use clap::Args;
use config::Role;

use super::{AdminServer, OutputFlags};

/// `forebay log`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LogFlags {
    /// Another level for some time: debug, info, warning or error
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<String>,
    /// How long, up to 24h [default: 10m]
    #[arg(long = "for", value_name = "DURATION", requires = "level")]
    pub(crate) duration: Option<String>,
    /// The role of the process [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub(crate) role: Option<Role>,
    #[command(flatten)]
    pub(crate) at: AdminServer,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}
