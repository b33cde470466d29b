//! The command line of `forebay drain`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use config::Role;

use super::path_value::path;
use super::{Common, Data};

/// `forebay drain`.
#[derive(Clone, Debug, Args)]
pub struct DrainFlags {
    /// The configuration of the removed server (TOML)
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path())]
    config: Option<PathBuf>,
    #[command(flatten)]
    data: Data,
    /// A writer's address, as for `forebay gateway` [env: FOREBAY_WRITERS]
    #[arg(long = "writer", value_name = "URL")]
    writers: Vec<String>,
    /// The lowest level of messages on stderr: info, warning or error [default: info] [env: FOREBAY_LOG_LEVEL]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Stop after this time without progress: longer than 0
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = timeout)]
    pub timeout: Duration,
    /// Write the dead letters with their payloads to this file, one JSON object a line; - is the standard output. The file must not exist, and must not
    /// be in the data directory
    #[arg(long, value_name = "FILE")]
    pub dead_letters: Option<PathBuf>,
}

impl DrainFlags {
    /// The flags that a server of this role loads its configuration with.
    pub fn common(&self, role: Option<Role>) -> Common {
        let Self { config, data, writers, log_level, .. } = self.clone();
        Common { config, data, listen: None, admin: None, log_level, writers, role }
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = text::duration::parse(text)?;
    if timeout.is_zero() { Err("the time must be longer than 0".to_owned()) } else { Ok(timeout) }
}
