//! A group of a window: what it is called, and what its events gave.

use std::fmt::Write;

use event::Position;
use limits::AGGREGATE_GROUP_BYTES_MAX;
use xxhash_rust::xxh3::xxh3_64;

use super::accumulator::Accumulator;
use super::codec::{Damaged, Reader, Writer};
use super::extract::compact;
use super::rules::AggregateRules;

/// What an entry of a map costs beside its text and its accumulators: its own bytes, the share of the tree's nodes that
/// is empty, and what the allocator adds.
const ENTRY_BYTES: usize = 2 * (size_of::<Key>() + size_of::<Group>()) + 32;
/// Stands in the place of a group's values; no JSON text is it.
const OVERFLOW: &str = "overflow";

/// The name of a group. Groups are ordered by a hash: so the order says nothing of their values, and a tree of them compares
/// whole texts only where hashes are equal, which costs a little even for somebody who makes such texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    order: u64,
    /// The compact values, a line each: no compact JSON has a line's end in it.
    text: String,
}

impl Key {
    /// The group to which all belong for which there is no room. It is the last of all.
    pub(super) fn overflow() -> Self {
        Self { order: u64::MAX, text: OVERFLOW.to_owned() }
    }

    pub(super) fn is_overflow(&self) -> bool {
        self.order == u64::MAX
    }

    /// Becomes the key of these values: the overflow group's where they are too long.
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

    /// As the member `group` of a result: the pointers with their values, or null for the overflow group.
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

/// Below that of the overflow group.
fn order(text: &str) -> u64 {
    xxh3_64(text.as_bytes()) >> 1
}

/// An event as groups take it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken<'a> {
    /// Its group.
    pub(super) key: &'a Key,
    pub(super) time: i64,
    /// The watermark of its shard, less the lateness. A window that ended before it takes no more events.
    pub(super) close_time: Option<i64>,
    pub(super) position: Position,
    /// What stands at the pointers that are read.
    pub(super) values: &'a [Option<&'a str>],
}

/// What the events of a group gave.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// How many events it took. It is the revision of its result as well: whatever the order between shards, what was
    /// given out has a lower one than what has more events in it.
    pub(super) count: u64,
    /// The revision that was given out last.
    pub(super) emitted: u64,
    accumulators: Box<[Accumulator]>,
}

impl Group {
    pub(super) fn new(rules: &AggregateRules) -> Self {
        let accumulators = rules.slots.iter().map(|slot| Accumulator::new(slot.kind)).collect();
        Self { count: 0, emitted: 0, accumulators }
    }

    /// Takes an event; how many of its values were of no use.
    pub(super) fn take(&mut self, rules: &AggregateRules, taken: &Taken<'_>) -> u64 {
        self.count += 1;
        let mut unused = 0;
        for (slot, accumulator) in rules.slots.iter().zip(&mut self.accumulators) {
            if let Some(value) = taken.values[slot.pointer] {
                unused += u64::from(!accumulator.take(taken.time, taken.position, value));
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

    /// What it costs in a map.
    pub(super) fn bytes(&self, key: &Key) -> usize {
        let heap: usize = self.accumulators.iter().map(Accumulator::heap_bytes).sum();
        ENTRY_BYTES + key.text.len() + size_of_val(&*self.accumulators) + heap
    }

    /// What its events gave; not what was given out of it.
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
