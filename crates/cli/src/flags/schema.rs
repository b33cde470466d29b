//! The command line of `forebay schema`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The commands for schemas.
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Prints a schema that accepts all records of a file
    ///
    /// The file is NDJSON or an array. The schema has the common properties of the records: types, members that all records have, small sets of
    /// strings, formats. Check the schema: later events may differ from the samples.
    #[command(after_help = "Example: forebay schema infer access.ndjson > schemas/access.json")]
    Infer(SchemaInfer),
    /// Shows what a newer schema would reject that the older accepts
    ///
    /// Exits with 0 if nothing would be rejected, and with 1 if something would, or might.
    /// The command also lists the differences that it can't decide.
    #[command(after_help = "Example: forebay schema diff schemas/access.json schemas/access-2.json")]
    Diff(SchemaDiff),
}

/// `forebay schema infer`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SchemaInfer {
    /// The file; `-` is the standard input
    pub(crate) file: PathBuf,
    /// Give numbers the bounds found in the samples
    #[arg(long)]
    pub(crate) ranges: bool,
}

/// `forebay schema diff`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SchemaDiff {
    /// The schema in use now
    pub(crate) old: PathBuf,
    /// The schema that would replace it
    pub(crate) new: PathBuf,
    /// Assert formats, as with `schema_formats = true`
    #[arg(long)]
    pub(crate) formats: bool,
}
