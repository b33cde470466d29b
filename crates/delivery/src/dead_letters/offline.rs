//! Reads the dead letters of a data directory that no process delivers from. Changes nothing.

use std::io;
use std::path::Path;

use eventlog::{DataDirectory, Inspected, Record, inspect_shard};

use super::DIRECTORY;
use super::filter::{DeadFilter, DeadLetter, DeadList};
use super::index::Index;
use crate::SinkName;

/// Lists letters of all sinks, also of those that aren't configured any more: at most `limit`.
///
/// # Errors
/// What the file system says. What is damaged is passed over; the next start reports it.
pub fn read_dead_letters(
    directory: &DataDirectory,
    filter: &DeadFilter,
    limit: usize,
    with_payload: bool,
) -> io::Result<DeadList> {
    let mut found = DeadList::default();
    for sink in sinks_with_letters(directory)?.iter().filter(|sink| filter.names(sink)) {
        let path = directory.path().join(DIRECTORY).join(&**sink);
        // Twice: only the end of the journal tells which of its letters are still held.
        let mut index = Index::default();
        visit(directory, &path, &mut |at, record| drop(index.note(at, record)))?;
        visit(directory, &path, &mut |at, record| {
            let held = record.dead.is_some_and(|dead| index.is_held_at(at, &dead));
            if held && filter.takes(record) {
                found.add(limit, || DeadLetter::of(sink, record, with_payload));
            }
        })?;
    }
    Ok(found)
}

/// The sinks that have dead letters, or had.
pub(crate) fn sinks_with_letters(directory: &DataDirectory) -> io::Result<Vec<SinkName>> {
    let mut names = match directory.disk().list(&directory.path().join(DIRECTORY)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names?,
    };
    names.sort_unstable();
    Ok(names.into_iter().map(SinkName::from).collect())
}

fn visit(directory: &DataDirectory, path: &Path, take: &mut dyn FnMut(u64, &Record<'_>)) -> io::Result<()> {
    inspect_shard(directory.disk(), path, &mut |item| match item {
        Inspected::Block { block, .. } => block.records().for_each(|(at, record)| take(at, &record)),
        Inspected::Damaged(stretch) | Inspected::Torn(stretch) => {
            stretch.survivors().iter().for_each(|(at, record)| take(*at, record));
        }
        Inspected::Segment(_) | Inspected::Finding(_) => {}
    })
}
