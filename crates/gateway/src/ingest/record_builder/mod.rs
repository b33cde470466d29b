//! Builds the records of a request: it runs each payload through the ingest pipeline and encodes the result. It owns all that it needs,
//! so a thread of the worker pool can continue a batch, or process a costly event.

mod dedup_result;
mod deferred;
mod filtered;
mod source_numbers;
mod tallied;
mod verdicts;

use std::sync::Arc;

use access::PartialStatus;
use event::{EventId, KeyedIds, Position, TypeName, id};
use eventlog::{AppendBatch, ContentHash, DedupKey, JournalRecord, SourceLine};
use intake::Verdicts;
use json::RejectionCode;
use json::batch::{Form, Item};
use limits::{BLOCK_BYTES_MAX, REFUSALS_LISTED_MAX};
use tap::Taps;
use transform::Filtered;

use super::ack_mode::AckMode;
use super::envelope::Envelope;
use super::ids::{ChosenBy, RequestKey};
use super::params::IngestParams;
use super::pipeline::{Event, Input, Made, Pipeline, PipelineError, Processed, Unobserved, Workspace};
use super::rejected_record::RejectedRecord;
use super::request_budget::RequestBudget;
use super::windows::{Epoch, WindowSet};
use crate::error_code::ErrorCode;
use crate::event_types::{CostBudget, OverBudget, Slot, TypeCache, TypeEntry, TypeRegistry};
use crate::problem::{Problem, Refused};
use crate::refusals::RefusalTally;
use deferred::DeferredRecords;
use filtered::FilteredEvents;
use source_numbers::SourceNumbers;

/// The bytes of a record as the client sent them, or their hash.
#[derive(Clone, Copy)]
enum RawBytes<'a> {
    These(&'a [u8]),
    Hash(u64),
}

/// What was sent as one record.
struct SourceRecord<'a> {
    slot: Slot,
    /// By [`SourceNumbers`].
    number: u32,
    bytes: RawBytes<'a>,
}

/// The worker pool's result for a costly event.
pub(crate) struct Offloaded {
    pub(crate) builder: RecordBuilder,
    /// The type, by whose rules it was processed.
    pub(crate) entry: TypeEntry,
    /// The event; nothing of several, which are in the builder.
    pub(crate) made: Made<'static>,
    /// The hash of the bytes that were sent.
    pub(crate) content: u64,
}

/// The records of a request, and what was rejected.
pub(crate) struct RecordBuilder {
    envelope: Envelope,
    types: TypeCache,
    /// The type of all records, unless each names its own.
    slot: Option<Slot>,
    /// Whether the request names just that type.
    is_named: bool,
    key: Option<Box<[u8]>>,
    /// Whether the key is the digest of the body.
    has_digest: bool,
    /// What became of each record, if the response names it.
    pub(crate) verdicts: Option<Verdicts>,
    /// The number of the ids that neither a payload nor the key gives.
    generated: EventId,
    ack: AckMode,
    keyed: Option<(Slot, KeyedIds)>,
    content: ContentHash,
    /// How its records are separated, and the first byte of its body that isn't white space.
    form: Form,
    begins_with: Option<u8>,
    pub(crate) windows: WindowSet,
    filtered_events: FilteredEvents,
    sources: SourceNumbers,
    /// What the records may cost where it is processed now.
    budget: CostBudget,
    deferred: DeferredRecords,
    /// Commits that had been rejected when it began.
    pub(crate) refused_commits: u64,
    pub(crate) batch: AppendBatch,
    /// Bytes of its records.
    pub(crate) bytes_max: usize,
    /// Those who watch events pass.
    pub(crate) taps: &'static Taps,
    /// The id of the first record.
    pub(crate) first_id: Option<EventId>,
    /// The position of the first record, or of its original.
    pub(crate) position: Option<Position>,
    /// How many of the sent records are accepted: one that became several counts once, and one that was dropped counts too.
    pub(crate) accepted: u64,
    /// How many of these were dropped.
    pub(crate) filtered: u64,
    pub(crate) duplicates: u64,
    /// Good records were rejected because others had to be.
    pub(crate) is_refused_for_some: bool,
    /// Every type of the batch so far allows 200 although records are rejected.
    allows_partial_ok: bool,
    pub(crate) refused: Vec<RejectedRecord>,
    /// About how many bytes these take in memory.
    refused_bytes: usize,
    pub(crate) refused_by_code: [u64; ErrorCode::ALL.len()],
    /// How many of these were rejected because of others alone.
    pub(crate) refused_for_others: u64,
    /// What is counted, logged and quarantined of them.
    pub(crate) tally: RefusalTally,
}

