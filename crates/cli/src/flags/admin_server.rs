//! The flags of commands that ask a running server over its admin port, and need nothing of its data directory.

use std::path::PathBuf;

use clap::Args;
use config::Role;
use load::ServerUrl;

use super::path_value::path;
use super::{CaFlag, OutputFlags, TokenFlag, dead};

/// The address of a server, and the credentials for it.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdminServer {
    #[command(flatten)]
    pub(crate) address: AdminAddress,
    #[command(flatten)]
    pub(crate) token: TokenFlag,
}

/// The address of a server.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdminAddress {
    /// The configuration file (TOML) of the server; the command reads only the admin address from it [env: FOREBAY_CONFIG]
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path(), hide_env = true)]
    pub(crate) config: Option<PathBuf>,
    /// The admin address of the server [default: as configured]; with TLS a URL, as https://localhost:9000
    #[arg(long, value_name = "ADDR", value_parser = dead::admin)]
    pub(crate) admin: Option<ServerUrl>,
    #[command(flatten)]
    pub(crate) ca: CaFlag,
}

/// `forebay reload`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReloadFlags {
    #[command(flatten)]
    pub(crate) at: AdminServer,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// `forebay status`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StatusFlags {
    /// The role of the process [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub(crate) role: Option<Role>,
    #[command(flatten)]
    pub(crate) at: AdminServer,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}
