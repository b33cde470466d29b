//! The flags of `forebay bench`.

use clap::Args;
use load::bench::BenchOptions;

use super::SendFlags;

/// Flags of `forebay bench`.
#[derive(Clone, Debug, Args)]
pub(crate) struct BenchFlags {
    #[command(flatten)]
    pub(crate) to: SendFlags,
    #[command(flatten)]
    pub(crate) options: BenchOptions,
}
