//! Turns payloads into records of the log: each is taken through the steps of its type, and gets its id. It holds all that it needs, so that the
//! records of a large batch can be made on another thread.

mod met;
mod put_off;
mod stepping;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use event::limits::{BLOCK_BYTES_MAX, REFUSALS_LISTED_MAX};
use event::{EventId, KeyedIds, Position, TypeName, id};
use eventlog::{AppendBatch, ContentHash, DedupKey, Record, SourceLine};
use pipeline::batch::{Form, Item};
use pipeline::json;
use pipeline::pointer::{JsonPointer, scalar_text};
use pipeline::{RefusalCode, Values};

use crate::ack::Ack;
use crate::answer::Refusal;
use crate::code::Code;
use crate::effort::{Much, Work};
use crate::headers::Headers;
use crate::problem::{Problem, Refused};
use crate::request::{DEFAULT_TYPE, check_key};
use crate::type_cache::{Slot, TypeCache};
use crate::type_table::{Known, TypeTable};
use put_off::PutOff;
use stepping::Stepping;

/// The type that a payload names by the configured pointer, or that it has by a rule.
///
/// # Errors
/// To find out is more work than there may be. Within: it is none that is taken.
pub(crate) fn type_of(types: &mut TypeCache, payload: &str, work: &mut Work) -> Result<Result<Slot, Problem>, Much> {
    let table = types.table().clone();
    let named = match &table.type_pointer {
        Some(pointer) => {
            work.pass(payload.len())?;
            pointer.lookup(payload).map(|raw| (pointer, raw))
        }
        None => None,
    };
    Ok(match named {
        Some(named) => type_at(types, named),
        None => types.find(table.choice.type_of(payload, work)?.map_or(DEFAULT_TYPE, TypeName::as_str)),
    })
}

/// The type that a payload names by what stands at the configured pointer.
fn type_at(types: &mut TypeCache, (pointer, raw): (&JsonPointer, &str)) -> Result<Slot, Problem> {
    let not_text = || Problem::new(Code::UnknownType, "the value is no text, so it names no type");
    let result = match scalar_text(raw) {
        Some(name) => types.find(&name),
        None => types.take_unknown(not_text()),
    };
    result.map_err(|problem| problem.with_pointer(pointer.as_str()))
}

/// The id that a payload of `source` has by its type's rules, if it has one. `null` is none.
///
/// # Errors
/// What stands there can't be an id.
pub(crate) fn own_id(source: &str, known: &Known, payload: &str) -> Result<Option<EventId>, Problem> {
    id_at(known.rules.id.as_ref(), (source, &known.name), payload)
}

/// The same for a payload of a source and a type, with the place of its id.
///
/// # Errors
/// As [`own_id`].
pub(crate) fn id_at(
    pointer: Option<&JsonPointer>,
    (source, name): (&str, &TypeName),
    payload: &str,
) -> Result<Option<EventId>, Problem> {
    let Some(pointer) = pointer else { return Ok(None) };
    let Some(raw) = pointer.lookup(payload).filter(|raw| *raw != "null") else { return Ok(None) };
    let text = id_text(raw).map_err(|problem| problem.with_pointer(pointer.as_str()))?;
    Ok(Some(KeyedIds::new(source, name, text.as_bytes()).id(0)))
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

/// The bytes of a record as they came, or their hash.
#[derive(Clone, Copy)]
pub(super) enum SentBytes<'a> {
    These(&'a [u8]),
    Hash(u64),
}

/// What was sent as one record.
pub(super) struct Sent<'a> {
    slot: Slot,
    bytes: SentBytes<'a>,
    line: u32,
    /// Its number among the records of the request.
    number: u32,
}

