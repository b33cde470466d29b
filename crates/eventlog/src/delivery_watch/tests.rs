//! A request in a queue is woken only by its lane.

use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::task::Wake;

use super::*;

/// Lanes at these cursors; every event must pass each of them.
#[derive(Default)]
struct Lanes(Mutex<BTreeMap<&'static str, Option<u64>>>);

impl Lanes {
    fn set(&self, sink: &'static str, cursor: Option<u64>) {
        self.0.lock().unwrap().insert(sink, cursor);
    }
}

impl DeliveryStatusSource for Lanes {
    fn pending(&self, request: &WatchRequest) -> Vec<PendingLane> {
        let last = request.spans[0].last;
        let lanes = self.0.lock().unwrap();
        let behind = lanes.iter().filter(|(_, cursor)| cursor.is_none_or(|cursor| cursor < last));
        behind
            .map(|(sink, cursor)| PendingLane { sink: (*sink).into(), shard: 0, until: cursor.map(|_| last) })
            .collect()
    }

    fn may_have_rejected(&self) -> bool {
        false
    }

    fn rejected(&self, _: &WatchRequest, _: usize) -> Rejections {
        Rejections::default()
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Fixture {
    watch: DeliveryWatch,
    lanes: Arc<Lanes>,
    _source: Arc<dyn DeliveryStatusSource>,
    woken: Arc<Woken>,
    waker: Waker,
}

impl Fixture {
    fn new() -> Self {
        let (watch, lanes, woken) = (DeliveryWatch::default(), Arc::<Lanes>::default(), Arc::<Woken>::default());
        let source: Arc<dyn DeliveryStatusSource> = lanes.clone();
        watch.set_source(&source);
        let waker = Waker::from(woken.clone());
        Self { watch, lanes, _source: source, woken, waker }
    }

    fn poll(&self, wait: &mut DeliveryWait<'_>) -> bool {
        Pin::new(wait).poll(&mut Context::from_waker(&self.waker)).is_ready()
    }

    /// Advances the lane; returns whether it has woken a request.
    fn passes(&self, sink: &'static str, cursor: u64) -> bool {
        self.lanes.set(sink, Some(cursor));
        self.watch.advance(sink, 0, cursor);
        self.woken.0.swap(false, Ordering::Relaxed)
    }
}

fn up_to(last: u64) -> WatchRequest {
    WatchRequest { spans: vec![SequenceRange { shard: 0, first: 1, last, only: None }], types: Vec::new() }
}

#[test]
fn request_is_woken_by_its_last_lane() {
    let fixture = Fixture::new();
    fixture.lanes.set("a", Some(0));
    fixture.lanes.set("b", Some(0));
    let request = up_to(5);
    let mut wait = fixture.watch.wait(&request);
    assert!(!fixture.poll(&mut wait));
    assert_eq!(fixture.watch.waiting(), 1);
    assert!(!fixture.passes("a", 4) && !fixture.passes("b", 9));
    assert!(fixture.passes("a", 5));
    assert!(fixture.poll(&mut wait));
    assert_eq!(fixture.watch.waiting(), 0);
}

#[test]
fn request_ends_if_its_events_cannot_be_delivered() {
    let fixture = Fixture::new();
    fixture.lanes.set("a", Some(0));
    let request = up_to(5);
    let mut wait = fixture.watch.wait(&request);
    assert!(!fixture.poll(&mut wait));
    fixture.lanes.set("a", None);
    fixture.watch.notify_all();
    assert!(fixture.woken.0.load(Ordering::Relaxed) && fixture.poll(&mut wait));
}

#[test]
fn dropped_request_leaves_the_queue() {
    let fixture = Fixture::new();
    fixture.lanes.set("a", Some(0));
    let request = up_to(5);
    let mut wait = fixture.watch.wait(&request);
    assert!(!fixture.poll(&mut wait) && !fixture.poll(&mut wait));
    assert_eq!(fixture.watch.waiting(), 1);
    drop(wait);
    assert_eq!(fixture.watch.waiting(), 0);
    assert!(!fixture.passes("a", 5));
}

#[test]
fn request_waits_without_a_source() {
    let watch = DeliveryWatch::default();
    let request = up_to(0);
    let mut wait = watch.wait(&request);
    let waker = Waker::from(Arc::<Woken>::default());
    assert!(Pin::new(&mut wait).poll(&mut Context::from_waker(&waker)).is_pending());
}

#[tokio::test]
async fn lane_gathers_until_a_request_waits_for_it() {
    let fixture = Fixture::new();
    fixture.lanes.set("a", Some(0));
    let (sink, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    let (mut asked, mut of_other) = (pin!(fixture.watch.asked(&sink, 0)), pin!(fixture.watch.asked(&other, 0)));
    let mut context = Context::from_waker(&fixture.waker);
    assert!(asked.as_mut().poll(&mut context).is_pending() && of_other.as_mut().poll(&mut context).is_pending());
    let request =
        WatchRequest { spans: vec![SequenceRange { shard: 0, first: 1, last: 1, only: None }], types: vec![] };
    let mut waiting = Box::pin(fixture.watch.wait(&request));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(fixture.woken.0.swap(false, Ordering::Relaxed), "the request wakes the lane");
    assert!(asked.as_mut().poll(&mut context).is_ready() && of_other.as_mut().poll(&mut context).is_pending());
    drop(waiting);
    let mut again = pin!(fixture.watch.asked(&sink, 0));
    assert!(again.as_mut().poll(&mut context).is_pending(), "a request that was dropped waits no longer");
}
