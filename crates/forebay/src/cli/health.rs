//! The command line of `forebay health`.

use std::path::PathBuf;

use clap::Args;
use load::Target;

use super::{CaFlag, Common, DATA, Data, WRITER_DATA, dead};
use crate::role::Role;

/// `forebay health`.
#[derive(Clone, Debug, Args)]
pub(crate) struct HealthFlags {
    /// Ask whether it can take events (/readyz), instead of whether it is alive (/healthz)
    #[arg(long)]
    pub(crate) ready: bool,
    /// The role of the server [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<Role>,
    /// The configuration file (TOML) of the server, which names its admin address [env: FOREBAY_CONFIG]
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", hide_env = true)]
    config: Option<PathBuf>,
    /// The data directory of the server [default: ./forebay-data, of a writer ./forebay-writer] [env: FOREBAY_DATA]
    #[arg(long, value_name = "DIR", env = "FOREBAY_DATA", hide_env = true)]
    data: Option<PathBuf>,
    /// The admin address of the server [default: as configured]; with TLS a URL, as https://localhost:9000
    #[arg(long, value_name = "ADDR", value_parser = dead::admin)]
    pub(crate) admin: Option<Target>,
    #[command(flatten)]
    pub(crate) ca: CaFlag,
}

impl HealthFlags {
    /// The flags with which a server of this role loads its configuration.
    pub(crate) fn to_common(&self, role: Role) -> Common {
        let default = if role == Role::Writer { WRITER_DATA } else { DATA };
        let directory = self.data.clone().unwrap_or_else(|| default.into());
        let config = self.config.clone();
        Common {
            config,
            data: Data { directory },
            listen: None,
            admin: None,
            log_level: None,
            writers: vec![],
            role: Some(role),
        }
    }
}
