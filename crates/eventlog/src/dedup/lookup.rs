//! The dedup lookup of an append: it finds duplicates and indexes new ids in one step.

use std::sync::Arc;

use event::EventId;
use journal::DedupKey;

use super::append_batch::{AppendBatch, DedupResult, LineRejection};
use super::entry::PackedPosition;
use super::index::DedupIndex;
use super::keyed_ids::partial_key;
use super::original::{Original, is_durable};
use super::window::LookupResult;

/// Why an event, or a batch as a whole, isn't appended.
pub(crate) enum Conflict {
    /// It is a duplicate, with the same bytes.
    Duplicate(Original),
    /// Another event has the id, with other bytes.
    OtherBytes,
}

/// Why a batch isn't appended.
pub(crate) enum BatchConflict {
    /// The index has an entry for its key.
    Whole(Conflict),
    /// Some records are accepted and some aren't, and they have no separate index entries: add these, and append the
    /// batch again.
    Partial,
    /// No record of it is left.
    Empty,
    /// It depends on an original that isn't durable yet: wait until it is, or is lost, and append the batch again.
    Undecided(Original),
}

impl From<Conflict> for BatchConflict {
    fn from(conflict: Conflict) -> Self {
        Self::Whole(conflict)
    }
}

/// Dedup lookup for the next append.
pub(crate) struct DedupLookup<'a> {
    index: &'a Arc<DedupIndex>,
    /// The ids of the commit group.
    indexed: &'a mut Vec<(EventId, PackedPosition)>,
    /// The position of the append. All events of a batch are indexed with its first position: the position of each is only known after
    /// all lookups, and any position in the batch is as durable.
    position: PackedPosition,
    /// Ids were indexed and removed again: a request that found them in between waits for an event that won't be written.
    pub(crate) has_removed: bool,
    /// The index's count of removals before this lookup.
    removals: u64,
}

impl<'a> DedupLookup<'a> {
    pub(crate) fn new(
        index: &'a Arc<DedupIndex>,
        indexed: &'a mut Vec<(EventId, PackedPosition)>,
        position: PackedPosition,
    ) -> Self {
        Self { index, indexed, position, has_removed: false, removals: index.removals() }
    }
}

