//! `forebay journal accept-loss`: the operator accepts that events are lost, so starts no longer report it.

use std::io::Write;

use eventlog::Losses;
use journal::DataDirectory;

use crate::errors::at;
use crate::output::print;

pub(super) fn run(directory: &DataDirectory) -> anyhow::Result<u8> {
    let accepted = Losses::open(directory).and_then(|losses| losses.accept());
    let accepted = accepted.map_err(at(directory.path().join("losses")))?;
    print(|output| {
        accepted.iter().try_for_each(|loss| writeln!(output, "accepted: {loss}"))?;
        writeln!(output, "ok: {} loss(es) accepted", accepted.len())
    })?;
    Ok(0)
}
