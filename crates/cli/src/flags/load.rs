//! The flags of `forebay load`.

use clap::Args;
use load::loader::LoadOptions;

use super::SendFlags;

/// Flags of `forebay load`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoadFlags {
    #[command(flatten)]
    pub(crate) options: LoadOptions,
    #[command(flatten)]
    pub(crate) to: SendFlags,
}