impl DedupLookup<'_> {
    /// Indexes an id of a client, unless it is indexed already.
    pub(crate) fn event(&mut self, id: EventId, content: u64) -> Result<(), Conflict> {
        match self.index.window().insert(id, content, self.position) {
            LookupResult::New => {
                self.indexed.push((id, self.position));
                Ok(())
            }
            LookupResult::Duplicate(position) => Err(Conflict::Duplicate(self.original(id, content, position))),
            LookupResult::OtherBytes => Err(Conflict::OtherBytes),
        }
    }

    fn original(&self, id: EventId, content: u64, position: PackedPosition) -> Original {
        Original { index: self.index.clone(), id, content, position, removals: self.removals }
    }

    /// Indexes the ids of a batch, and drops its duplicates and the lines that are rejected.
    pub(crate) fn batch(&mut self, batch: &mut AppendBatch) -> Result<(), BatchConflict> {
        let indexed_before = self.indexed.len();
        let result = self.lines(batch);
        if result.is_err() {
            // Nothing is appended: another event will get the position.
            self.remove_since(indexed_before);
        }
        result
    }

    fn lines(&mut self, batch: &mut AppendBatch) -> Result<(), BatchConflict> {
        let was_partial = batch.key.map_or(Ok(false), |key| self.was_partial(key))?;
        if was_partial && !batch.indexes_individually {
            return Err(BatchConflict::Partial);
        }
        let indexed_before = self.indexed.len();
        let mut found = self.sort(batch, DedupResult::default());
        if !found.rejected.is_empty() && !batch.dependent_lines.is_empty() {
            // A part that was left out as a duplicate of a rejected line would not be stored at all.
            self.remove_since(indexed_before);
            let dependent = batch.dependent_lines.iter().map(|line| (*line, LineRejection::DependsOnRejected));
            let rejected = dependent.chain(found.rejected).collect();
            found = self.sort(batch, DedupResult { rejected, ..DedupResult::default() });
        }
        if batch.options.wait_for_originals
            && let Some((_, undecided)) = self.take_undecided(&mut found.duplicates)
        {
            return Err(BatchConflict::Undecided(undecided));
        }
        if batch.options.atomic && !found.rejected.is_empty() {
            batch.apply(found);
            return Err(BatchConflict::Empty);
        }
        // The key may cover the whole batch only if all of it is in one block: another request's block may be lost
        // while this one isn't.
        let has_dropped = !found.duplicates.is_empty() || !found.rejected.is_empty();
        let is_partial = was_partial || batch.indexes_individually || has_dropped;
        if batch.key.is_some() && is_partial && !batch.indexes_individually {
            return Err(BatchConflict::Partial);
        }
        if let Some(key) = batch.key {
            self.key(key, is_partial)?;
        }
        batch.apply(found);
        if batch.records().is_empty() {
            return Err(BatchConflict::Empty);
        }
        if let Some(key) = batch.key {
            batch.write_key(if is_partial { partial_key(key) } else { key });
        }
        Ok(())
    }

    /// An original that isn't durable yet, if there is any. One in the batch itself is as durable as the batch.
    fn take_undecided(&self, duplicates: &mut Vec<(u32, Original)>) -> Option<(u32, Original)> {
        let is_open = |original: &Original| {
            original.position != self.position && self.index.undurable_log(original.position).is_some()
        };
        let mut undecided = duplicates.iter().position(|(_, original)| is_open(original));
        if undecided.is_none() && self.index.removals() != self.removals {
            // If the original was removed, another event may have its position.
            undecided =
                duplicates.iter().position(|(_, original)| original.position != self.position && !is_durable(original));
        }
        undecided.map(|number| duplicates.swap_remove(number))
    }

    /// Indexes the key of a batch. Another shard may have indexed the same batch since the key was looked up. Both
    /// index their key before they look for the other's, so one of them finds it.
    fn key(&mut self, key: DedupKey, is_partial: bool) -> Result<(), BatchConflict> {
        let (own, other) = if is_partial { (partial_key(key), key) } else { (key, partial_key(key)) };
        match self.event(own.id, own.content) {
            // Each of its records has a separate entry. If the other shard's block is never written, its key is
            // removed, and then no key would cover what this shard accepts now.
            Err(Conflict::Duplicate(original)) if is_partial => {
                let is_elsewhere = original.position().shard != self.position.position().shard;
                if is_elsewhere && self.index.undurable_log(original.position).is_some() {
                    return Err(BatchConflict::Undecided(original));
                }
            }
            result => result?,
        }
        match self.index.window().look_up(other.id, other.content) {
            LookupResult::New => Ok(()),
            LookupResult::Duplicate(position) if is_partial => {
                Err(Conflict::Duplicate(self.original(other.id, other.content, position)).into())
            }
            LookupResult::Duplicate(_) => Err(BatchConflict::Partial),
            LookupResult::OtherBytes => Err(Conflict::OtherBytes.into()),
        }
    }

    /// Whether a batch with this key was accepted in part: then each of its records has a separate index entry.
    fn was_partial(&self, key: DedupKey) -> Result<bool, Conflict> {
        let window = self.index.window();
        match window.look_up(key.id, key.content) {
            LookupResult::Duplicate(position) => {
                return Err(Conflict::Duplicate(self.original(key.id, key.content, position)));
            }
            LookupResult::OtherBytes => return Err(Conflict::OtherBytes),
            LookupResult::New => {}
        }
        let key = partial_key(key);
        match window.look_up(key.id, key.content) {
            LookupResult::Duplicate(_) => Ok(true),
            LookupResult::OtherBytes => Err(Conflict::OtherBytes),
            LookupResult::New => Ok(false),
        }
    }

    /// Indexes the ids of the lines that are accepted, one line after the other, each as a whole or not at all: no line is a duplicate of
    /// a rejected one. Lines that `found` rejects already are skipped.
    fn sort(&mut self, batch: &AppendBatch, mut found: DedupResult) -> DedupResult {
        for line in batch.own_ids.chunk_by(|one, next| batch.line_of(one.number) == batch.line_of(next.number)) {
            let number = line.first().map_or(0, |own| batch.line_of(own.number));
            if found.rejected.contains_key(&number) {
                continue;
            }
            let (indexed_before, duplicates_before) = (self.indexed.len(), found.duplicates.len());
            for own in line {
                match self.event(own.id, own.content) {
                    Err(Conflict::Duplicate(original)) => found.duplicates.push((own.number, original)),
                    Err(_) => drop(found.rejected.insert(number, LineRejection::IdConflict)),
                    Ok(()) => {}
                }
            }
            if found.rejected.contains_key(&number) {
                found.duplicates.truncate(duplicates_before);
                self.remove_since(indexed_before);
            }
        }
        found
    }

    fn remove_since(&mut self, count: usize) {
        let removed = self.indexed.split_off(count);
        self.has_removed |= !removed.is_empty();
        self.index.remove(&removed);
    }
}
