//! Turns payloads into records of the log: each gets its type and its id. It holds all that it needs, so that the
//! records of a large batch can be made on another thread.

use std::borrow::Cow;
use std::net::IpAddr;

use event::limits::REFUSALS_LISTED_MAX;
use event::{EventId, KeyedIds, id};
use eventlog::{Record, Records, TypeId};
use pipeline::batch::Item;
use pipeline::pointer::scalar_text;

use crate::answer::Refusal;
use crate::code::Code;
use crate::problem::Problem;
use crate::request::{DEFAULT_TYPE, check_key};
use crate::type_cache::{Slot, TypeCache};
use crate::type_table::Known;

/// The source of all events while there are no tokens.
pub(crate) const SOURCE: &str = "";

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

/// The id that a payload has by its type's rules, if it has one. `null` is none.
///
/// # Errors
/// What stands there can't be an id.
pub(crate) fn own_id(known: &Known, payload: &str) -> Result<Option<EventId>, Problem> {
    let Some(pointer) = &known.rules.id else { return Ok(None) };
    let Some(raw) = pointer.lookup(payload).filter(|raw| *raw != "null") else { return Ok(None) };
    let text = id_text(raw).map_err(|problem| problem.with_pointer(pointer.as_str()))?;
    Ok(Some(KeyedIds::new(SOURCE, &known.name, text.as_bytes()).id(0)))
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) received_at: i64,
    pub(crate) client: IpAddr,
}

impl Envelope {
    pub(crate) fn record<'a>(&self, known: &'a Known, id: EventId, payload: &'a [u8]) -> Record<'a> {
        Record {
            id,
            received_at: self.received_at,
            event_time: None,
            type_name: known.name.as_str(),
            source: SOURCE,
            client: Some(self.client),
            payload,
            request_start: true,
            request_end: true,
            dead: None,
        }
    }
}

/// The records of a batch, and what was refused.
#[derive(Debug)]
pub(crate) struct Encoder {
    envelope: Envelope,
    types: TypeCache,
    /// The type of all records, unless each names its own.
    slot: Option<Slot>,
    ids: Ids,
    /// The ids of the key for the type that was last met: to hash again for each record would cost more than the rest.
    keyed: Option<(Slot, KeyedIds)>,
    pub(crate) records: Records,
    pub(crate) counts: Vec<(TypeId, u64)>,
    pub(crate) accepted: u64,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) refused_by_code: [u64; Code::ALL.len()],
}

impl Encoder {
    pub(crate) fn new(envelope: Envelope, mut types: TypeCache, known: Option<Known>, ids: Ids) -> Self {
        let slot = known.map(|known| types.add(known));
        Self {
            envelope,
            types,
            slot,
            ids,
            keyed: None,
            records: Records::default(),
            counts: Vec::new(),
            accepted: 0,
            refused: Vec::new(),
            refused_by_code: [0; Code::ALL.len()],
        }
    }

    /// Takes the next record of the batch.
    pub(crate) fn take(&mut self, item: Item<'_>) {
        let Item { line, ordinal, record } = item;
        let result = match record {
            Ok(payload) => self.add(payload, ordinal).map_err(|problem| Refusal::of_problem(line, problem)),
            Err(refusal) => Err(refusal.into()),
        };
        if let Err(refusal) = result {
            self.refused_by_code[refusal.code as usize] += 1;
            if self.refused.len() < REFUSALS_LISTED_MAX {
                self.refused.push(refusal);
            }
        }
    }

    fn add(&mut self, payload: &str, number: u32) -> Result<(), Problem> {
        let slot = match self.slot {
            Some(slot) => slot,
            None => type_of(&mut self.types, payload)?,
        };
        let id = match own_id(self.types.get(slot), payload)? {
            Some(id) => id,
            None => self.made_id(slot, number),
        };
        self.encode(id, slot, payload);
        Ok(())
    }

    fn made_id(&mut self, slot: Slot, number: u32) -> EventId {
        match &self.ids {
            Ids::Generated(first) => id::numbered(*first, number),
            Ids::Keyed(key) => match self.keyed {
                Some((known, ids)) if known == slot => ids.id(number),
                _ => {
                    let ids = KeyedIds::new(SOURCE, &self.types.get(slot).name, key);
                    self.keyed = Some((slot, ids));
                    ids.id(number)
                }
            },
        }
    }

    fn encode(&mut self, id: EventId, slot: Slot, payload: &str) {
        let known = self.types.get(slot);
        let request_start = self.records.is_empty();
        let record = self.envelope.record(known, id, payload.as_bytes());
        self.records.push(&Record { request_start, request_end: false, ..record });
        let type_id = known.id;
        self.accepted += 1;
        match self.counts.iter_mut().rfind(|(counted, _)| *counted == type_id) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((type_id, 1)),
        }
    }

    /// Ends the batch.
    pub(crate) fn finish(&mut self) {
        self.records.end_request();
    }
}
