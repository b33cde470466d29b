//! `forebay journal accept-loss`: the operator accepts that events are lost, so that starts report it no more.

use std::io::Write;

use eventlog::Losses;
use journal::DataDirectory;

use super::{JournalError, output_error};
use crate::commands::output::Output;

pub(super) fn run(directory: &DataDirectory) -> Result<u8, JournalError> {
    let failed = |source| JournalError::Io { path: directory.path().join("losses"), source };
    let accepted = Losses::open(directory).and_then(|losses| losses.accept()).map_err(failed)?;
    let mut output = Output::lock();
    for loss in &accepted {
        writeln!(output, "accepted: {loss}").map_err(output_error)?;
    }
    writeln!(output, "ok: {} loss(es) accepted", accepted.len()).map_err(output_error)?;
    Ok(0)
}
