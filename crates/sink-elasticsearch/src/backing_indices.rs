//! The indices behind a name: a data stream and an alias have one that is written to and older ones, an index has none but itself.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use super::error::Failure;
use super::server::Server;

/// Names that are remembered to be those of indices. Beyond it they are asked for again.
const PLAIN_MAX: usize = 1_000;
/// Indices behind a name that are looked at, whatever their age: of an alias the one that is written to may not be the newest one.
const LOOKED_MIN: usize = 3;
/// Indices behind a name that are looked at, however quickly they were rolled over.
pub(super) const LOOKED_MAX: usize = 10;
/// By how much the clocks of the store and of Forebay may differ: milliseconds.
const CLOCK_MARGIN: i64 = 3_600_000;

/// An index behind a name. Their order is that in which they were made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BackingIndex {
    /// When it was made: milliseconds since 1970, UTC, by the store's clock.
    made_at: i64,
    /// Its own name.
    pub(super) index: String,
}

/// What is known of the names that were written to.
#[derive(Debug, Default)]
pub(super) struct BackingIndices {
    /// Those that are names of indices.
    plain: Mutex<HashSet<String>>,
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

impl BackingIndices {
    fn plain(&self) -> MutexGuard<'_, HashSet<String>> {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The indices behind `name`, oldest first; none where there is nothing behind it but an index of that name, where there is nothing of
    /// that name yet, or where this user may not see it.
    pub(super) async fn behind(&self, server: &Server, name: &str) -> Result<Vec<BackingIndex>, Failure> {
        if self.plain().contains(name) {
            return Ok(Vec::new());
        }
        let Some(answer) = server.backing_indices(name).await? else { return Ok(Vec::new()) };
        let backing_indices = backing_indices(&answer)?;
        if backing_indices.iter().all(|backing_index| backing_index.index == name) {
            if !backing_indices.is_empty() {
                self.remember(name);
            }
            return Ok(Vec::new());
        }
        Ok(backing_indices)
    }

    fn remember(&self, name: &str) {
        let mut plain = self.plain();
        if plain.len() >= PLAIN_MAX {
            plain.clear();
        }
        plain.insert(name.to_owned());
    }

    /// A document for `name` went to `index`: if these differ, the name isn't that of an index any more.
    pub(super) fn went_to(&self, name: &str, index: &str) {
        if name != index {
            self.plain().remove(name);
        }
    }
}

/// What an answer says that is there, oldest first.
fn backing_indices(answer: &[u8]) -> Result<Vec<BackingIndex>, Failure> {
    let answer: BTreeMap<String, Described> = serde_json::from_slice(answer)
        .map_err(|error| Failure::Odd(format!("its answer to _settings can't be read: {error}")))?;
    let made_at = |described: Described| described.settings?.index?.creation_date?.parse().ok();
    let backing_index = |(index, described)| BackingIndex { made_at: made_at(described).unwrap_or(i64::MAX), index };
    let mut backing_indices: Vec<BackingIndex> = answer.into_iter().map(backing_index).collect();
    backing_indices.sort();
    Ok(backing_indices)
}

/// Those of `backing_indices` that may have what was received at `received_at` (microseconds since 1970, UTC) or later: the ones made
/// since, the one before them, and more so that there are a few; the newest ones of these, where there are too many. Oldest first.
pub(super) fn looked_at(backing_indices: &[BackingIndex], received_at: i64) -> &[BackingIndex] {
    let since = (received_at / 1_000).saturating_sub(CLOCK_MARGIN);
    let newer = backing_indices.iter().rev().take_while(|backing_index| backing_index.made_at > since).count();
    let count = (newer + 1).clamp(LOOKED_MIN, LOOKED_MAX).min(backing_indices.len());
    &backing_indices[backing_indices.len() - count..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn made(hours: &[i64]) -> Vec<BackingIndex> {
        hours.iter().map(|hour| BackingIndex { made_at: hour * HOUR, index: format!("i{hour}") }).collect()
    }

    fn looked(hours: &[i64], received_hour: i64) -> usize {
        looked_at(&made(hours), received_hour * HOUR * 1_000).len()
    }

    #[test]
    fn indices_are_in_the_order_in_which_they_were_made() {
        let answer = br#"{"b": {"settings": {"index": {"creation_date": "1"}}}, "a": {"settings": {"index": {"creation_date": "2"}}},
                          "c": {}, "d": {"settings": {"index": {"creation_date": "1"}}}}"#;
        let names: Vec<String> = backing_indices(answer).unwrap().into_iter().map(|found| found.index).collect();
        assert_eq!(names, ["b", "d", "a", "c"]);
        assert!(backing_indices(b"{}").unwrap().is_empty());
        assert!(matches!(backing_indices(b"[]"), Err(Failure::Odd(_))));
    }

    #[test]
    fn those_are_looked_at_that_may_have_an_event_and_no_more_than_so_many() {
        let hours: Vec<i64> = (1..=20).collect();
        assert_eq!(looked(&hours, 20), LOOKED_MIN, "whatever their age");
        // The one of the third hour may have been written to; an hour before it is the margin of the clocks.
        assert_eq!(looked(&[1, 2, 3, 4, 5, 6], 4), 4);
        assert_eq!(looked(&hours, 0), LOOKED_MAX);
        assert_eq!(looked(&[5], 0), 1);
        assert_eq!(looked(&[], 0), 0);
    }

    #[test]
    fn a_name_that_is_an_index_s_is_remembered_until_a_document_goes_elsewhere() {
        let backing_indices = BackingIndices::default();
        for number in 0..=PLAIN_MAX {
            backing_indices.remember(&number.to_string());
        }
        let last = PLAIN_MAX.to_string();
        assert_eq!(backing_indices.plain().len(), 1);
        backing_indices.went_to(&last, &last);
        assert!(backing_indices.plain().contains(&last));
        backing_indices.went_to(&last, "another");
        assert!(backing_indices.plain().is_empty());
    }
}
