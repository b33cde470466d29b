//! Turns payloads into records of the log: each gets its type and its id. It holds all that it needs, so that the
//! records of a large batch can be made on another thread.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use event::limits::REFUSALS_LISTED_MAX;
use event::{EventId, KeyedIds, TypeName, id};
use eventlog::{Batch, ContentHash, Earlier, Given, Own, Record};
use pipeline::batch::Item;
use pipeline::pointer::scalar_text;

use crate::ack::Ack;
use crate::answer::Refusal;
use crate::code::Code;
use crate::event_request::other_bytes;
use crate::problem::{Problem, Refused};
use crate::request::{DEFAULT_TYPE, check_key};
use crate::type_cache::{Slot, TypeCache};
use crate::type_table::{Known, TypeTable};

/// The type that a payload names, by the configured pointer.
///
/// # Errors
/// What stands there names no type that is taken.
pub(crate) fn type_of(types: &mut TypeCache, payload: &str) -> Result<Slot, Problem> {
    let table = types.table().clone();
    let found = table.type_pointer.as_ref().and_then(|pointer| Some((pointer, pointer.lookup(payload)?)));
    let Some((pointer, raw)) = found else { return types.find(DEFAULT_TYPE) };
    let not_text = || Problem::new(Code::UnknownType, "the value is no text, so it names no type");
    let result = scalar_text(raw).ok_or_else(not_text).and_then(|name| types.find(&name));
    result.map_err(|problem| problem.with_pointer(pointer.as_str()))
}

/// The id that a payload of `source` has by its type's rules, if it has one. `null` is none.
///
/// # Errors
/// What stands there can't be an id.
pub(crate) fn own_id(source: &str, known: &Known, payload: &str) -> Result<Option<EventId>, Problem> {
    let Some(pointer) = &known.rules.id else { return Ok(None) };
    let Some(raw) = pointer.lookup(payload).filter(|raw| *raw != "null") else { return Ok(None) };
    let text = id_text(raw).map_err(|problem| problem.with_pointer(pointer.as_str()))?;
    Ok(Some(KeyedIds::new(source, &known.name, text.as_bytes()).id(0)))
}

fn id_text(raw: &str) -> Result<Cow<'_, str>, Problem> {
    let text = scalar_text(raw).ok_or_else(|| Problem::new(Code::Key, "an id is a text or a number"))?;
    check_key(text.as_bytes(), "the id")?;
    Ok(text)
}

/// Where the ids of a request come from if the payloads have none.
#[derive(Debug)]
pub(crate) enum Ids {
    /// From the client's key.
    Keyed(Box<[u8]>),
    /// Counted up from this one.
    Generated(EventId),
}

/// What stands around the payloads of a request.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) received_at: i64,
    pub(crate) client: IpAddr,
    /// Who sent it; empty where nobody says.
    pub(crate) source: Arc<str>,
}

impl Envelope {
    pub(crate) fn record<'a>(&'a self, known: &'a Known, id: EventId, payload: &'a [u8]) -> Record<'a> {
        Record {
            id,
            received_at: self.received_at,
            event_time: None,
            type_name: known.name.as_str(),
            source: &self.source,
            client: Some(self.client),
            payload,
            request_start: true,
            request_end: true,
            dead: None,
            content: None,
            batch: None,
            revision: None,
        }
    }
}

/// The records of a batch, and what was refused.
pub(crate) struct Encoder {
    envelope: Envelope,
    types: TypeCache,
    /// The type of all records, unless each names its own.
    slot: Option<Slot>,
    ids: Ids,
    ack: Ack,
    /// The ids of the key for the type that was last met: to hash again for each record would cost more than the rest.
    keyed: Option<(Slot, KeyedIds)>,
    /// For each record with an id of its own its line.
    own_lines: Vec<u32>,
    content: ContentHash,
    pub(crate) batch: Batch,
    pub(crate) accepted: u64,
    pub(crate) duplicates: u64,
    /// Good records were refused because others had to be.
    pub(crate) is_refused_for_some: bool,
    pub(crate) refused: Vec<Refusal>,
    /// What these take in memory, about.
    refused_bytes: usize,
    pub(crate) refused_by_code: [u64; Code::ALL.len()],
}

impl Encoder {
    pub(crate) fn new(
        envelope: Envelope,
        mut types: TypeCache,
        known: Option<Known>,
        ids: Ids,
        content: ContentHash,
    ) -> Self {
        let slot = known.map(|known| types.add(known));
        Self {
            envelope,
            types,
            slot,
            ids,
            ack: Ack::Disk,
            keyed: None,
            own_lines: Vec::new(),
            content,
            batch: Batch::default(),
            accepted: 0,
            duplicates: 0,
            is_refused_for_some: false,
            refused: Vec::new(),
            refused_bytes: 0,
            refused_by_code: [0; Code::ALL.len()],
        }
    }

    /// Refuses the records that may not be acknowledged like this.
    pub(crate) const fn with_ack(mut self, ack: Ack) -> Self {
        self.ack = ack;
        self
    }

    /// Takes note of bytes that came: what comes again under the same key must be the same.
    pub(crate) fn came(&mut self, bytes: &[u8]) {
        if matches!(self.ids, Ids::Keyed(_)) {
            self.content.update(bytes);
        }
    }

