//! A pool with a store whose answers the test delays. Most tests run the worker on a paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use event::EventId;
use event::read::{Payload, StoredEvent};
use limits::{LOOKUP_IDS_MAX, READ_TIMEOUT};
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use super::*;

fn ids(numbers: impl IntoIterator<Item = usize>) -> Vec<EventId> {
    numbers.into_iter().map(|number| EventId((number as u128).to_be_bytes())).collect()
}

fn event(id: EventId, payload_bytes: usize) -> StoredEvent {
    let payload = Payload::of(&vec![b'1'; payload_bytes]);
    StoredEvent { id, type_name: String::new(), source: String::new(), received_at: 0, payload }
}

fn page(number: usize) -> Query {
    Query::of_event(ids([number])[0], 1, None)
}

fn lookup(numbers: impl IntoIterator<Item = usize>, bytes_max: usize) -> Lookup {
    Lookup { ids: ids(numbers), bytes_max, only_type: None }
}

/// A store whose reads wait for permits. It has all events.
#[derive(Clone)]
struct Gated(Arc<Gate>);

struct Gate {
    permits: Semaphore,
    calls: Mutex<Vec<Vec<EventId>>>,
    made: AtomicUsize,
    closed: AtomicUsize,
}

impl Gated {
    fn new(permits: usize) -> Self {
        let (calls, made, closed) = Default::default();
        Self(Arc::new(Gate { permits: Semaphore::new(permits), calls, made, closed }))
    }

    fn reader(&self) -> Self {
        self.0.made.fetch_add(1, Ordering::SeqCst);
        self.clone()
    }

    async fn pass(&self, ids: Vec<EventId>) {
        self.0.calls.lock().unwrap().push(ids);
        self.0.permits.acquire().await.unwrap().forget();
    }

    /// The ids of each call so far.
    fn calls(&self) -> Vec<Vec<EventId>> {
        self.0.calls.lock().unwrap().clone()
    }

    async fn wait_for_calls(&self, count: usize) {
        while self.calls().len() < count {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait(?Send)]
impl PooledReader for Gated {
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        let event::read::Wanted::Ids { first, .. } = query.wanted else { panic!("of ids") };
        self.pass(vec![first]).await;
        Ok(Page { events: vec![event(first, 1)], next: None })
    }

    async fn get(&mut self, lookup: &Lookup) -> Result<Found, ReadError> {
        self.pass(lookup.ids.clone()).await;
        Ok(Found { events: lookup.ids.iter().map(|id| event(*id, 1)).collect(), left: Vec::new() })
    }

    async fn hang_up(&mut self) {
        self.0.closed.fetch_add(1, Ordering::SeqCst);
    }
}

/// The worker of a pool, on a paused clock.
struct Running {
    queue: SharedQueue,
    store: Gated,
    local: LocalSet,
}

impl Running {
    fn new(readers_max: usize, permits: usize) -> Self {
        let (queue, store, local) = (SharedQueue::default(), Gated::new(permits), LocalSet::new());
        let making = store.clone();
        let worker = Worker::new(queue.clone(), Arc::new(move || Box::new(making.reader())), readers_max);
        local.spawn_local(worker.run());
        Self { queue, store, local }
    }

    fn read(&self, query: Query) -> oneshot::Receiver<Result<Page, ReadError>> {
        let (reply, answer) = oneshot::channel();
        let _: Option<Job> = self.queue.push(Job::page(query, reply), Instant::now()).unwrap();
        answer
    }

