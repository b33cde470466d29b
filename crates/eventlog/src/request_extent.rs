//! How far the events reach that came with one event, as the log has them.

use std::io;

use event::TypeName;
use journal::Reader;

use crate::shard::Shard;

/// The events of a request behind one of them, and that one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestExtent {
    /// The last sequence.
    pub last: u64,
    /// Their types, each once.
    pub types: Vec<TypeName>,
}

impl RequestExtent {
    fn add(&mut self, sequence: u64, type_name: &str) {
        self.last = sequence;
        if self.types.last().is_some_and(|last| last.as_str() == type_name) {
            return;
        }
        // Damage may have passed unseen.
        let Ok(name) = TypeName::new(type_name) else { return };
        if !self.types.contains(&name) {
            self.types.push(name);
        }
    }
}

impl Shard {
    /// How far the request reaches that has an event at `sequence`. `None` where the log has it no more: then each lane has
    /// passed it. Reads the disk: call it where that may block.
    ///
    /// # Errors
    /// What the file system says.
    pub fn request_extent(&self, sequence: u64) -> io::Result<Option<RequestExtent>> {
        let mut reader = Reader::new(self.segments().clone(), sequence);
        let mut extent = RequestExtent::default();
        let mut ended = false;
        while let Some(stretch) = reader.read(self.durable())? {
            if stretch.end() <= sequence {
                continue;
            }
            stretch.for_each_record(|at, record| {
                let begins_behind = extent.last == 0 && at > sequence;
                if at >= sequence && !ended && !begins_behind {
                    extent.add(at, record.type_name);
                    ended = record.request_end;
                }
            });
            break;
        }
        Ok(Some(extent).filter(|extent| extent.last > 0))
    }
}
