//! Tests of a store whose connections are cut or freeze, and whose server is killed.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use event::EventId;
use sink::{Cursor, Sink, SinkError, WriteOutcome};
use testkit::proxy::Proxy;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::events::{deliver, lane, plain};

/// The timeout of a step that a working store completes immediately, also on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Batches that must be stored between two kills.
const BATCHES_BETWEEN_KILLS: u64 = 3;

/// A store after a proxy.
pub trait FaultHarness {
    /// A new sink that connects through the proxy.
    fn sink(&self) -> Sink;

    /// A new sink on the same store that connects another way.
    fn past_the_proxy(&self) -> Sink;

    /// The proxy.
    fn proxy(&self) -> &Proxy;

    /// The number of stored events, read without the sink. Panics if one is stored twice.
    fn count(&self) -> impl Future<Output = u64>;
}

/// The number of events with these `ids`, which are in the store's order.
///
/// # Panics
/// If the events of a lane aren't in the order of the journal, each once.
#[must_use]
pub fn count_in_order(ids: impl IntoIterator<Item = EventId>) -> u64 {
    let (mut last, mut count) = (BTreeMap::new(), 0);
    for id in ids {
        let before = last.insert([id.0[6], id.0[7]], id);
        assert!(before < Some(id), "each once, in the order of the journal: {before:?}, {id}");
        count += 1;
    }
    count
}

/// The bytes of the server's answers between two cuts.
#[derive(Clone, Copy, Debug)]
pub struct CutStep {
    /// For a connection that begins with the cut.
    pub new: usize,
    /// For a connection that was open before.
    pub open: usize,
}

impl CutStep {
    /// Each byte, if the environment has a value for `all`.
    #[must_use]
    pub fn unless_all(self, all: Option<String>) -> Self {
        if all.is_some() { Self { new: 1, open: 1 } } else { self }
    }
}

/// Cuts the connection after more and more bytes of the server's answers. Each batch must be stored once, and what was answered to be stored
/// must be in the store.
///
/// # Panics
/// If the store violates this, or fewer than `cuts_min` cuts were tried.
pub async fn cut_at_any_byte(harness: &impl FaultHarness, step: CutStep, cuts_min: usize) {
    let (mut first, mut cuts, mut failed) = (1, 0, 0);
    for (is_open, step) in [(false, step.new), (true, step.open)] {
        let mut sink = harness.sink();
        for at in (0..).step_by(step) {
            if is_open {
                open(&sink, first - 1).await;
            } else {
                sink = harness.sink();
            }
            let batch = plain(0, first, 3);
            let before = harness.proxy().answered();
            let cut = harness.proxy().cut_after(at);
            let answer = sink.write(&batch).await;
            let is_cut = harness.proxy().answered() - before == at;
            drop(cut);
            assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
            if answer == Ok(WriteOutcome::Committed) {
                // The last byte of the answer may be the one before the cut.
                assert!(!is_cut || at > 0, "{answer:?} without an answer of the server");
                assert_eq!(harness.count().await, batch.last(), "{answer:?} after {at} bytes");
            } else {
                failed += 1;
            }
            deliver(&sink, &batch).await;
            (first, cuts) = (first + 3, cuts + 1);
            if !is_cut {
                break;
            }
        }
    }
    assert!(cuts > cuts_min && failed * 2 > cuts, "{cuts} cuts, of which {failed} failed a write");
    expect_stored(harness, first - 1).await;
}

