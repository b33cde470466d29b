//! What is counted, logged and stored of the rejected records of a batch.

use event::TypeName;
use json::batch::Item;

use super::RecordBuilder;
use crate::ingest::envelope::Envelope;
use crate::problem::Problem;
use crate::refusals::Rejected;
use crate::tapped;

impl RecordBuilder {
    /// A record is rejected.
    pub(super) fn tally_item(&mut self, item: &Item<'_>, problem: &Problem) {
        let bytes = item.record.as_ref().map_or_else(|_| item.raw.trim_ascii(), |payload| payload.as_bytes());
        let rejected = Rejected { problem, line: Some(item.line), bytes, received_at: self.envelope.received_at };
        self.tally.add(self.types.table(), self.envelope.sender(), &rejected);
        tapped::refused(self.taps, self.types.table(), self.envelope.sender(), problem, Some(item.line));
    }

    /// The log has rejected the record with this number, and may have kept its payload. Returns the problem with the record's type.
    pub(super) fn tally_numbered(&mut self, number: u32, problem: Problem, payload: Option<&[u8]>) -> Problem {
        let (line, _) = self.sources.place(number);
        let lines = self.batch.lines();
        let at = lines.partition_point(|record| record.number < number);
        let type_id = lines.get(at).filter(|record| record.number == number).map(|record| record.type_id);
        let name = type_id
            .and_then(|type_id| self.types.used(|id| id == type_id).next())
            .map(|entry| Box::new(entry.name.clone()));
        let problem = Problem { type_name: name, ..problem };
        let (types, sender) = (self.types.table(), self.envelope.sender());
        match payload {
            Some(bytes) => {
                let received_at = self.envelope.received_at;
                self.tally.add(types, sender, &Rejected { problem: &problem, line: Some(line), bytes, received_at });
            }
            None => self.tally.count(types, sender, &problem, Some(line)),
        }
        tapped::refused(self.taps, types, sender, &problem, Some(line));
        problem
    }

    /// Whether rejected records of a type among the good ones are stored.
    pub(crate) fn stores_rejected(&self) -> bool {
        self.types().any(|entry| entry.rules.refused_to.is_some())
    }

    /// The type of all records, if it is known.
    pub(crate) fn own_type(&self) -> Option<TypeName> {
        self.slot.map(|slot| self.types.get(slot).name.clone())
    }

    /// What surrounds the records.
    pub(crate) const fn envelope(&self) -> &Envelope {
        &self.envelope
    }
}
