//! Records of a batch that are more work than the shard's other requests should wait for: they are put off until a thread beside
//! it takes them.

use pipeline::Refusal;
use pipeline::batch::Item;

use super::Encoder;
use crate::effort::Work;

/// Records in their order, with their texts in one piece: there may be tens of thousands of a few bytes.
#[derive(Default)]
pub(super) struct PutOff {
    records: Vec<Record>,
    /// The payloads of those that are taken.
    payloads: String,
    /// The bytes of the others as they came.
    raw: Vec<u8>,
}

struct Record {
    line: u32,
    ordinal: u32,
    /// Where its bytes end.
    end: usize,
    fault: Option<Box<Refusal>>,
}

impl PutOff {
    pub(super) fn add(&mut self, item: Item<'_>) {
        let Item { line, ordinal, record, raw } = item;
        let (end, fault) = match record {
            Ok(payload) => {
                self.payloads.push_str(payload);
                (self.payloads.len(), None)
            }
            Err(refusal) => {
                self.raw.extend_from_slice(raw);
                (self.raw.len(), Some(Box::new(refusal)))
            }
        };
        self.records.push(Record { line, ordinal, end, fault });
    }

    /// What they take in memory, about.
    pub(super) const fn bytes(&self) -> usize {
        self.records.len() * size_of::<Record>() + self.payloads.len() + self.raw.len()
    }

    fn for_each(self, mut take: impl FnMut(Item<'_>)) {
        let (mut payload_start, mut raw_start) = (0, 0);
        for Record { line, ordinal, end, fault } in self.records {
            match fault {
                None => {
                    let payload = &self.payloads[payload_start..end];
                    take(Item { line, ordinal, record: Ok(payload), raw: payload.as_bytes() });
                    payload_start = end;
                }
                Some(refusal) => {
                    take(Item { line, ordinal, record: Err(*refusal), raw: &self.raw[raw_start..end] });
                    raw_start = end;
                }
            }
        }
    }
}

impl Encoder {
    /// Whether records wait for a thread beside the shard.
    pub(crate) const fn is_behind(&self) -> bool {
        !self.put_off.records.is_empty()
    }

    /// On a thread beside the shard: takes what was put off. What comes next is taken however much it is.
    pub(crate) fn catch_up(&mut self) {
        self.work = Work::beside();
        std::mem::take(&mut self.put_off).for_each(|item| self.take(item));
    }

    /// The shard goes on with it, and its other requests had their turn.
    pub(crate) const fn begin_turn(&mut self) {
        self.work = Work::inline();
    }
}
