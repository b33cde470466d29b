//! Results that a process has journaled after it saved the state that they came from.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use event::{EventId, TypeName};
use eventlog::{Reader, Shard};

/// The results of one aggregate after a position in the first shard, in order.
pub(crate) struct ReplayFilter {
    name: TypeName,
    reader: Reader,
    after: u64,
    until: u64,
    found: VecDeque<(EventId, u64)>,
}

impl ReplayFilter {
    pub(crate) fn new(shard: &Arc<Shard>, name: &TypeName, after: u64) -> Self {
        let reader = Reader::new(shard.segments().clone(), after + 1);
        Self { name: name.clone(), reader, after, until: shard.durable(), found: VecDeque::new() }
    }

    /// Whether the next result in the journal is this one. If it is not, no later one is compared.
    pub(crate) fn take(&mut self, id: EventId, revision: u64) -> io::Result<bool> {
        while self.found.is_empty() && self.read()? {}
        Ok(self.found.pop_front() == Some((id, revision)))
    }

    fn read(&mut self) -> io::Result<bool> {
        let Some(chunk) = self.reader.read(self.until)? else { return Ok(false) };
        chunk.for_each_record(|sequence, record| {
            if let Some(revision) = record.revision
                && record.type_name == self.name.as_str()
                && (self.after + 1..=self.until).contains(&sequence)
            {
                self.found.push_back((record.id, revision));
            }
        });
        Ok(true)
    }
}
