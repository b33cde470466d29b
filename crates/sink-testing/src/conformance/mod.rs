//! The conformance suite of sinks. It tests the guarantees that delivery relies on: it calls the sink on a real store, and reads
//! the store without the sink. A new sink implements [`SinkHarness`] and runs [`check`] and [`sequences`].

mod basics;
mod claims;
mod events;
mod faults;
mod fixture;
mod marks;
mod reading;
mod sequences;
mod suite;

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::thread;

use event::EventId;

pub use sequences::sequences;
use sink::Sink;
use suite::Suite;

/// A store to test a sink on.
pub trait SinkHarness: Sized + 'static {
    /// Whether the store distinguishes a duplicate from another event under the same id, and rejects the latter. If
    /// not, the first event stays and the other counts as stored.
    const COMPARES: bool;

    /// Whether the store recognises an event by its id. A fenced log of messages doesn't: it recognises an event by its position and the
    /// lane's cursor alone, and keeps each revision of a result. A store of objects doesn't either: it recognises a batch by its lane and first
    /// position, accepts every record, and receives only new batches and exact duplicates.
    const RECOGNISES_IDS: bool = true;

    /// Whether the store rejects some events permanently.
    const REJECTS: bool = true;

    /// Whether nothing of a batch takes effect if one of its records is rejected. A store of several servers may have
    /// stored the others: they are then skipped when the batch is retried, and the lane's cursor is unchanged.
    const ALL_OR_NOTHING: bool = true;

    /// Whether a hindrance of one fresh store hinders the others too: then cases are tried one after the other.
    const SHARES_FAULTS: bool = false;

    /// Whether each fresh store has its own mark. Some are parts of one server with one mark.
    const HAS_OWN_MARK: bool = true;

    /// A fault that keeps the store from answering until it is dropped.
    type Fault: 'static;

    /// A payload as the store returns it: byte for byte, unless the store keeps parsed values.
    fn as_kept(payload: &[u8]) -> Vec<u8> {
        payload.to_vec()
    }

    /// A new, empty store.
    fn fresh() -> impl Future<Output = Self>;

    /// A further sink on this store, not connected yet.
    fn sink(&self) -> Sink;

    /// Everything stored, in any order, read without the sink.
    fn rows(&self) -> impl Future<Output = Vec<(EventId, Vec<u8>)>>;

    /// Makes the store reject the event `id`, whose payload is of [`LARGE`] bytes, permanently: for its id, or in a log
    /// for its size. Not called if the store rejects nothing.
    fn poison(&self, id: EventId) -> impl Future<Output = ()>;

    /// Makes calls fail, or cuts them, until the fault is dropped. `stage` counts the kinds and points of failure from 0;
    /// `None` after the last one.
    fn outage(&self, stage: usize) -> impl Future<Output = Option<Self::Fault>>;

    /// Stalls the store: it answers when the fault is dropped.
    fn stall(&self) -> impl Future<Output = Self::Fault>;
}

/// The size of a rejected event's payload, in bytes. The others of its batch have a twentieth of it at most.
pub const LARGE: usize = 4096;

