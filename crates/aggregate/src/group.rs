//! A group of a window: its name, and the values of its events.

use std::fmt::Write;

use event::Position;
use limits::AGGREGATE_GROUP_BYTES_MAX;
use xxhash_rust::xxh3::xxh3_64;

use super::accumulator::Accumulator;
use super::codec::{Damaged, Reader, Writer};
use super::extract::compact;
use super::rules::AggregateRules;

/// The cost of a map entry in addition to its text and its accumulators: its own bytes, the empty share of the tree's
/// nodes, and the allocator's overhead.
const ENTRY_BYTES: usize = 2 * (size_of::<Key>() + size_of::<Group>()) + 32;
/// Replaces the values of the overflow group; no JSON text is equal to it.
const OVERFLOW: &str = "overflow";

/// The name of a group. Groups are ordered by a hash, so the order reveals nothing of their values. A tree compares
/// whole texts only if hashes are equal, which costs little even if an attacker creates such texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    order: u64,
    /// The compact values, one on each line: compact JSON contains no line end.
    text: String,
}

impl Key {
    /// The group of everything that there is no room for. It is the last of all.
    pub(super) fn overflow() -> Self {
        Self { order: u64::MAX, text: OVERFLOW.to_owned() }
    }

    pub(super) fn is_overflow(&self) -> bool {
        self.order == u64::MAX
    }

    /// Becomes the key of these values, or of the overflow group if they are too long.
    pub(super) fn set<'v>(&mut self, values: impl Iterator<Item = Option<&'v str>>) {
        self.text.clear();
        for (number, value) in values.enumerate() {
            self.text.push_str(if number == 0 { "" } else { "\n" });
            self.text.push_str(&value.map_or("null".into(), compact));
            if self.text.len() > AGGREGATE_GROUP_BYTES_MAX {
                self.clone_from(&Self::overflow());
                return;
            }
        }
        self.order = order(&self.text);
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The member `group` of a result: the pointers with their values, or null for the overflow group.
    pub(super) fn write(&self, pointers: &[String], out: &mut String) {
        if self.is_overflow() {
            out.push_str("null");
            return;
        }
        out.push('{');
        for (number, (pointer, value)) in pointers.iter().zip(self.text.split('\n')).enumerate() {
            out.push_str(if number == 0 { "" } else { "," });
            let _ = write!(out, "{}:{value}", serde_json::Value::from(pointer.as_str()));
        }
        out.push('}');
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.text(&self.text);
    }

    pub(super) fn restore(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let text = from.text()?;
        if text == OVERFLOW {
            return Ok(Self::overflow());
        }
        Ok(Self { order: order(text), text: text.to_owned() })
    }
}

/// Below the order of the overflow group.
fn order(text: &str) -> u64 {
    xxh3_64(text.as_bytes()) >> 1
}

/// An event in the form that groups add.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoldedEvent<'a> {
    /// Its group.
    pub(super) key: &'a Key,
    pub(super) time: i64,
    /// The close time of its shard: a window that ended before it accepts no events.
    pub(super) close_time: Option<i64>,
    pub(super) position: Position,
    /// The values at the pointers.
    pub(super) values: &'a [Option<&'a str>],
}

/// The accumulated events of a group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The number of its events. It is also the revision of its result: in any order between shards, an emitted result
    /// has a lower revision than one with more events.
    pub(super) count: u64,
    /// The revision that was emitted last.
    pub(super) emitted: u64,
    accumulators: Box<[Accumulator]>,
}

impl Group {
    pub(super) fn new(rules: &AggregateRules) -> Self {
        let accumulators = rules.slots.iter().map(|slot| Accumulator::new(slot.kind)).collect();
        Self { count: 0, emitted: 0, accumulators }
    }

    /// Adds an event; returns how many of its values were unusable.
    pub(super) fn take(&mut self, rules: &AggregateRules, event: &FoldedEvent<'_>) -> u64 {
        self.count += 1;
        let mut unused = 0;
        for (slot, accumulator) in rules.slots.iter().zip(&mut self.accumulators) {
            if let Some(value) = event.values[slot.pointer] {
                unused += u64::from(!accumulator.take(event.time, event.position, value));
            }
        }
        unused
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        for (mine, theirs) in self.accumulators.iter_mut().zip(&other.accumulators) {
            mine.merge(theirs);
        }
    }

    pub(super) fn accumulator(&self, slot: usize) -> &Accumulator {
        &self.accumulators[slot]
    }

    /// Its cost in a map.
    pub(super) fn bytes(&self, key: &Key) -> usize {
        let heap: usize = self.accumulators.iter().map(Accumulator::heap_bytes).sum();
        ENTRY_BYTES + key.text.len() + size_of_val(&*self.accumulators) + heap
    }

    /// The accumulated values; without what was emitted.
    pub(super) fn save(&self, out: &mut Writer) {
        out.unsigned(self.count);
        self.accumulators.iter().for_each(|accumulator| accumulator.save(out));
    }

    pub(super) fn restore(rules: &AggregateRules, from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let count = from.unsigned()?;
        let accumulators = rules.slots.iter().map(|slot| Accumulator::restore(slot.kind, from));
        Ok(Self { count, emitted: 0, accumulators: accumulators.collect::<Result<_, _>>()? })
    }
}
