//! Passes records on, each written into one buffer.

use std::borrow::Cow;

use limits::{BATCH_BYTES_MAX, EVENT_BYTES_MAX};

use super::attributes::TOO_LARGE;
use super::message::{Fault, Message};
use super::span::ID_BYTES;
use crate::{IntakeRecord, Problem, RecordPayload, Records, Stop};

/// Bytes of all records of a request as JSON. Each repeats its resource, so a small body could become any number of bytes.
const MADE_BYTES_MAX: usize = 8 * BATCH_BYTES_MAX;

/// Passes records on.
pub(super) struct Emitter<'e, 'r> {
    records: &'e mut Records<'r>,
    type_name: &'static str,
    out: String,
    made: usize,
}

impl<'e, 'r> Emitter<'e, 'r> {
    pub(super) fn new(records: &'e mut Records<'r>, type_name: &'static str) -> Self {
        Self { records, type_name, out: String::new(), made: 0 }
    }

    /// Passes a record on: the members that `write` writes, and those of `tail`, which are written already.
    pub(super) fn emit(
        &mut self,
        sent: Message<'_>,
        tail: Result<&str, Fault>,
        write: impl FnOnce(&mut String) -> Result<Option<[u8; ID_BYTES]>, Fault>,
    ) -> Result<(), Stop> {
        let type_name = self.type_name;
        if self.records.skips_next() {
            return self.records.take(IntakeRecord {
                type_name,
                id: None,
                payload: RecordPayload::Made(Cow::Borrowed("")),
            });
        }
        let sent = sent.bytes();
        let id = match self.write(sent, tail, write) {
            Ok(id) => id,
            Err(fault) => {
                let sent = &sent[..sent.len().min(EVENT_BYTES_MAX)];
                let payload = RecordPayload::Rejected { sent, detail: fault.into() };
                return self.records.take(IntakeRecord { type_name, id: None, payload });
            }
        };
        self.made += self.out.len();
        if self.made > MADE_BYTES_MAX {
            let detail = "the records of the request have more than 256 MiB as JSON, each with its resource: send smaller requests";
            return Err(Problem::too_large(detail).into());
        }
        let id = id.as_ref().map(<[u8; ID_BYTES]>::as_slice);
        self.records.take(IntakeRecord { type_name, id, payload: RecordPayload::Made(Cow::Borrowed(&self.out)) })
    }

    fn write(
        &mut self,
        sent: &[u8],
        tail: Result<&str, Fault>,
        write: impl FnOnce(&mut String) -> Result<Option<[u8; ID_BYTES]>, Fault>,
    ) -> Result<Option<[u8; ID_BYTES]>, Fault> {
        if sent.len() > EVENT_BYTES_MAX {
            return Err(TOO_LARGE);
        }
        let tail = tail?;
        self.out.clear();
        self.out.push('{');
        let id = write(&mut self.out)?;
        if self.out.len() > 1 && !tail.is_empty() {
            self.out.push(',');
        }
        self.out.push_str(tail);
        self.out.push('}');
        if self.out.len() > EVENT_BYTES_MAX {
            return Err(TOO_LARGE);
        }
        Ok(id)
    }
}
