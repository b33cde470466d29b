//! Records that may have been sent before (in-doubt writes) are looked up by id in the backing indices of their name,
//! before they are created. An id is unique within one index only, and `_rollover` begins another one at any time.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use sink::{Record, Write};

use super::batch_outcomes::Writing;
use super::config::{DocumentConflictPolicy, ElasticsearchConfig, IndexTarget};
use super::conflict::{Taken, existing};
use super::error::Failure;

/// The minimum number of backing indices that are searched, regardless of their age: the write index of an alias may
/// not be the newest one.
const SEARCHED_MIN: usize = 3;
/// The maximum number of backing indices that are searched.
const SEARCHED_MAX: usize = 10;
/// The maximum difference between the clocks of the store and of Forebay, in milliseconds.
const CLOCK_MARGIN: i64 = 3_600_000;

/// A backing index of a name. Sorted by creation time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BackingIndex {
    /// Milliseconds since 1970, UTC, by the store's clock.
    created_at: i64,
    name: String,
}

#[derive(Deserialize)]
struct Described {
    settings: Option<Settings>,
}

#[derive(Deserialize)]
struct Settings {
    index: Option<IndexSettings>,
}

#[derive(Deserialize)]
struct IndexSettings {
    creation_date: Option<String>,
}

impl Writing<'_> {
    /// The records that may have been sent before and are stored in one of several backing indices, in ascending order.
    pub(super) async fn stored_before(&self) -> Result<Vec<Taken>, Failure> {
        let mut candidates = Vec::new();
        for (name, records) in self.possible_duplicates() {
            let Some(answer) = self.server.backing_indices(&name).await? else { continue };
            let indices = backing_indices(&answer)?;
            // With one index, `create` itself finds duplicates.
            if indices.len() < 2 {
                continue;
            }
            let received_first = records.iter().map(|(_, received_at)| *received_at).min().unwrap_or(0);
            for index in searched(&indices, received_first) {
                candidates.extend(records.iter().map(|(at, _)| Taken { at: *at, index: index.name.clone() }));
            }
        }
        let mut found = existing(self.config, self.server, self.batch, &candidates).await?;
        // The sort is stable: of several places the oldest index remains.
        found.sort_by_key(|found| found.at);
        found.dedup_by_key(|found| found.at);
        Ok(found)
    }

    /// Records at or below the batch's minimum position that were sent before, if they become documents by `create`:
    /// index within the batch and time of receipt, by the name that they are written to.
    fn possible_duplicates(&self) -> HashMap<String, Vec<(usize, i64)>> {
        let Self { config, batch, .. } = self;
        let mut names: HashMap<String, Vec<(usize, i64)>> = HashMap::new();
        for (at, record) in batch.records().enumerate() {
            if record.sequence <= batch.again() && is_created(config, &record) {
                names.entry(config.index.of(&record)).or_default().push((at, record.received_at));
            }
        }
        names
    }
}

/// Whether a record becomes a document by `create`. A record that replaces a document does so in the write index.
fn is_created(config: &ElasticsearchConfig, record: &Record<'_>) -> bool {
    let keeps = matches!(config.conflict, DocumentConflictPolicy::DeadLetter | DocumentConflictPolicy::Ignore);
    config.target == IndexTarget::DataStream || (keeps && record.write == Write::Insert)
}

/// The indices in the store's response, oldest first.
fn backing_indices(answer: &[u8]) -> Result<Vec<BackingIndex>, Failure> {
    let answer: BTreeMap<String, Described> = serde_json::from_slice(answer).map_err(|error| {
        Failure::Unexpected(format!("its response to _settings is invalid ({error}): check the proxies in front of it"))
    })?;
    let created_at = |described: Described| described.settings?.index?.creation_date?.parse().ok();
    let index = |(name, described)| BackingIndex { created_at: created_at(described).unwrap_or(i64::MAX), name };
    let mut indices: Vec<BackingIndex> = answer.into_iter().map(index).collect();
    indices.sort();
    Ok(indices)
}

/// The newest of `indices` that may hold events received at `received_at` (microseconds since 1970, UTC) or later:
/// those created since, the one before them, and more up to the minimum. Oldest first.
fn searched(indices: &[BackingIndex], received_at: i64) -> &[BackingIndex] {
    let since = (received_at / 1_000).saturating_sub(CLOCK_MARGIN);
    let newer = indices.iter().rev().take_while(|index| index.created_at > since).count();
    let count = (newer + 1).clamp(SEARCHED_MIN, SEARCHED_MAX).min(indices.len());
    &indices[indices.len() - count..]
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn count_searched(hours: &[i64], received_hour: i64) -> usize {
        let index = |hour: &i64| BackingIndex { created_at: hour * HOUR, name: format!("i{hour}") };
        let indices: Vec<BackingIndex> = hours.iter().map(index).collect();
        searched(&indices, received_hour * HOUR * 1_000).len()
    }

    #[test]
    fn backing_indices_are_sorted_by_their_creation() {
        let answer = br#"{"b": {"settings": {"index": {"creation_date": "1"}}}, "a": {"settings": {"index": {"creation_date": "2"}}},
                          "c": {}, "d": {"settings": {"index": {"creation_date": "1"}}}}"#;
        let names: Vec<String> = backing_indices(answer).unwrap().into_iter().map(|found| found.name).collect();
        assert_eq!(names, ["b", "d", "a", "c"]);
        assert!(backing_indices(b"{}").unwrap().is_empty());
        assert!(matches!(backing_indices(b"[]"), Err(Failure::Unexpected(_))));
    }

    #[test]
    fn indices_of_an_event_are_searched_within_limits() {
        let hours: Vec<i64> = (1..=20).collect();
        assert_eq!(count_searched(&hours, 20), SEARCHED_MIN, "regardless of their age");
        // The index of the third hour may have been the write index; the clocks may differ by an hour.
        assert_eq!(count_searched(&[1, 2, 3, 4, 5, 6], 4), 4);
        assert_eq!(count_searched(&hours, 0), SEARCHED_MAX);
        assert_eq!(count_searched(&[5], 0), 1);
        assert_eq!(count_searched(&[], 0), 0);
    }

    #[test]
    fn only_created_records_are_looked_up() {
        let mut config = super::super::tests::config();
        let record = |write| Record {
            sequence: 1,
            id: EventId([9; 16]),
            type_name: "access",
            source: "",
            received_at: 0,
            event_time: None,
            write,
            payload: b"{}",
        };
        let (event, result) = (record(Write::Insert), record(Write::Upsert(1)));
        assert!(is_created(&config, &event));
        assert!(!is_created(&config, &result), "it replaces a document");
        config.conflict = DocumentConflictPolicy::Overwrite;
        assert!(!is_created(&config, &event));
        config.target = IndexTarget::DataStream;
        assert!(is_created(&config, &result), "each revision is created there");
    }
}
