//! The records that batches are made of.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::reference::check_loop::{Piece, pieces_of_file};
use crate::workspace;

/// Options of the benchmarks that send batches.
#[derive(clap::Args)]
pub(super) struct Records {
    /// NDJSON to send; without it `access.ndjson` of the folder of real records.
    #[arg(long)]
    file: Option<PathBuf>,
}

impl Records {
    /// The records in pieces of about 1 MiB.
    pub(super) fn pieces(&self) -> Result<Vec<Piece>> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => data_folder()?.join("access.ndjson"),
        };
        println!("records: {}", file.display());
        pieces_of_file(&file)
    }
}

/// The folder of real records: `FOREBAY_DATA`, or beside the repository.
fn data_folder() -> Result<PathBuf> {
    let beside = || workspace::root().map(|root| root.join(Path::new("../shared/data")));
    let folder = std::env::var_os("FOREBAY_DATA").map_or_else(beside, |path| Ok(path.into()))?;
    if !folder.is_dir() {
        bail!("there is no folder {}: give NDJSON with --file, or name the folder in FOREBAY_DATA", folder.display());
    }
    Ok(folder)
}
