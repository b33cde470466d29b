//! The command line of `forebay example`.

use std::path::PathBuf;

use clap::Args;

/// `forebay example`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExampleFlags {
    /// The example to write; without it, the command lists all
    pub(crate) name: Option<String>,
    /// The folder to write to; the command creates it if it doesn't exist [default: the example's name]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