impl RecordBuilder {
    /// A builder for records that are all of the type at `slot`, unless each names its own.
    pub(crate) fn new(
        params: &IngestParams,
        slot: Option<Slot>,
        envelope: Envelope,
        types: &TypeCache,
        generated: EventId,
        content: ContentHash,
    ) -> Self {
        let mut own = TypeCache::new(types.table().clone());
        let slot = slot.map(|slot| own.add(types.get(slot).clone()));
        Self {
            envelope,
            types: own,
            slot,
            is_named: params.is_named,
            key: params.key.clone(),
            has_digest: false,
            verdicts: None,
            generated,
            ack: params.ack,
            keyed: None,
            content,
            form: params.form,
            begins_with: None,
            windows: WindowSet::default(),
            filtered_events: FilteredEvents::default(),
            sources: SourceNumbers::default(),
            budget: CostBudget::inline(),
            deferred: DeferredRecords::default(),
            refused_commits: 0,
            batch: AppendBatch::default(),
            bytes_max: BLOCK_BYTES_MAX,
            taps: Taps::closed(),
            first_id: None,
            position: None,
            accepted: 0,
            filtered: 0,
            duplicates: 0,
            is_refused_for_some: false,
            allows_partial_ok: true,
            refused: Vec::new(),
            refused_bytes: 0,
            refused_by_code: [0; ErrorCode::ALL.len()],
            refused_for_others: 0,
            tally: RefusalTally::default(),
        }
    }

