//! The command line of `forebay health`.

use clap::Args;
use config::Role;

use super::AdminAddress;

/// `forebay health`.
#[derive(Clone, Debug, Args)]
pub(crate) struct HealthFlags {
    /// Check whether the server can accept events (/readyz), instead of whether it is alive (/healthz)
    #[arg(long)]
    pub(crate) ready: bool,
    /// The role of the server [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub(crate) role: Option<Role>,
    #[command(flatten)]
    pub(crate) at: AdminAddress,
}
