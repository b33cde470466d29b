//! The events of one request, as the log has them.

use std::io;

use event::TypeName;
use journal::Reader;

use crate::committed_log::CommittedLog;

/// The events of a request from one of them on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRange {
    /// The last sequence.
    pub last: u64,
    /// Their types, each once.
    pub types: Vec<TypeName>,
}

impl RequestRange {
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

    /// The rest of the request that has an event at `sequence`; `None` if the log no longer has it.
    pub(crate) fn read(log: &CommittedLog, sequence: u64) -> io::Result<Option<Self>> {
        let mut reader = Reader::new(log.segments().clone(), sequence);
        let mut range = Self::default();
        let mut ended = false;
        while let Some(chunk) = reader.read(log.durable())? {
            if chunk.end() <= sequence {
                continue;
            }
            chunk.for_each_record(|at, record| {
                let begins_after = range.last == 0 && at > sequence;
                if at >= sequence && !ended && !begins_after {
                    range.add(at, record.type_name);
                    ended = record.request_end;
                }
            });
            break;
        }
        Ok(Some(range).filter(|range| range.last > 0))
    }
}