    /// Takes the next record of the batch.
    pub(crate) fn take(&mut self, item: Item<'_>) {
        let Item { line, ordinal, record } = item;
        let result = match record {
            Ok(payload) => self.add(payload, line, ordinal).map_err(|problem| Refusal::of_problem(line, problem)),
            Err(refusal) => Err(refusal.into()),
        };
        if let Err(refusal) = result {
            self.refuse(refusal);
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.refused_by_code[refusal.code as usize] += 1;
        if self.refused.len() < REFUSALS_LISTED_MAX {
            self.refused_bytes += refusal.bytes();
            self.refused.push(refusal);
        }
    }

    fn add(&mut self, payload: &str, line: u32, number: u32) -> Result<(), Problem> {
        let slot = match self.slot {
            Some(slot) => slot,
            None => type_of(&mut self.types, payload)?,
        };
        self.types.get(slot).check()?;
        self.ack.check(self.types.get(slot))?;
        self.types.get(slot).check_payload(payload)?;
        match own_id(&self.envelope.source, self.types.get(slot), payload)? {
            Some(id) => {
                let content = self.content_of(payload.as_bytes());
                let type_id = self.types.get(slot).id;
                self.batch.own.push(Own { number: self.batch.records.len(), id, content, type_id });
                self.own_lines.push(line);
                self.encode(id, Some(content), slot, payload);
            }
            None => {
                let id = self.made_id(slot, number);
                self.encode(id, None, slot, payload);
            }
        }
        Ok(())
    }

    fn made_id(&mut self, slot: Slot, number: u32) -> EventId {
        match &self.ids {
            Ids::Generated(first) => id::numbered(*first, number),
            Ids::Keyed(key) => match self.keyed {
                Some((known, ids)) if known == slot => ids.id(number),
                _ => {
                    let ids = KeyedIds::new(&self.envelope.source, &self.types.get(slot).name, key);
                    self.keyed = Some((slot, ids));
                    ids.id(number)
                }
            },
        }
    }

    fn encode(&mut self, id: EventId, content: Option<u64>, slot: Slot, payload: &str) {
        let known = self.types.get(slot);
        let request_start = self.batch.records.is_empty();
        let record = self.envelope.record(known, id, payload.as_bytes());
        self.batch.records.push(&Record { request_start, request_end: false, content, ..record });
        let type_id = known.id;
        self.accepted += 1;
        match self.batch.types.iter_mut().rfind(|(counted, _)| *counted == type_id) {
            Some((_, count)) => *count += 1,
            None => self.batch.types.push((type_id, 1)),
        }
    }

    /// The hash of one record's bytes.
    fn content_of(&self, bytes: &[u8]) -> u64 {
        self.content.of(bytes)
    }

    /// Ends the batch.
    pub(crate) fn finish(&mut self) {
        self.batch.records.end_request();
        if let Ids::Keyed(key) = &self.ids {
            // The batch as a whole has no type: its records may have several.
            let id = KeyedIds::of_batch(&self.envelope.source, key);
            self.batch.key = Some(Given { id, content: self.content.value() });
        }
    }

    /// A batch of which each record is to be sent again later is refused as a whole, so that its client does just that.
    pub(crate) fn waits_for_a_store(&self) -> Option<Refused> {
        let all = self.accepted + self.refused_count();
        let waits = all > 0 && self.refused_by_code[Code::BacklogFull as usize] == all;
        waits.then(|| Problem::boxed(Code::BacklogFull, "too many events wait for the stores of the records' types"))
    }

    /// A batch with records of a type that `table` doesn't have any more is refused as a whole: its routes are closed.
    pub(crate) fn check_types(&self, table: &Arc<TypeTable>) -> Result<(), Problem> {
        self.types.first_gone(table).map_or(Ok(()), |known| Err(known.is_unknown()))
    }

    /// Bytes that the records take, and what is to be said of them, about. Both may be much more than what came in.
    pub(crate) fn bytes(&self) -> usize {
        let own = size_of_val(self.batch.own.as_slice()) + size_of_val(self.own_lines.as_slice());
        self.batch.records.bytes() + own + self.refused_bytes
    }

    /// How many records were refused.
    pub(crate) fn refused_count(&self) -> u64 {
        self.refused_by_code.iter().sum()
    }

    /// Refuses what is good too, and says nothing of what came before: its first copy may stand in this very batch, and
    /// nobody has waited until it is durable.
    pub(crate) fn refuse_all(&mut self) {
        self.batch = Batch::default();
        self.is_refused_for_some |= self.accepted + self.duplicates > 0;
        (self.accepted, self.duplicates) = (0, 0);
    }

    /// The types of the good records, those that came before too.
    pub(crate) fn type_names(&self) -> Vec<TypeName> {
        self.types.names(|id| self.batch.types.iter().any(|(counted, _)| *counted == id))
    }

    /// Gives the memory of the records back, and keeps what the answer says.
    pub(crate) fn forget_records(&mut self) {
        self.batch = Batch::default();
        self.own_lines = Vec::new();
    }

    /// The batch came before, as a whole.
    pub(crate) fn all_came_before(&mut self) {
        self.duplicates = std::mem::take(&mut self.accepted);
    }

    /// Sorts out what the log has met before: the first copies of duplicates are given, the others refused.
    pub(crate) fn take_met(&mut self) -> Vec<Earlier> {
        let again = std::mem::take(&mut self.batch.again);
        let others = std::mem::take(&mut self.batch.other_bytes);
        self.duplicates += again.len() as u64;
        self.accepted -= (again.len() + others.len()) as u64;
        for number in others {
            let at = self.batch.own.binary_search_by_key(&number, |own| own.number).unwrap_or_default();
            let line = self.own_lines.get(at).copied().unwrap_or_default();
            self.refuse(Refusal::of_problem(line, *other_bytes()));
        }
        again
    }
}
