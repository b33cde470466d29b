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
    /// The configuration of the server that is gone (TOML)
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path())]
    config: Option<PathBuf>,
    #[command(flatten)]
    data: Data,
    /// As of `forebay gateway` [env: FOREBAY_WRITERS]
    #[arg(long = "writer", value_name = "URL")]
    writers: Vec<String>,
    /// What is said on stderr: info, warning or error [default: info] [env: FOREBAY_LOG_LEVEL]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Give up after this time without progress: longer than 0
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = timeout)]
    pub timeout: Duration,
    /// Write the dead letters with their payloads to this file, one JSON object a line; it must not exist, nor lie in the data directory; - is the
    /// standard output
    #[arg(long, value_name = "FILE")]
    pub dead_letters: Option<PathBuf>,
}

impl DrainFlags {
    /// The flags with which a server of this role loads its configuration.
    pub fn common(&self, role: Option<Role>) -> Common {
        let Self { config, data, writers, log_level, .. } = self.clone();
        Common { config, data, listen: None, admin: None, log_level, writers, role }
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = text::duration::parse(text)?;
    if timeout.is_zero() { Err("wanted a time longer than 0".to_owned()) } else { Ok(timeout) }
}
