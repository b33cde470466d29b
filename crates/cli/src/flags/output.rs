//! The output format of commands that list something.

use clap::{Args, ValueEnum};

/// The flags of every command that lists or shows something.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputFlags {
    /// Output as text (in a terminal, cut to its width) or json (one JSON object a line)
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
    /// The same as --output json
    #[arg(long, hide = true, conflicts_with = "output")]
    json: bool,
}

impl OutputFlags {
    /// Whether the output is JSON.
    pub(crate) const fn is_json(self) -> bool {
        self.json || matches!(self.output, OutputFormat::Json)
    }
}

/// The values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    Text,
    Json,
}
