//! The command line of `forebay config`.

use clap::{Args, Subcommand};

/// The commands about the configuration file.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Lists settings with type, bounds, default, and when a change takes effect
    ///
    /// Names of your file match too: `types.access` shows the settings of every type. Exits with 1 if no setting has the prefix.
    #[command(after_help = "Example: forebay config keys gateway\n         forebay config keys types.access.time")]
    Keys(ConfigKeys),
    /// Prints the JSON Schema of the configuration file, for editors
    #[command(after_help = "Example: forebay config schema > forebay.schema.json")]
    Schema,
}

/// `forebay config keys`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigKeys {
    /// Only the settings whose path begins with this, as `gateway.ack`
    pub(crate) prefix: Option<String>,
}