/// Why a record isn't added.
pub(super) enum Stop {
    Refused(Problem),
    /// It is more work than others should wait for.
    Much,
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<Much> for Stop {
    fn from(_: Much) -> Self {
        Self::Much
    }
}

/// What stands around the payloads of a request.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) received_at: i64,
    pub(crate) client: IpAddr,
    /// Who sent it; empty where nobody says.
    pub(crate) source: Arc<str>,
    /// What steps ask for.
    pub(crate) headers: Headers,
}

impl Envelope {
    /// An event with its id, and the time that it says of itself.
    pub(crate) fn record<'a>(
        &'a self,
        known: &'a Known,
        (id, event_time): (EventId, Option<i64>),
        payload: &'a str,
    ) -> Record<'a> {
        Record {
            id,
            received_at: self.received_at,
            event_time,
            type_name: known.name.as_str(),
            source: &self.source,
            client: Some(self.client),
            payload: payload.as_bytes(),
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
    /// Whether the request's head names just that one.
    pub(crate) is_named: bool,
    ids: Ids,
    ack: Ack,
    /// The ids of the key for the type that was last met: to hash again for each record would cost more than the rest.
    keyed: Option<(Slot, KeyedIds)>,
    content: ContentHash,
    /// How its records are told apart, and what its body begins with, white space aside.
    form: Form,
    begins_with: Option<u8>,
    stepping: Stepping,
    values: Values,
    /// What may be spent on records where it is now.
    work: Work,
    put_off: PutOff,
    /// Commits that had been refused when it began.
    pub(crate) refused_commits: u64,
    pub(crate) batch: AppendBatch,
    /// Bytes of its records.
    pub(crate) bytes_max: usize,
    /// The id of the first record.
    pub(crate) first_id: Option<EventId>,
    /// Where the first record stands, or of what came before its first copy.
    pub(crate) position: Option<Position>,
    /// Of what was sent, so much is taken: what steps have made several of counts once, and what they took out counts too.
    pub(crate) accepted: u64,
    /// How many of these steps took out.
    pub(crate) filtered: u64,
    pub(crate) duplicates: u64,
    /// Good records were refused because others had to be.
    pub(crate) is_refused_for_some: bool,
    pub(crate) refused: Vec<Refusal>,
    /// What these take in memory, about.
    refused_bytes: usize,
    pub(crate) refused_by_code: [u64; Code::ALL.len()],
    /// How many of these were refused for the sake of others alone.
    pub(crate) refused_for_others: u64,
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
            is_named: false,
            ids,
            ack: Ack::Disk,
            keyed: None,
            content,
            form: Form::Detect,
            begins_with: None,
            stepping: Stepping::default(),
            values: Values::default(),
            work: Work::inline(),
            put_off: PutOff::default(),
            refused_commits: 0,
            batch: AppendBatch::default(),
            bytes_max: BLOCK_BYTES_MAX,
            first_id: None,
            position: None,
            accepted: 0,
            filtered: 0,
            duplicates: 0,
            is_refused_for_some: false,
            refused: Vec::new(),
            refused_bytes: 0,
            refused_by_code: [0; Code::ALL.len()],
            refused_for_others: 0,
        }
    }

    /// Refuses the records that may not be acknowledged like this.
    pub(crate) const fn with_ack(mut self, ack: Ack) -> Self {
        self.ack = ack;
        self
    }

    /// What its records are told apart by, where it isn't its first byte.
    pub(crate) const fn with_form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Takes note of bytes that came: what comes again under the same key must be the same.
    pub(crate) fn came(&mut self, bytes: &[u8]) {
        if matches!(self.ids, Ids::Keyed(_)) {
            self.content.update(bytes);
            self.begins_with = self.begins_with.or_else(|| bytes.trim_ascii_start().first().copied());
        }
    }

    /// Takes the next record of the batch, or puts it off where it is more work than others should wait for.
    pub(crate) fn take(&mut self, item: Item<'_>) {
        // Behind one that was put off none is taken: their order is that in which they came.
        if self.is_behind() || self.take_now(&item) == Err(Much) {
            self.put_off.add(item);
        }
    }

    fn take_now(&mut self, item: &Item<'_>) -> Result<(), Much> {
        self.work.take_record()?;
        let Item { line, ordinal, record, raw } = item;
        let result = match record {
            Ok(payload) => self.add((payload, payload.as_bytes()), (*line, *ordinal), None),
            Err(refusal) if refusal.code == RefusalCode::Surrogate && self.types.table().repairs => {
                let came = (&*json::mend(raw), raw.trim_ascii());
                self.add(came, (*line, *ordinal), Some(Problem::of_refusal(refusal.clone())))
            }
            Err(refusal) => {
                self.refuse(refusal.clone().into());
                return Ok(());
            }
        };
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Much) => Err(Much),
            Err(Stop::Refused(problem)) => {
                self.refuse(Refusal::of_problem(*line, problem));
                Ok(())
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.refused_by_code[refusal.code as usize] += 1;
        if self.refused.len() < REFUSALS_LISTED_MAX {
            self.list(refusal);
        }
    }

    fn list(&mut self, refusal: Refusal) {
        self.refused_bytes += refusal.bytes();
        self.refused.push(refusal);
    }

    /// Adds what came, in these bytes, as this line and record. The payload may be mended: then that is its fault.
    fn add(
        &mut self,
        (payload, bytes): (&str, &[u8]),
        (line, number): (u32, u32),
        fault: Option<Problem>,
    ) -> Result<(), Stop> {
        let slot = match self.slot {
            Some(slot) => slot,
            None => type_of(&mut self.types, payload, &mut self.work)??,
        };
        self.types.get(slot).check()?;
        self.types.get(slot).check_mended(fault)?;
        self.ack.check(self.types.get(slot))?;
        if self.types.get(slot).reads_payloads() {
            self.work.read(payload.len())?;
        }
        let sent = Sent { slot, bytes: SentBytes::These(bytes), line, number };
        let mut values = std::mem::take(&mut self.values);
        let added = self.add_checked(&sent, payload, &mut values);
        values.forget();
        self.values = values;
        added?;
        self.accepted += 1;
        Ok(())
    }

    /// Adds what was sent if it is what its type's schema wants.
    fn add_checked(&mut self, sent: &Sent<'_>, payload: &str, values: &mut Values) -> Result<(), Stop> {
        let known = self.types.get(sent.slot);
        let payload = known.check_payload(payload, values, &mut self.work)??;
        if known.rules.steps.is_some() {
            return self.step(sent, payload);
        }
        self.put(sent, payload.payload()).map_err(Stop::from)
    }

    /// Adds a record with this payload for what was sent.
    pub(super) fn put(&mut self, sent: &Sent<'_>, payload: &str) -> Result<(), Problem> {
        let known = self.types.get(sent.slot);
        let payload = known.storable(payload)?;
        let own = own_id(&self.envelope.source, known, &payload)?;
        let (content, time) = (own.map(|_| self.content_of(sent)), known.time_of(&payload)?);
        let id = own.unwrap_or_else(|| self.made_id(sent));
        self.push(sent, (id, content), time, &payload);
        Ok(())
    }

    /// The hash of what was sent as one record.
    fn content_of(&self, sent: &Sent<'_>) -> u64 {
        match sent.bytes {
            SentBytes::These(bytes) => self.content.of(bytes),
            SentBytes::Hash(hash) => hash,
        }
    }

    /// Adds a record. If its id is the client's own, `content` is the hash of the bytes that a repeated event is compared by.
    pub(super) fn push(
        &mut self,
        sent: &Sent<'_>,
        (id, content): (EventId, Option<u64>),
        time: Option<i64>,
        payload: &str,
    ) {
        let known = self.types.get(sent.slot);
        let request_start = self.batch.records().is_empty();
        let record = self.envelope.record(known, (id, time), payload);
        let line = SourceLine { number: sent.line, type_id: known.id };
        self.batch.push(&Record { request_start, request_end: false, content, ..record }, line);
        self.first_id.get_or_insert(id);
    }

    pub(super) fn made_id(&mut self, sent: &Sent<'_>) -> EventId {
        let Sent { slot, number, .. } = *sent;
        match &self.ids {
            Ids::Generated(first) => id::numbered(*first, self.batch.records().len() + 1),
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

    /// Ends the batch.
    pub(crate) fn finish(&mut self) {
        self.batch.end_request();
        self.batch.options.is_partial = self.refused_count() > 0 || self.leans_on_others();
        if let Ids::Keyed(key) = &self.ids {
            if self.form == Form::Lines && self.begins_with == Some(b'[') {
                // As an array the same bytes are other records.
                self.content.update(b"lines");
            }
            let type_name = self.slot.filter(|_| self.is_named).map(|slot| &self.types.get(slot).name);
            let id = KeyedIds::of_batch(&self.envelope.source, type_name, key);
            self.batch.set_key(DedupKey { id, content: self.content.value() });
        }
        if self.batch.options.is_partial {
            self.batch.index_individually();
        }
    }

    /// A batch of which each record is to be sent again later is refused as a whole, so that its client does just that.
    pub(crate) fn waits_for_a_store(&self) -> Option<Refused> {
        let all = self.accepted + self.refused_count();
        let waits = all > 0 && self.refused_by_code[Code::BacklogFull as usize] == all;
        waits.then(|| Problem::boxed(Code::BacklogFull, "too many events wait for the stores of the records' types"))
    }

    /// A batch that was made by other rules than those of `table` is refused as a whole, for its routes are those of `table`.
    pub(crate) fn check_types(&self, table: &Arc<TypeTable>) -> Result<(), Problem> {
        let own = self.types.table();
        if Arc::ptr_eq(own, table) {
            return self.check_changing();
        }
        self.types.check_met(table)?;
        let has_unknown = own.has_unknown() || self.refused_by_code[Code::UnknownType as usize] > 0;
        if !self.is_named && !(own.tells_as(table) && (!has_unknown || own.knows_as(table))) {
            return Err(Problem::changing());
        }
        self.check_changing()
    }

    /// So is one with records that were met while their rules were changing.
    fn check_changing(&self) -> Result<(), Problem> {
        if self.refused_by_code[Code::NotReady as usize] > 0 { Err(Problem::changing()) } else { Ok(()) }
    }

    /// Bytes that the records take, and what is to be said of them, about. Both may be much more than what came in.
    pub(crate) fn bytes(&self) -> usize {
        self.batch.bytes() + self.refused_bytes + self.put_off.bytes()
    }

    /// How many records were refused.
    pub(crate) fn refused_count(&self) -> u64 {
        self.refused_by_code.iter().sum()
    }

    /// How many of these may be taken when they are sent again.
    pub(crate) fn refused_for_now(&self) -> u64 {
        let transient = Code::ALL.into_iter().filter(|code| code.is_transient());
        transient.map(|code| self.refused_by_code[code as usize]).sum()
    }

    /// Refuses what is good too, and says nothing of what came before: its first copy may stand in this very batch, and
    /// nobody has waited until it is durable.
    pub(crate) fn refuse_all(&mut self) {
        self.batch = AppendBatch::default();
        self.is_refused_for_some |= self.accepted + self.duplicates > 0;
        (self.accepted, self.duplicates, self.filtered) = (0, 0, 0);
        self.stepping.forget();
    }

    /// The types of the good records, those that came before too.
    pub(crate) fn types(&self) -> impl Iterator<Item = &Known> {
        self.types.met(|id| self.batch.type_counts().iter().any(|(counted, _)| *counted == id))
    }

    /// Gives the memory of the records back, and keeps what the answer says.
    pub(crate) fn forget_records(&mut self) {
        self.batch = AppendBatch::default();
    }
}
