//! The command lines of `forebay doctor` and `forebay report`.

use std::path::PathBuf;

use clap::Args;
use config::Role;
use load::ServerUrl;

use super::path_value::path;
use super::{CaFlag, Common, DATA, Data, OutputFlags, TokenFlag, WRITER_DATA, dead};

/// A configuration, and the process that may run with it.
#[derive(Clone, Debug, Args)]
pub struct Examined {
    /// The role of the process [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub role: Option<Role>,
    /// The configuration file (TOML) [env: FOREBAY_CONFIG]
    #[arg(long, value_name = "FILE", env = "FOREBAY_CONFIG", value_parser = path(), hide_env = true)]
    pub(crate) config: Option<PathBuf>,
    /// The data directory [default: ./forebay-data, of a writer ./forebay-writer] [env: FOREBAY_DATA]
    #[arg(long, value_name = "DIR", env = "FOREBAY_DATA", value_parser = path(), hide_env = true)]
    data: Option<PathBuf>,
    /// A writer's address, as for `forebay gateway` [env: FOREBAY_WRITERS]
    #[arg(long = "writer", value_name = "URL")]
    writers: Vec<String>,
    /// The admin address of the running process [default: as configured]; with TLS a URL, as https://localhost:9000
    #[arg(long, value_name = "ADDR", value_parser = dead::admin)]
    pub(crate) admin: Option<ServerUrl>,
    #[command(flatten)]
    pub(crate) ca: CaFlag,
    #[command(flatten)]
    pub(crate) token: TokenFlag,
}

/// `forebay doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorFlags {
    #[command(flatten)]
    examined: Examined,
    /// Measure fsync with a file in the data directory, and store an object in buckets and containers; both are removed
    #[arg(long)]
    pub write: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// `forebay report`.
#[derive(Clone, Debug, Args)]
pub struct ReportFlags {
    #[command(flatten)]
    examined: Examined,
    /// The file to write, which must not exist; - is the standard output
    #[arg(value_name = "FILE", default_value = "forebay-report.tar.gz", value_parser = path())]
    pub file: PathBuf,
}

impl DoctorFlags {
    /// The configuration and the process.
    #[must_use]
    pub const fn examined(&self) -> &Examined {
        &self.examined
    }

    /// Whether the output is JSON.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.output.is_json()
    }
}

impl ReportFlags {
    /// The configuration and the process.
    #[must_use]
    pub const fn examined(&self) -> &Examined {
        &self.examined
    }
}

impl Examined {
    /// The flags that a process of this role would have.
    #[must_use]
    pub fn common(&self, role: Role) -> Common {
        let Self { config, data, writers, .. } = self.clone();
        let directory = data.unwrap_or_else(|| if role == Role::Writer { WRITER_DATA } else { DATA }.into());
        Common {
            config,
            data: Data { directory },
            listen: None,
            admin: None,
            log_level: None,
            writers,
            role: Some(role),
        }
    }
}
