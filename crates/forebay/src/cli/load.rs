//! The flags of `forebay load`.

use std::path::PathBuf;

use clap::Args;
use expression::Expression;
use load::loader::{BATCH_BYTES, BATCH_BYTES_MAX, Edit, LineFilter};

use super::SendFlags;

/// Flags of `forebay load`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoadFlags {
    /// What to load: NDJSON or JSON arrays, as they are or packed with gzip or zstd; `-` is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) to: SendFlags,
    /// Connections on which batches are sent side by side
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: u16,
    /// About the bytes of a batch, up to 16 MiB
    #[arg(long, value_name = "BYTES", default_value_t = BATCH_BYTES, value_parser = batch_bytes)]
    pub(crate) batch_bytes: usize,
    /// A name for this load: lines that were loaded under it are not stored again, even without its state file
    #[arg(long, value_name = "NAME", value_parser = load_id)]
    pub(crate) id: Option<String>,
    /// Where to remember what is loaded [default: FILE.forebay-load beside each file]
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Where to put lines that the server refuses, each with its number and the reason
    #[arg(long, value_name = "FILE")]
    pub(crate) refused: Option<PathBuf>,
    /// Load only lines that match this regular expression
    #[arg(long = "match", value_name = "REGEX")]
    pub(crate) filter: Option<LineFilter>,
    /// Of these load only lines that this CEL expression holds for: 'status >= 500'
    #[arg(long = "where", value_name = "CEL")]
    pub(crate) condition: Option<Expression>,
    /// Count the lines (that are taken) and send nothing
    #[arg(long)]
    pub(crate) count: bool,
    /// Set what stands at a pointer, or add it: /source='"web"'
    #[arg(long, value_name = "/POINTER=JSON", value_parser = Edit::set)]
    set: Vec<Edit>,
    /// Make the string at a pointer lower case
    #[arg(long, value_name = "/POINTER", value_parser = Edit::lower)]
    lower: Vec<Edit>,
    /// Take the white space around the string at a pointer away
    #[arg(long, value_name = "/POINTER", value_parser = Edit::trim)]
    trim: Vec<Edit>,
    /// Go on when the file grows, is cut, or is replaced by another one of its name, until Ctrl-C
    #[arg(long, conflicts_with = "count")]
    pub(crate) follow: bool,
}

impl LoadFlags {
    /// What is done with each line: fields are set first, then lowered, then trimmed.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        [self.set.as_slice(), &self.lower, &self.trim].concat()
    }
}

fn batch_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes| (1024..=BATCH_BYTES_MAX).contains(bytes));
    bytes.ok_or_else(|| format!("a number of bytes from 1024 to {BATCH_BYTES_MAX}"))
}

/// The id is part of each batch's key, which has at most 256 bytes.
fn load_id(text: &str) -> Result<String, String> {
    let is_sound = (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_sound.then(|| text.to_owned()).ok_or_else(|| "1 to 128 visible ASCII characters".to_owned())
}
