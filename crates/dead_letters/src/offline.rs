//! Reads the dead letters of a data directory that no process delivers from. It changes nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use event::TypeName;
use eventlog::{
    DataDirectory, Finding, Inspected, JournalRecord, Loss, Losses, LostFrom, SharedDisk, inspect_shard, list_directory,
};
use ledger::{SavedLedger, SinkName};

use crate::DIRECTORY;
use crate::dead_record::{DeadRecord, RecordKind};
use crate::filter::{DeadFilter, DeadLetter, DeadList};
use crate::index::Index;
use crate::low_watermark::LowWatermark;

/// The suffix of segment files; without such a file there is no journal.
const SEGMENT_SUFFIX: &str = ".segment";

/// Lists dead letters of all sinks, also of those that aren't configured any longer: at most `limit`.
///
/// # Errors
/// The error of the file system. Damage is skipped; the next start reports it.
pub fn read_dead_letters(
    directory: &DataDirectory,
    filter: &DeadFilter,
    limit: usize,
    with_payload: bool,
) -> io::Result<DeadList> {
    let mut found = DeadList::default();
    found.lost = each_held(directory, filter, &mut |sink, at, record| {
        found.add(limit, at, || DeadLetter::of(sink, record, with_payload));
    })?;
    Ok(found)
}

/// Passes each dead letter to `take`, one at a time, in the order of [`read_dead_letters`] and without its limit. Returns the number of lost
/// positions in these journals.
///
/// # Errors
/// A journal can't be read.
pub fn each_dead_letter(
    directory: &DataDirectory,
    filter: &DeadFilter,
    with_payload: bool,
    take: &mut dyn FnMut(DeadLetter),
) -> io::Result<u64> {
    each_held(directory, filter, &mut |sink, _, record| take(DeadLetter::of(sink, record, with_payload)))
}

fn each_held(
    directory: &DataDirectory,
    filter: &DeadFilter,
    take: &mut dyn FnMut(&SinkName, u64, &DeadRecord<'_>),
) -> io::Result<u64> {
    let mut lost = 0;
    let losses = Losses::open(directory)?.open_ones();
    for sink in sinks_with_dead_letters(directory)?.iter().filter(|sink| filter.names(sink)) {
        let is_here = |loss: &&Loss| matches!(&loss.from, LostFrom::Dead(name) if **name == **sink);
        lost += losses.iter().filter(is_here).map(Loss::count).sum::<u64>();
        let path = directory.path().join(DIRECTORY).join(&**sink);
        // Two passes: only the end of the journal shows which dead letters are still held.
        let mut index = Index::default();
        visit(directory, &path, &mut |at, record| drop(index.note(at, record)))?;
        visit(directory, &path, &mut |at, record| {
            if index.is_held_at(at, record) && filter.takes(record) {
                take(sink, at, record);
            }
        })?;
    }
    Ok(lost)
}

/// What is damaged or missing in the journals of dead letters, each with its directory. It changes nothing.
///
/// # Errors
/// What the file system says.
pub fn damaged_dead_letters(directory: &DataDirectory, saved: &SavedLedger) -> io::Result<Vec<(PathBuf, Finding)>> {
    let mut sinks = sinks_with_dead_letters(directory)?;
    sinks.extend(saved.sinks_with_dead_letters().cloned());
    sinks.sort_unstable();
    sinks.dedup();
    let mut found = Vec::new();
    for sink in sinks {
        let path = directory.path().join(DIRECTORY).join(&*sink);
        let damaged = damaged_in(directory, &path, saved.dead_up_to(&sink))?;
        found.extend(damaged.into_iter().map(|finding| (path.clone(), finding)));
    }
    Ok(found)
}

fn damaged_in(directory: &DataDirectory, path: &Path, counted: u64) -> io::Result<Vec<Finding>> {
    let (mut found, mut oldest, mut end) = (Vec::new(), None, 1);
    let inspected = inspect_shard(directory.disk(), path, &mut |item| match item {
        Inspected::Segment(header) => {
            oldest.get_or_insert(header.first);
            end = end.max(header.first);
        }
        Inspected::Block { block, .. } => end = end.max(block.header().end()),
        Inspected::Damaged(chunk) | Inspected::Torn(chunk) => {
            end = end.max(chunk.sequences().end);
            found.push(chunk.finding().clone());
        }
        Inspected::Finding(finding) => found.push(finding.clone()),
    });
    match inspected {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        inspected => {
            inspected?;
            let low_watermark = LowWatermark::open(directory.disk().clone(), path)?;
            found.extend(oldest.and_then(|oldest| low_watermark.missing(oldest)));
        }
    }
    found.extend(Finding::ends_early(end, counted));
    Ok(found)
}

/// The sinks that have dead letters, or had.
pub fn sinks_with_dead_letters(directory: &DataDirectory) -> io::Result<Vec<SinkName>> {
    let mut names = list_directory(&**directory.disk(), &directory.path().join(DIRECTORY))?;
    names.sort_unstable();
    // Other files and directories there belong to no sink.
    let mut sinks = Vec::new();
    for name in names {
        match directory.disk().list(&directory.path().join(DIRECTORY).join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            files => sinks.extend(files?.iter().any(|file| file.ends_with(SEGMENT_SUFFIX)).then(|| name.into())),
        }
    }
    Ok(sinks)
}

/// The events of a sink that are deferred: shard, sequence and type of each.
pub fn deferred_events(disk: &SharedDisk, data: &Path, sink: &str) -> io::Result<Vec<(u16, u64, TypeName)>> {
    let mut events = BTreeMap::new();
    let mut note = |_: u64, record: &DeadRecord<'_>| {
        let place = (record.shard, record.sequence);
        match TypeName::new(record.event.type_name) {
            Ok(name) if record.kind == RecordKind::Deferred => events.insert(place, name),
            _ => events.remove(&place),
        };
    };
    match visit_on(disk, &data.join(DIRECTORY).join(sink), &mut note) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        visited => visited?,
    }
    Ok(events.into_iter().map(|((shard, sequence), name)| (shard, sequence, name)).collect())
}

fn visit(directory: &DataDirectory, path: &Path, take: &mut dyn FnMut(u64, &DeadRecord<'_>)) -> io::Result<()> {
    visit_on(directory.disk(), path, take)
}

fn visit_on(disk: &SharedDisk, path: &Path, take: &mut dyn FnMut(u64, &DeadRecord<'_>)) -> io::Result<()> {
    let mut take = |at: u64, record: JournalRecord<'_>| {
        if let Some(record) = DeadRecord::of(record) {
            take(at, &record);
        }
    };
    inspect_shard(disk, path, &mut |item| match item {
        Inspected::Block { block, .. } => block.records().for_each(|(at, record)| take(at, record)),
        Inspected::Damaged(chunk) | Inspected::Torn(chunk) => {
            chunk.survivors().into_iter().for_each(|(at, record)| take(at, record));
        }
        Inspected::Segment(_) | Inspected::Finding(_) => {}
    })
}