/// A case that every sink must handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// A batch without records moves the cursor, and nothing else.
    EmptyBatch,
    /// A batch of full size arrives byte for byte, with any payloads.
    FullBatch,
    /// One record of many is rejected: only that one is reported, and the others can be stored.
    BadRecord,
    /// The same batch twice, also over a second connection.
    SameBatchTwice,
    /// A batch that overlaps the previous one.
    OverlappingBatch,
    /// A stalled sink resumes and writes a batch that its successor has written already.
    LateWriter,
    /// A transactional store that has less than the lane knows to be stored accepts nothing, from any process.
    Floor,
    /// Higher, lower and equal revisions of one id, over batches and within one.
    Revisions,
    /// Another event under a used id, of an earlier batch and of the same one.
    TakenId,
    /// Lanes of several shards, origins and sinks have separate cursors.
    TwoLanes,
    /// A transactional store holds one process's claim on a lane, and accepts no batch of another process.
    Claims,
    /// A store that was written without claims accepts the first one, and an exchange with a lost answer can be repeated.
    ClaimsAgain,
    /// A forced claim sets the cursor.
    ClaimsByForce,
    /// All sinks on one store read the same mark, another store has another mark, and a batch for another store isn't written.
    Marks,
    /// The store fails at every stage and recovers.
    Outage,
    /// The store is slow: the sink waits without blocking its thread.
    Stall,
    /// The sink is dropped during a write.
    DroppedWhileWriting,
    /// The sink is closed during a write.
    ClosedWhileWriting,
    /// Stored events are read back byte for byte, page by page, during writes, and over another connection.
    ReadBack,
    /// Reads filter by type and time, and by id.
    ReadChosen,
    /// Reads return the newest events first, without those that are stored during the read, and reject a bookmark of
    /// the other order.
    ReadNewestFirst,
    /// A store that accepts no writes can still be read, and an invalid bookmark is rejected.
    ReadWhileStalled,
}

impl Case {
    /// All cases.
    const ALL: [Self; 22] = [
        Self::EmptyBatch,
        Self::FullBatch,
        Self::BadRecord,
        Self::SameBatchTwice,
        Self::OverlappingBatch,
        Self::LateWriter,
        Self::Floor,
        Self::Revisions,
        Self::TakenId,
        Self::TwoLanes,
        Self::Claims,
        Self::ClaimsAgain,
        Self::ClaimsByForce,
        Self::Marks,
        Self::Outage,
        Self::Stall,
        Self::DroppedWhileWriting,
        Self::ClosedWhileWriting,
        Self::ReadBack,
        Self::ReadChosen,
        Self::ReadNewestFirst,
        Self::ReadWhileStalled,
    ];
}

/// Cases that run concurrently: they spend most of their time waiting for a store that works or stalls.
const AT_ONCE: usize = 4;

/// Runs each case on a fresh store.
///
/// # Panics
/// If the sink violates a case; the message names the violation.
pub fn check<S: SinkHarness>() {
    check_all(Suite::of::<S>());
}

fn check_all(suite: Suite) {
    let cases = Mutex::new(Case::ALL.into_iter());
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..if suite.shares_faults { 1 } else { AT_ONCE } {
            scope.spawn(|| std::iter::from_fn(next).for_each(|case| check_one(suite, case)));
        }
    });
}

fn check_one(suite: Suite, case: Case) {
    block_on(async {
        match case {
            Case::EmptyBatch => basics::empty_batch(suite).await,
            Case::FullBatch => basics::full_batch(suite).await,
            Case::BadRecord => basics::bad_record(suite).await,
            Case::SameBatchTwice => basics::same_batch_twice(suite).await,
            Case::OverlappingBatch => basics::overlapping_batch(suite).await,
            Case::LateWriter => basics::late_writer(suite).await,
            Case::Floor => basics::floor(suite).await,
            Case::Revisions => basics::revisions(suite).await,
            Case::TakenId => basics::taken_id(suite).await,
            Case::TwoLanes => basics::two_lanes(suite).await,
            Case::Claims => claims::one_at_a_time(suite).await,
            Case::ClaimsAgain => claims::upgrade_and_repetition(suite).await,
            Case::ClaimsByForce => claims::by_force(suite).await,
            Case::Marks => marks::marks(suite).await,
            Case::Outage => faults::outage(suite).await,
            Case::Stall => faults::stall(suite).await,
            Case::DroppedWhileWriting => faults::dropped_while_writing(suite).await,
            Case::ClosedWhileWriting => faults::closed_while_writing(suite).await,
            Case::ReadBack => reading::read_back(suite).await,
            Case::ReadChosen => reading::read_chosen(suite).await,
            Case::ReadNewestFirst => reading::read_newest_first(suite).await,
            Case::ReadWhileStalled => reading::read_while_stalled(suite).await,
        }
    });
}

/// Runs `work` on one thread, as a shard does.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be created").block_on(work)
}
