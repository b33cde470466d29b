//! The suite that every sink must pass: what delivery relies on, tried on a real store through the sink and
//! checked by a way of its own. A new sink implements [`Subject`] and runs [`check`] and [`sequences`].

mod basics;
mod claims;
mod events;
mod faults;
mod marks;
mod reading;
mod sequences;
mod stand;
mod suite;

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::thread;

use event::EventId;

use crate::Sink;
pub use sequences::sequences;
use suite::Suite;

/// A store to try a sink on.
pub trait Subject: Sized + 'static {
    /// Whether the store tells a repetition from another event under the same id, and refuses the latter.
    /// Where it doesn't, the first event stays and the other counts as stored.
    const COMPARES: bool;

    /// Whether the store knows an event by its id. One of objects doesn't: it knows a batch by its lane and first position, takes
    /// every record, and gets only batches that are new or come again as they were.
    const KNOWS_IDS: bool = true;

    /// Whether nothing of a batch takes effect where one of its records is refused. What is several servers may have taken the others:
    /// then they are left out when the batch comes again, and the lane's cursor stands where it stood.
    const WITHHOLDS_ALL: bool = true;

    /// Whether each fresh store has a mark of its own; some are parts of one server, which has one.
    const HAS_OWN_MARK: bool = true;

    /// What keeps the store from answering, until it is dropped.
    type Hindrance: 'static;

    /// A payload as the store gives it back: byte for byte, unless it keeps values instead of texts.
    fn as_kept(payload: &[u8]) -> Vec<u8> {
        payload.to_vec()
    }

    /// A store of its own, with nothing in it.
    fn fresh() -> impl Future<Output = Self>;

    /// A further sink on this store, not connected yet.
    fn sink(&self) -> Sink;

    /// Everything stored, in any order, read past the sink.
    fn rows(&self) -> impl Future<Output = Vec<(EventId, Vec<u8>)>>;

    /// Sees to it that the store refuses the event `id` for good. Not asked of one that knows no ids.
    fn spoil(&self, id: EventId) -> impl Future<Output = ()>;

    /// Makes calls fail, or cuts them, until the hindrance is dropped. `stage` counts from 0 the ways and places
    /// to do so; `None` after the last.
    fn outage(&self, stage: usize) -> impl Future<Output = Option<Self::Hindrance>>;

    /// Makes the store stand still: it answers when the hindrance is dropped.
    fn stall(&self) -> impl Future<Output = Self::Hindrance>;
}

/// One of the situations that every sink must get right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// A batch without records moves the cursor, and nothing else.
    EmptyBatch,
    /// A batch of full size arrives byte for byte, whatever the payloads hold.
    FullBatch,
    /// One record of many is refused: it alone is named, and the others can be stored.
    BadRecord,
    /// The same batch twice, also over a second connection.
    SameBatchTwice,
    /// A batch that begins within the one before.
    OverlappingBatch,
    /// A stalled twin wakes up and writes what its successor has long written.
    LateTwin,
    /// A fenced store that has less than the lane knows to be stored takes nothing, whichever process asks.
    Floor,
    /// Higher, lower and equal revisions of one id, over batches and within one.
    Revisions,
    /// Another event under an id that is taken, by an earlier batch and by the same one.
    TakenId,
    /// Lanes of several shards, origins and sinks have cursors of their own.
    TwoLanes,
    /// A fenced store holds one process's claim on a lane, and takes no batch of another process.
    Claims,
    /// A store that was written without claims takes the first, and an exchange whose answer was lost can be repeated.
    ClaimsAgain,
    /// A claim by force sets the cursor.
    ClaimsByForce,
    /// All sinks on one store find the same mark, another store has another, and a batch for another store isn't written.
    Marks,
    /// The store fails at every stage and comes back.
    Outage,
    /// The store is slow: the sink waits without blocking its thread.
    Stall,
    /// The sink is dropped at some moment of a write.
    DroppedWhileWriting,
    /// The sink is closed at some moment of a write.
    ClosedWhileWriting,
    /// What is stored is read back byte for byte, page by page, while more is stored, and over another connection.
    ReadBack,
    /// Events are chosen by type and time, and by id.
    ReadChosen,
    /// A store that takes no writes is read all the same, and a bookmark that is none is refused.
    ReadWhileStalled,
}

impl Case {
    /// All of them.
    const ALL: [Self; 21] = [
        Self::EmptyBatch,
        Self::FullBatch,
        Self::BadRecord,
        Self::SameBatchTwice,
        Self::OverlappingBatch,
        Self::LateTwin,
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
        Self::ReadWhileStalled,
    ];
}

impl Case {
    const fn is_about_ids(self) -> bool {
        matches!(self, Self::BadRecord | Self::OverlappingBatch | Self::Revisions | Self::TakenId)
    }
}

/// Cases that are tried at the same time: most of their time goes to a store that works, or stands still.
const AT_ONCE: usize = 4;

/// Tries each case on a fresh store.
///
/// # Panics
/// Where the sink does anything but what it must; the message says what.
pub fn check<S: Subject>() {
    check_all(Suite::of::<S>());
}

fn check_all(suite: Suite) {
    let cases = Mutex::new(Case::ALL.into_iter());
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| std::iter::from_fn(next).for_each(|case| check_one(suite, case)));
        }
    });
}

fn check_one(suite: Suite, case: Case) {
    if !suite.knows_ids && case.is_about_ids() {
        return;
    }
    block_on(async {
        match case {
            Case::EmptyBatch => basics::empty_batch(suite).await,
            Case::FullBatch => basics::full_batch(suite).await,
            Case::BadRecord => basics::bad_record(suite).await,
            Case::SameBatchTwice => basics::same_batch_twice(suite).await,
            Case::OverlappingBatch => basics::overlapping_batch(suite).await,
            Case::LateTwin => basics::late_twin(suite).await,
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
            Case::ReadWhileStalled => reading::read_while_stalled(suite).await,
        }
    });
}

/// Runs `work` as a shard would: on one thread.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(work)
}
