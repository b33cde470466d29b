//! The command line of `forebay health`.

use std::path::PathBuf;

use clap::Args;
use config::Role;
use load::ServerUrl;

use super::path_value::path;
use super::{CaFlag, dead};

/// `forebay health`.
#[derive(Clone, Debug, Args)]
pub(crate) struct HealthFlags {
    /// Ask whether it can take events (/readyz), instead of whether it is alive (/healthz)
    #[arg(long)]
    pub(crate) ready: bool,
    /// The role of the server [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub(crate) role: Option<Role>,
    /// The configuration file (TOML) of the server, which names its admin address [env: FOREBAY_CONFIG]
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path(), hide_env = true)]
    pub(crate) config: Option<PathBuf>,
    /// The admin address of the server [default: as configured]; with TLS a URL, as https://localhost:9000
    #[arg(long, value_name = "ADDR", value_parser = dead::admin)]
    pub(crate) admin: Option<ServerUrl>,
    #[command(flatten)]
    pub(crate) ca: CaFlag,
}
