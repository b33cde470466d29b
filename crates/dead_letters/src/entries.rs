//! The entries of an index of dead letters, in 16 bytes each: sorted leaves of a fixed size, which are full where
//! events were rejected in the order in which they were accepted.

use std::collections::BTreeMap;

use crate::state::DeadLetterState;

/// What the index knows of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The newest record's position in the journal of dead letters.
    pub(super) at: u64,
    pub(super) state: DeadLetterState,
}

/// Entries of a leaf: 4 KiB.
const LEAF_ENTRIES: usize = 256;
/// The low bits of a packed entry hold its state. A position has 62 bits, which no journal uses up.
const STATE_BITS: u32 = 2;

const STATES: [DeadLetterState; 3] = [DeadLetterState::Held, DeadLetterState::Replayed, DeadLetterState::Dropped];

/// A sequence with its entry.
#[derive(Clone, Copy, Debug)]
struct Packed {
    sequence: u64,
    at_and_state: u64,
}

impl Packed {
    const fn new(sequence: u64, Entry { at, state }: Entry) -> Self {
        Self { sequence, at_and_state: (at << STATE_BITS) | state as u64 }
    }

    fn entry(self) -> Entry {
        let state = self.at_and_state & ((1 << STATE_BITS) - 1);
        let state = STATES.into_iter().find(|known| *known as u64 == state).unwrap_or(DeadLetterState::Held);
        Entry { at: self.at_and_state >> STATE_BITS, state }
    }
}

/// The entries of one shard, by sequence.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// By their first sequence. None is empty.
    leaves: BTreeMap<u64, Vec<Packed>>,
}

impl Entries {
    pub(super) fn get(&self, sequence: u64) -> Option<Entry> {
        let (_, leaf) = self.leaves.range(..=sequence).next_back()?;
        let at = leaf.binary_search_by_key(&sequence, |packed| packed.sequence).ok()?;
        leaf.get(at).map(|packed| packed.entry())
    }

    /// Adds an entry, and returns the one that it replaces.
    pub(super) fn insert(&mut self, sequence: u64, entry: Entry) -> Option<Entry> {
        let packed = Packed::new(sequence, entry);
        let Some((_, leaf)) = self.leaves.range_mut(..=sequence).next_back() else {
            // Before all others. A leaf with one entry is rare: events are rejected in order.
            self.leaves.insert(sequence, vec![packed]);
            return None;
        };
        match leaf.binary_search_by_key(&sequence, |packed| packed.sequence) {
            Ok(at) => Some(std::mem::replace(&mut leaf[at], packed).entry()),
            Err(at) => {
                let mut following = None;
                if leaf.len() < LEAF_ENTRIES {
                    leaf.insert(at, packed);
                } else if at == leaf.len() {
                    following = Some(vec![packed]);
                } else {
                    let mut second = leaf.split_off(LEAF_ENTRIES / 2);
                    let half = leaf.len();
                    if at <= half {
                        leaf.insert(at, packed)
                    } else {
                        second.insert(at - half, packed)
                    }
                    following = Some(second);
                }
                self.leaves.extend(following.and_then(|leaf| Some((leaf.first()?.sequence, leaf))));
                None
            }
        }
    }

    /// Those from `first` to `last`, in order.
    pub(super) fn range(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, Entry)> + '_ {
        let before = self.leaves.range(..=first).next_back().map_or(first, |(key, _)| *key);
        let leaves = self.leaves.range(before..).take_while(move |(key, _)| **key <= last);
        let inside = leaves.flat_map(|(_, leaf)| leaf).filter(move |packed| (first..=last).contains(&packed.sequence));
        inside.map(|packed| (packed.sequence, packed.entry()))
    }

    /// Keeps the entries that `is_kept` accepts, and frees the memory of the rest.
    pub(super) fn retain(&mut self, is_kept: impl Fn(u64, Entry) -> bool) {
        let kept: Vec<Packed> = std::mem::take(&mut self.leaves)
            .into_values()
            .flatten()
            .filter(|packed| is_kept(packed.sequence, packed.entry()))
            .collect();
        self.leaves =
            kept.chunks(LEAF_ENTRIES).filter_map(|leaf| Some((leaf.first()?.sequence, leaf.to_vec()))).collect();
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.leaves.values().map(|leaf| leaf.capacity() * size_of::<Packed>() + 64).sum()
    }
}

#[cfg(test)]
mod tests {
    use limits::memory::DEAD_LETTER_BYTES;

    use super::*;

    fn entry(at: u64) -> Entry {
        Entry { at, state: STATES[usize::try_from(at % 3).unwrap()] }
    }

    #[test]
    fn entries_match_a_model_map() {
        let (mut entries, mut model) = (Entries::default(), BTreeMap::new());
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for step in 0..20_000 {
            let sequence = random(5_000);
            assert_eq!(entries.insert(sequence, entry(step)), model.insert(sequence, entry(step)), "{step}");
            let (first, last) = (random(5_000), random(5_000));
            assert_eq!(entries.get(first), model.get(&first).copied());
            if step % 500 == 0 && first <= last {
                assert!(entries.range(first, last).eq(model.range(first..=last).map(|(key, entry)| (*key, *entry))));
            }
            if step % 5_000 == 4_999 {
                entries.retain(|sequence, entry| sequence % 3 == 0 || entry.state == DeadLetterState::Held);
                model.retain(|sequence, entry| sequence % 3 == 0 || entry.state == DeadLetterState::Held);
            }
        }
        assert!(entries.range(0, u64::MAX).eq(model.into_iter()));
    }

    #[test]
    fn entry_memory_stays_within_its_budget() {
        let mut entries = Entries::default();
        for sequence in 0..100_000 {
            entries.insert(2 * sequence, entry(sequence));
        }
        assert!(entries.bytes() <= 100_000 * DEAD_LETTER_BYTES, "{}", entries.bytes());
    }
}