    /// Hashes bytes of the body: a batch with the same key must have the same bytes.
    pub(crate) fn hash_input(&mut self, bytes: &[u8]) {
        if self.key.is_some() {
            self.content.update(bytes);
            // The bytes of a byte order mark are skipped too: chunks may divide it.
            let is_mark = |byte: &u8| matches!(byte, 0xef | 0xbb | 0xbf);
            let mut begins = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace() && !is_mark(byte));
            self.begins_with = self.begins_with.or_else(|| begins.next());
        }
    }

    /// Processes the next record of a batch, or defers it if it costs more than other requests should wait for.
    pub(crate) fn take(&mut self, item: Item<'_>, workspace: &mut Workspace) {
        // After a deferred record all are deferred: their order is that of the batch.
        if self.has_deferred() || self.process(&item, workspace) == Err(OverBudget) {
            self.deferred.add(item);
        }
    }

    fn process(&mut self, item: &Item<'_>, workspace: &mut Workspace) -> Result<(), OverBudget> {
        // A record that is rejected opens no type.
        let is_rejected = item.record.as_ref().is_err_and(|refusal| refusal.code != RejectionCode::Surrogate);
        let named = item.type_name.filter(|_| !is_rejected);
        let slot = match named.map(|name| self.types.find(name)).transpose() {
            Ok(slot) => slot.or(self.slot),
            Err(problem) => {
                self.reject_item(item, problem);
                return Ok(());
            }
        };
        let processed =
            self.pipeline(slot, item.id, Some(item.ordinal)).run(Input::Record(item), workspace, &mut Unobserved);
        let result = match processed {
            Ok(processed) => {
                self.add(item, processed);
                Ok(())
            }
            Err(PipelineError::Rejected(problem)) => {
                self.reject_item(item, problem);
                Ok(())
            }
            Err(PipelineError::OverBudget) => Err(OverBudget),
        };
        workspace.forget();
        result
    }

    /// Processes a costly event on a thread of the worker pool. Profiles show its time below this name, so it is never inlined.
    ///
    /// # Errors
    /// It is rejected.
    #[inline(never)]
    pub(crate) fn process_event(mut self, bytes: &[u8]) -> Result<Offloaded, Refused> {
        self.budget = CostBudget::unlimited();
        let mut workspace = Workspace::default();
        let processed = self.pipeline(self.slot, None, None).run(Input::Bytes(bytes), &mut workspace, &mut Unobserved);
        let Processed { slot, made, .. } = processed.map_err(PipelineError::into_problem)?;
        let (entry, content) = (self.types.get(slot).clone(), self.content.of(bytes));
        let made = match made {
            Made::One(event) => Made::One(event.into_owned()),
            Made::Filtered(by) => Made::Filtered(by),
            Made::Several { events, filtered } => {
                self.slot = Some(slot);
                self.fan_out(content, events, filtered);
                Made::Several { events: Vec::new(), filtered: Vec::new() }
            }
        };
        Ok(Offloaded { builder: self, entry, made, content })
    }

    fn reject_item(&mut self, item: &Item<'_>, problem: Problem) {
        self.tally_item(item, &problem);
        self.note_type_of(&problem);
        self.note_verdict(item.line, &problem);
        self.reject(RejectedRecord::of_problem(item.line, item.value, problem));
    }

    fn pipeline<'p>(&'p mut self, named: Option<Slot>, id: Option<&'p [u8]>, number: Option<u32>) -> Pipeline<'p> {
        let room =
            RequestBudget::remaining(self.batch.records().len() as usize, self.batch.records().bytes(), self.bytes_max);
        Pipeline {
            types: &mut self.types,
            named,
            ack: self.ack,
            context: self.envelope.context(),
            key: RequestKey {
                id,
                is_digest: self.has_digest,
                key: self.key.as_deref(),
                number,
                keyed: &mut self.keyed,
            },
            hash: &self.content,
            windows: &mut self.windows,
            epoch: Epoch::Known(self.refused_commits),
            room,
            budget: &mut self.budget,
            taps: self.taps,
        }
    }

    fn reject(&mut self, rejection: RejectedRecord) {
        self.refused_by_code[rejection.code as usize] += 1;
        if self.refused.len() < REFUSALS_LISTED_MAX {
            self.list(rejection);
        }
    }

    fn list(&mut self, rejection: RejectedRecord) {
        self.refused_bytes += rejection.bytes();
        self.refused.push(rejection);
    }

    /// Adds the pipeline's result for a record of a batch.
    fn add(&mut self, item: &Item<'_>, processed: Processed<'_>) {
        let Processed { slot, made, depends_on_duplicates } = processed;
        self.allows_partial_ok &= self.types.get(slot).rules.partial == PartialStatus::Ok;
        let bytes = item.record.as_ref().map_or_else(|_| item.raw.trim_ascii(), |payload| payload.as_bytes());
        let number = self.sources.add(item);
        let mut source = SourceRecord { slot, number, bytes: RawBytes::These(bytes) };
        if depends_on_duplicates {
            self.batch.add_dependent_line(number);
            self.filtered_events.add_dependent(number, slot, &made);
        }
        match made {
            Made::One(event) => self.append(&mut source, event),
            Made::Filtered(by) => {
                self.filtered_events.count(slot, by);
                self.filtered += 1;
            }
            Made::Several { events, filtered } => self.append_all(&mut source, events, filtered),
        }
        self.accepted += 1;
    }

    /// Adds the events that a single one has become. `content` is the hash of the bytes that were sent. To its client they are one event.
    pub(crate) fn fan_out(&mut self, content: u64, events: Vec<Event<'_>>, filtered: Vec<Filtered>) {
        let Some(slot) = self.slot else { return };
        self.append_all(&mut SourceRecord { slot, number: 0, bytes: RawBytes::Hash(content) }, events, filtered);
        self.accepted += 1;
        self.batch.end_request();
        let have_ids = self.batch.have_own_ids();
        if let (Some(key), false) = (&self.key, have_ids) {
            let id = KeyedIds::new(&self.envelope.source, &self.types.get(slot).name, key).id(0);
            self.batch.set_key(DedupKey { id, content });
        }
        if self.depends_on_others() {
            self.batch.index_individually();
        }
        self.batch.options.atomic = true;
    }

    fn append_all(&mut self, source: &mut SourceRecord<'_>, events: Vec<Event<'_>>, filtered: Vec<Filtered>) {
        self.filtered += u64::from(events.is_empty());
        events.into_iter().for_each(|event| self.append(source, event));
        filtered.into_iter().for_each(|by| self.filtered_events.count(source.slot, by));
    }

    /// Appends a record.
    fn append(&mut self, source: &mut SourceRecord<'_>, event: Event<'_>) {
        let Event { payload, id: chosen, time } = event;
        let entry = self.types.get(source.slot);
        let content = chosen.and_then(|chosen| match chosen.by {
            ChosenBy::Sender => Some(source.hash(&self.content)),
            ChosenBy::Element(hash) => Some(hash),
            // The key of a batch has a hash of the whole.
            ChosenBy::Key => None,
            // Equal ids have equal bytes.
            ChosenBy::Content => Some(self.content.of(&chosen.id.0)),
        });
        let number = self.batch.records().len();
        let id = chosen.map_or_else(|| id::numbered(self.generated, number + 1), |chosen| chosen.id);
        let line = SourceLine { number: source.number, type_id: entry.id };
        let record = self.envelope.record(entry, id, entry.count_time(time), &payload);
        self.batch.push(&JournalRecord { request_start: number == 0, request_end: false, content, ..record }, line);
        self.first_id.get_or_insert(id);
    }

    /// Ends the batch.
    pub(crate) fn finish(&mut self) {
        self.batch.end_request();
        if let Some(key) = &self.key {
            if self.form == Form::Lines && self.begins_with == Some(b'[') {
                // As an array the same bytes are other records.
                self.content.update(b"lines");
            }
            let type_name = self.slot.filter(|_| self.is_named).map(|slot| &self.types.get(slot).name);
            let id = KeyedIds::of_batch(&self.envelope.source, type_name, key);
            self.batch.set_key(DedupKey { id, content: self.content.value() });
        }
        if self.refused_count() > 0 || self.depends_on_others() {
            self.batch.index_individually();
        }
    }

    /// A batch of which each record must be retried later is rejected as a whole, so its client does just that.
    pub(crate) fn waits_for_a_store(&self) -> Option<Refused> {
        let all = self.accepted + self.refused_count();
        let waits = all > 0 && self.refused_by_code[ErrorCode::BacklogFull as usize] == all;
        waits.then(|| {
            Problem::boxed(ErrorCode::BacklogFull, "sinks of the records' types have reached max_backlog; retry later")
        })
    }

    /// A batch that was processed by other rules than those of `table` is rejected as a whole, for its routes are those of `table`.
    pub(crate) fn check_types(&self, table: &Arc<TypeRegistry>) -> Result<(), Problem> {
        let own = self.types.table();
        if Arc::ptr_eq(own, table) {
            return self.check_changing();
        }
        self.types.check_used(table)?;
        let has_unknown = own.has_unknown() || self.refused_by_code[ErrorCode::UnknownType as usize] > 0;
        if !self.is_named && !(own.resolves_like(table) && (!has_unknown || own.same_types_as(table))) {
            return Err(Problem::changing());
        }
        self.check_changing()
    }

    /// So is one with records that were processed while their rules were changing.
    fn check_changing(&self) -> Result<(), Problem> {
        if self.refused_by_code[ErrorCode::NotReady as usize] > 0 { Err(Problem::changing()) } else { Ok(()) }
    }

    /// About how many bytes the records and the rejections take. Both may be much more than the body.
    pub(crate) fn bytes(&self) -> usize {
        let verdicts = self.verdicts.as_ref().map_or(0, Verdicts::bytes);
        let kept = self.deferred.bytes() + self.sources.bytes() + self.tally.bytes() + verdicts;
        self.batch.bytes() + self.refused_bytes + kept
    }

    /// How many records were rejected.
    pub(crate) fn refused_count(&self) -> u64 {
        self.refused_by_code.iter().sum()
    }

    /// How many of these may be accepted when they are sent again.
    pub(crate) fn refused_for_now(&self) -> u64 {
        let transient = ErrorCode::ALL.into_iter().filter(|code| code.is_transient());
        transient.map(|code| self.refused_by_code[code as usize]).sum()
    }

    /// A record with this problem is rejected. One whose type isn't known has no type that allows 200.
    fn note_type_of(&mut self, problem: &Problem) {
        let allows = |name: &TypeName| self.types.table().allows_partial_ok(name);
        self.allows_partial_ok &= problem.type_name.as_deref().is_some_and(allows);
    }

    /// The status if some records are accepted and others are rejected. The setting of the token wins over those of types. Records that must
    /// be sent again later always give 207: with 200 they would be lost. So do records that `refused_to` doesn't keep, or keeps in part.
    pub(crate) fn partial_status(&self) -> PartialStatus {
        let is_kept = self.tally.kept == self.refused_count();
        let of_types = if self.allows_partial_ok && is_kept { PartialStatus::Ok } else { PartialStatus::MultiStatus };
        match self.refused_for_now() {
            0 => self.envelope.partial.unwrap_or(of_types),
            _ => PartialStatus::MultiStatus,
        }
    }

    /// Rejects the good records too, and forgets the duplicates: an original may be in this very batch, and hasn't become durable.
    pub(crate) fn refuse_all(&mut self) {
        self.batch = AppendBatch::default();
        self.is_refused_for_some |= self.accepted + self.duplicates > 0;
        (self.accepted, self.duplicates, self.filtered) = (0, 0, 0);
        self.windows.clear();
        self.filtered_events = FilteredEvents::default();
    }

    /// The types of the good records and of the duplicates.
    pub(crate) fn types(&self) -> impl Iterator<Item = &TypeEntry> {
        self.types.used(|id| self.batch.type_counts().iter().any(|(counted, _)| *counted == id))
    }

    /// Frees the records, and keeps what the response says.
    pub(crate) fn forget_records(&mut self) {
        self.batch = AppendBatch::default();
    }
}

impl SourceRecord<'_> {
    /// The hash of the sent bytes: it distinguishes a duplicate from another event with the same id.
    fn hash(&mut self, content: &ContentHash) -> u64 {
        let hash = match self.bytes {
            RawBytes::These(bytes) => content.of(bytes),
            RawBytes::Hash(hash) => hash,
        };
        self.bytes = RawBytes::Hash(hash);
        hash
    }
}
