//! What can be typed after `forebay schema`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What can be done with schemas.
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Prints a schema that takes all records of a file: NDJSON, or an array
    ///
    /// It says what they have in common: types, the members that all have, few values of strings, formats. Look it over: what
    /// else may come, samples don't say.
    #[command(after_help = "Example: forebay schema infer access.ndjson > schemas/access.json")]
    Infer(SchemaInfer),
    /// Says what a newer schema would refuse that an older one takes
    ///
    /// Exits with 0 where nothing would be refused, and with 1 where something would, or might: what can't be decided is
    /// printed as that.
    #[command(after_help = "Example: forebay schema diff schemas/access.json schemas/access-2.json")]
    Diff(SchemaDiff),
}

/// `forebay schema infer`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SchemaInfer {
    /// The file; `-` is the standard input
    pub(crate) file: PathBuf,
    /// Numbers get the bounds that were met
    #[arg(long)]
    pub(crate) ranges: bool,
}

/// `forebay schema diff`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SchemaDiff {
    /// The schema that events are checked with now
    pub(crate) old: PathBuf,
    /// The one that they would be checked with
    pub(crate) new: PathBuf,
    /// Formats are asserted, as with `schema_formats = true`
    #[arg(long)]
    pub(crate) formats: bool,
}
