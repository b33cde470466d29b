//! The records of batches.

use std::path::PathBuf;

use anyhow::Result;
use generator::{Generator, RecordKind};

use crate::reference::check_loop::{Piece, pieces, pieces_of_file};

/// Options of the benchmarks that send batches.
#[derive(clap::Args)]
pub(super) struct Records {
    /// NDJSON to send again and again; without it access records of the generator.
    #[arg(long)]
    file: Option<PathBuf>,
}

/// About 16 MB: more than the caches of a processor hold.
const GENERATED: usize = 50_000;
const SEED: u64 = 1;

impl Records {
    /// The records in pieces of about 1 MiB.
    pub(super) fn pieces(&self) -> Result<Vec<Piece>> {
        if let Some(file) = &self.file {
            return pieces_of_file(file);
        }
        let mut generator = Generator::new(RecordKind::Access, SEED);
        let mut ndjson = Vec::new();
        (0..GENERATED).for_each(|_| generator.next_line(&mut ndjson));
        Ok(pieces(&ndjson))
    }
}