/// Freezes a connection after each of these numbers of bytes, in a batch of `records`, and stores the batch over another connection. What
/// arrives after the thaw must change nothing.
///
/// # Panics
/// If the store violates this.
pub async fn freeze_and_thaw(harness: &impl FaultHarness, places: &[usize], records: usize) {
    let other = harness.past_the_proxy();
    let (mut first, mut frozen_midway) = (1, 0);
    for at in places {
        let frozen = harness.sink();
        open(&frozen, first - 1).await;
        let freeze = harness.proxy().freeze_after(*at);
        let batch = plain(0, first, records);
        let (sink, sent) = (frozen.clone(), batch.clone());
        let write = tokio::spawn(async move { sink.write(&sent).await });
        while !harness.proxy().is_frozen() && !write.is_finished() {
            sleep(Duration::from_millis(1)).await;
        }
        if *at > 0 && harness.proxy().is_frozen() {
            frozen_midway += 1;
        }
        deliver(&other, &batch).await;
        drop(freeze);
        let answer = timeout(PATIENCE, write).await.expect("a thawed connection ends").expect("a write doesn't panic");
        assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?}");
        let last = batch.last() + 1;
        assert_eq!(other.write(&plain(0, last, 1)).await, Ok(WriteOutcome::Committed));
        deliver(&frozen, &batch).await;
        expect_stored(harness, last).await;
        first = last + 1;
    }
    assert!(frozen_midway > 0, "no answer was long enough to be frozen midway");
}

/// How a server is killed under load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The lanes that write at the same time.
    pub lanes: u16,
    /// Records of each batch.
    pub records: usize,
    /// How often the server is killed.
    pub kills: u32,
}

impl Load {
    /// As many kills as the environment says, if it does.
    ///
    /// # Panics
    /// If it says no number.
    #[must_use]
    pub fn with_kills(self, kills: Option<String>) -> Self {
        let kills = kills.map_or(self.kills, |kills| kills.parse().expect("a number of kills"));
        Self { kills, ..self }
    }
}

/// Kills and restarts the server while lanes write. Everything must be stored once.
///
/// # Panics
/// If the store violates this, or stores nothing between two kills.
pub async fn kill_under_load(harness: &impl FaultHarness, load: Load, restart: impl Fn() + Send + Sync + 'static) {
    let (restart, done, stored) = (Arc::new(restart), watch::Sender::new(false), Arc::new(watch::Sender::new(0)));
    harness.sink().connect().await.expect("a server at hand can be connected to");
    let lanes: Vec<JoinHandle<u64>> = (0..load.lanes)
        .map(|shard| {
            let work = write_until(harness.sink(), shard, load.records, done.subscribe(), Arc::clone(&stored));
            tokio::spawn(work)
        })
        .collect();
    let mut progress = stored.subscribe();
    for round in 0..load.kills {
        let enough = *progress.borrow() + BATCHES_BETWEEN_KILLS * load.records as u64;
        let waiting = timeout(3 * PATIENCE, progress.wait_for(|count| *count >= enough));
        drop(waiting.await.expect("something is stored between two kills").expect("the counter is there"));
        // At another point of a batch each time.
        sleep(Duration::from_millis(u64::from(round * 7 % 13))).await;
        let restart = Arc::clone(&restart);
        spawn_blocking(move || restart()).await.expect("the server starts again");
    }
    done.send_replace(true);
    let sink = harness.past_the_proxy();
    for (shard, work) in (0..).zip(lanes) {
        let stored = work.await.expect("a lane doesn't panic");
        if sink.capabilities().fenced {
            assert_eq!(sink.cursor(&lane(shard)).await, Ok(Cursor::Store(stored)));
        }
    }
    assert_eq!(harness.count().await, *stored.borrow(), "each once");
}

/// Writes batches of a lane until it is stopped. Returns the position that it has reached.
async fn write_until(
    sink: Sink,
    shard: u16,
    records: usize,
    done: watch::Receiver<bool>,
    stored: Arc<watch::Sender<u64>>,
) -> u64 {
    let mut position = 0;
    while !*done.borrow() {
        deliver(&sink, &plain(shard, position + 1, records)).await;
        position += records as u64;
        stored.send_modify(|count| *count += records as u64);
    }
    position
}

/// Opens the connection that writes of lane 0 use.
async fn open(sink: &Sink, position: u64) {
    if sink.capabilities().fenced {
        assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(position)));
    } else {
        assert_eq!(sink.connect().await, Ok(()));
    }
}

/// Everything up to this position of lane 0 is stored once, and nothing else.
async fn expect_stored(harness: &impl FaultHarness, position: u64) {
    assert_eq!(harness.count().await, position, "each once");
    let sink = harness.past_the_proxy();
    if sink.capabilities().fenced {
        assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(position)));
    }
}
