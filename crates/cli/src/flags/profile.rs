//! The flags of `forebay profile`.

use clap::{Args, ValueEnum};
use config::Role;

use super::AdminServer;

/// `forebay profile`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProfileFlags {
    /// How long the process takes samples, in seconds from 1 to 60
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=60), default_value_t = 10)]
    pub(crate) seconds: u64,
    /// The output: svg (a flame graph for a browser), pprof (for `go tool pprof`) or folded (a line for each stack)
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ProfileFormat::Svg)]
    pub(crate) format: ProfileFormat,
    /// Show what allocates memory instead of what uses CPU time
    #[arg(long)]
    pub(crate) heap: bool,
    /// The role of the process [default: serve] [env: FOREBAY_ROLE]
    #[arg(long, value_name = "ROLE", value_parser = super::role::parser())]
    pub(crate) role: Option<Role>,
    #[command(flatten)]
    pub(crate) at: AdminServer,
}

/// The values of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileFormat {
    Svg,
    Pprof,
    Folded,
}

impl ProfileFormat {
    /// The name in a request.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pprof => "pprof",
            Self::Folded => "folded",
        }
    }
}