    fn get(&self, lookup: Lookup) -> oneshot::Receiver<Result<Found, ReadError>> {
        let (reply, answer) = oneshot::channel();
        let _: Option<Job> = self.queue.push(Job::lookup(lookup, reply), Instant::now()).unwrap();
        answer
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_reads_are_put_together_and_begun_ones_are_not() {
    let pool = Running::new(1, 0);
    let first = pool.read(page(1));
    pool.local.run_until(pool.store.wait_for_calls(1)).await;
    let same = [pool.read(page(1)), pool.read(page(1))];
    let other = pool.read(page(2));
    let gets = [pool.get(lookup([1, 2], 1_000)), pool.get(lookup([2, 3], 1_000))];
    pool.store.0.permits.add_permits(4);
    let found = pool.local.run_until(async {
        assert_eq!(first.await.unwrap().unwrap().events.len(), 1);
        for same in same {
            assert_eq!(same.await.unwrap().unwrap().events, [event(ids([1])[0], 1)]);
        }
        assert_eq!(other.await.unwrap().unwrap().events, [event(ids([2])[0], 1)]);
        let [one, two] = gets;
        [one.await.unwrap().unwrap(), two.await.unwrap().unwrap()]
    });
    let found = found.await.map(|found| found.events.iter().map(|event| event.id).collect::<Vec<_>>());
    assert_eq!(found, [ids([1, 2]), ids([2, 3])]);
    assert_eq!(pool.store.calls(), [ids([1]), ids([1]), ids([2]), ids([1, 2, 3])]);
    assert_eq!(pool.store.0.made.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn readers_are_created_up_to_maximum_and_closed_when_idle() {
    let pool = Running::new(2, 0);
    let reads = [1, 2, 3].map(|number| pool.read(page(number)));
    pool.local.run_until(pool.store.wait_for_calls(2)).await;
    pool.local.run_until(tokio::time::sleep(Duration::from_millis(10))).await;
    assert_eq!(pool.store.calls().len(), 2, "the third waits");
    pool.store.0.permits.add_permits(9);
    pool.local
        .run_until(async {
            for read in reads {
                assert!(read.await.unwrap().is_ok());
            }
        })
        .await;
    let counts = || [&pool.store.0.made, &pool.store.0.closed].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts(), [2, 0]);
    pool.local.run_until(tokio::time::sleep(Duration::from_mins(1))).await;
    assert_eq!(counts(), [2, 2]);
    let again = pool.read(page(1));
    assert!(pool.local.run_until(again).await.unwrap().is_ok());
    assert_eq!(counts(), [3, 2]);
}

#[tokio::test(start_paused = true)]
async fn hung_reader_is_dropped_and_waiting_reads_are_rejected() {
    let pool = Running::new(1, 0);
    let hung = pool.read(page(1));
    pool.local.run_until(pool.store.wait_for_calls(1)).await;
    let began = Instant::now();
    let waiting = pool.get(lookup([2], 1_000));
    assert_eq!(pool.local.run_until(waiting).await.unwrap(), Err(ReadError::Busy));
    assert!(began.elapsed() < READ_TIMEOUT);
    let next = pool.get(lookup([3], 1_000));
    let error = pool.local.run_until(hung).await.unwrap().unwrap_err();
    assert!(matches!(&error, ReadError::Unavailable(why) if why.contains("within 10 s")), "{error}");
    pool.store.0.permits.add_permits(1);
    assert_eq!(pool.local.run_until(next).await.unwrap(), Err(ReadError::Busy));
    let next = pool.get(lookup([4], 1_000));
    assert!(pool.local.run_until(next).await.unwrap().is_ok());
    assert_eq!(pool.store.0.made.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn reads_are_rejected_early_if_one_has_waited() {
    let pool = Running::new(1, 0);
    let _busy = pool.read(page(0));
    pool.local.run_until(pool.store.wait_for_calls(1)).await;
    let gone = pool.read(page(1));
    let stays = pool.read(page(2));
    let rejected = |after: Duration| {
        let (reply, _answer) = oneshot::channel();
        pool.queue.push(Job::page(page(9), reply), Instant::now() + after).err()
    };
    assert_eq!(rejected(Duration::from_millis(900)), None);
    assert_eq!(rejected(Duration::from_millis(1_100)), Some(ReadError::Busy));
    drop((gone, stays));
    assert_eq!(rejected(Duration::from_millis(1_100)), None, "nobody waits");
    assert_eq!(pool.store.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn number_of_waiting_reads_is_bounded() {
    let pool = Running::new(1, 0);
    let mut kept = Vec::new();
    let rejected = std::iter::repeat_with(|| {
        let (reply, answer) = oneshot::channel();
        kept.push(answer);
        pool.queue.push(Job::page(page(7), reply), Instant::now()).err()
    });
    assert_eq!(rejected.take(100_000).position(|error| error == Some(ReadError::Busy)), Some(1_000));
}

#[tokio::test(start_paused = true)]
async fn joint_call_has_a_bounded_number_of_ids() {
    let pool = Running::new(1, 0);
    let _busy = pool.read(page(0));
    pool.local.run_until(pool.store.wait_for_calls(1)).await;
    let half = LOOKUP_IDS_MAX / 2;
    let mut gets: Vec<_> =
        [0..half, 1_000..1_000 + half + 1, half..2 * half, 0..1].map(|range| pool.get(lookup(range, 1_000_000))).into();
    drop(gets.remove(2));
    let whole = pool.get(lookup(half..2 * half, 1_000_000));
    pool.store.0.permits.add_permits(3);
    assert_eq!(pool.local.run_until(whole).await.unwrap().unwrap().events.len(), half);
    pool.local
        .run_until(async {
            for get in gets {
                assert!(!get.await.unwrap().unwrap().events.is_empty());
            }
        })
        .await;
    assert_eq!(pool.store.calls()[1..].iter().map(Vec::len).collect::<Vec<_>>(), [LOOKUP_IDS_MAX, half + 1]);
}

#[test]
fn each_caller_gets_events_within_its_bytes() {
    let each = event(EventId([0; 16]), 100).bytes();
    let ask = |lookup| {
        let (reply, answer) = oneshot::channel();
        (lookup, reply, answer)
    };
    let (lookup_1, reply, mut answer_1) = ask(lookup([1, 2, 3], 2 * each));
    let mut joint = joint_lookup::JointLookup::new(lookup_1, reply);
    let (lookup_2, reply, mut answer_2) = ask(lookup([3, 4, 5, 6], 1));
    assert!(joint.add(lookup_2, reply).is_none());
    assert_eq!((joint.lookup().ids.clone(), joint.lookup().bytes_max), (ids(1..7), 2 * each + 1));
    let events = ids([1, 2, 3, 4]).into_iter().map(|id| event(id, 100)).collect();
    joint.answer(Ok(Found { events, left: ids([5]) }));
    let of = |answer: &mut oneshot::Receiver<Result<Found, ReadError>>| {
        let found = answer.try_recv().unwrap().unwrap();
        (found.events.iter().map(|event| event.id).collect::<Vec<_>>(), found.left)
    };
    assert_eq!(of(&mut answer_1), (ids([1, 2]), ids([3])));
    assert_eq!(of(&mut answer_2), (ids([3]), ids([4, 5])), "6 isn't stored");
}

#[tokio::test]
async fn close_ends_reads_and_a_later_one_begins_again() {
    let store = Gated::new(0);
    let making = store.clone();
    let pool = Arc::new(ReadPool::new("test-read", NonZeroUsize::MIN, move || making.reader()));
    let reading = [1, 2].map(|number| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.read(page(number)).await })
    });
    store.wait_for_calls(1).await;
    pool.close().await;
    for read in reading {
        let error = read.await.unwrap().unwrap_err();
        assert!(matches!(&error, ReadError::Unavailable(why) if why.contains("closed here")), "{error}");
    }
    store.0.permits.add_permits(1);
    assert!(pool.get(lookup([1], 1)).await.is_ok());
    pool.close().await;
    assert_eq!(store.0.closed.load(Ordering::SeqCst), 1, "the one that was not busy");
}

#[tokio::test]
async fn panic_of_reader_is_an_error_and_ends_no_pool() {
    struct Panics;
    #[async_trait(?Send)]
    impl PooledReader for Panics {
        async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
            assert_ne!(*query, page(0));
            Ok(Page::default())
        }

        async fn hang_up(&mut self) {}
    }
    let pool = ReadPool::new("test-read", NonZeroUsize::MIN, || Panics);
    assert!(pool.read(page(0)).await.is_err());
    // The thread may still be ending.
    while pool.read(page(1)).await.is_err() {}
    let found = pool.get(lookup([1, 2], 1)).await.unwrap();
    assert_eq!(found, Found::default(), "single reads are the default");
}
