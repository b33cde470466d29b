//! The command line of `forebay check`.

use std::path::PathBuf;

use clap::Args;
use config::Role;

use super::path_value::path;
use super::{Common, DATA, Data, WRITER_DATA};

/// `forebay check`.
#[derive(Clone, Debug, Args)]
pub struct CheckFlags {
    /// The role that the configuration is for [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub role: Option<Role>,
    /// The configuration file (TOML) [env: FOREBAY_CONFIG]
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path(), hide_env = true)]
    config: Option<PathBuf>,
    /// The data directory [default: ./forebay-data, of a writer ./forebay-writer] [env: FOREBAY_DATA]
    #[arg(long, value_name = "DIR", env = "FOREBAY_DATA", value_parser = path(), hide_env = true)]
    data: Option<PathBuf>,
    /// The listening address, as for the command of the role
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The admin address, as for the command of the role
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// The level of messages, as for the command of the role
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// A writer's address, as for `forebay gateway` [env: FOREBAY_WRITERS]
    #[arg(long = "writer", value_name = "URL")]
    writers: Vec<String>,
}

impl CheckFlags {
    /// The flags that a process of this role would have.
    pub fn into_common(self, role: Role) -> Common {
        let Self { config, data, listen, admin, log_level, writers, .. } = self;
        let directory = data.unwrap_or_else(|| if role == Role::Writer { WRITER_DATA } else { DATA }.into());
        Common { config, data: Data { directory }, listen, admin, log_level, writers, role: Some(role) }
    }
}
