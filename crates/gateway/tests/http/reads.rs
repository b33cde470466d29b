//! Events read by their ids and in pages, with a store that the test controls.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use event::read::{
    Found, LookingUp, Lookup, Page, Payload, Query, ReadError, Reading, StoreReader, StoredEvent, Wanted,
};
use event::{EventId, TypeName};
use gateway::{GatewayOptions, GatewayTypes, StoreReaders, TypeRules};
use limits::memory::Budgets;
use limits::{EVENT_BYTES_MAX, LOOKUP_IDS_MAX};
use tokio::sync::Semaphore;

use crate::fixture::{Answer, Client, Fixture};

/// A store that has every event but those of some ids.
struct TestStore {
    name: Arc<str>,
    /// Each call takes one.
    permits: Semaphore,
    calls: Mutex<Vec<Lookup>>,
    unknown: HashSet<EventId>,
    payload_bytes: usize,
    is_dead: AtomicBool,
}

impl TestStore {
    fn new(name: &str, permits: usize, payload_bytes: usize) -> Self {
        let (calls, unknown) = Default::default();
        let (permits, is_dead) = (Semaphore::new(permits), AtomicBool::new(false));
        Self { name: name.into(), permits, calls, unknown, payload_bytes, is_dead }
    }

    fn event(&self, id: EventId) -> Option<StoredEvent> {
        let payload = Payload::Whole([b"\"", vec![b'x'; self.payload_bytes].as_slice(), b"\""].concat());
        let event = StoredEvent { id, type_name: "a".into(), source: String::new(), received_at: 7, payload };
        (!self.unknown.contains(&id)).then_some(event)
    }

    fn calls(&self) -> Vec<Lookup> {
        self.calls.lock().unwrap().clone()
    }

    async fn pass(&self) -> Result<(), ReadError> {
        self.permits.acquire().await.unwrap().forget();
        match self.is_dead.load(Ordering::SeqCst) {
            true => Err(ReadError::Unavailable("down".into())),
            false => Ok(()),
        }
    }

    fn found(&self, lookup: &Lookup) -> Found {
        let (mut found, mut bytes) = (Found::default(), 0);
        for id in &lookup.ids {
            let Some(event) = self.event(*id) else { continue };
            bytes += event.bytes();
            if bytes > lookup.bytes_max && !found.events.is_empty() {
                found.left.push(*id);
            } else {
                found.events.push(event);
            }
        }
        found
    }
}

impl StoreReader for TestStore {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read(&self, query: Query) -> Reading<'_> {
        Box::pin(async move {
            self.pass().await?;
            let Wanted::Ids { first, .. } = query.wanted else { return Ok(Page::default()) };
            Ok(Page { events: self.event(first).into_iter().collect(), next: None })
        })
    }

    fn get(&self, lookup: Lookup) -> LookingUp<'_> {
        self.calls.lock().unwrap().push(lookup.clone());
        Box::pin(async move {
            self.pass().await?;
            Ok(self.found(&lookup))
        })
    }

    fn settled_up_to(&self, _shard: u16) -> u64 {
        0
    }
}

/// Types that are read from these stores, one each.
fn types(stores: &[&Arc<TestStore>]) -> GatewayTypes {
    let readers = |store: &Arc<TestStore>| Some(StoreReaders::new(store.clone(), BTreeMap::new()));
    let rules = |store: &Arc<TestStore>| TypeRules { readers: readers(store), ..TypeRules::default() };
    let named = |store: &&Arc<TestStore>| (TypeName::new(&format!("of_{}", store.name)).unwrap(), rules(store));
    GatewayTypes { named: stores.iter().map(named).collect(), ..GatewayTypes::default() }
}

fn gateway(stores: &[&Arc<TestStore>]) -> Fixture {
    Fixture::with(types(stores), GatewayOptions::default())
}

fn id(number: usize) -> EventId {
    EventId((number as u128).to_be_bytes())
}

/// Sends requests for these events, each over its own connection.
fn ask(fixture: &Fixture, ids: impl IntoIterator<Item = usize>) -> Vec<Client> {
    let one = |number| {
        let mut client = fixture.connect();
        client.send(format!("GET /events/{} HTTP/1.1\r\nHost: localhost\r\n\r\n", id(number)));
        client
    };
    ids.into_iter().map(one).collect()
}

fn get(fixture: &Fixture, path: &str) -> Answer {
    let mut client = fixture.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    client.answer()
}

fn get_event(fixture: &Fixture, number: usize) -> Answer {
    get(fixture, &format!("/events/{}", id(number)))
}

fn wait_for_calls(fixture: &Fixture, store: &TestStore, count: usize) {
    fixture.wait("a lookup begins", |_| store.calls().len() == count);
}

fn answers(clients: Vec<Client>) -> Vec<Answer> {
    clients.into_iter().map(|mut client| client.answer()).collect()
}

#[test]
fn requests_that_wait_are_one_lookup_and_join_none_that_has_begun() {
    let store = Arc::new(TestStore::new("s", 0, 10));
    let fixture = gateway(&[&store]);
    // Each has begun when the next request arrives.
    let mut clients = ask(&fixture, [1]);
    wait_for_calls(&fixture, &store, 1);
    clients.extend(ask(&fixture, [2]));
    wait_for_calls(&fixture, &store, 2);
    // These wait for one of them; the first and the last two were asked before, and are asked again.
    clients.extend(ask(&fixture, [3, 4, 2, 1, 1]));
    // They have arrived: this request came after them.
    assert_eq!(get(&fixture, "/ip").status, 200);
    store.permits.add_permits(1);
    wait_for_calls(&fixture, &store, 3);
    store.permits.add_permits(9);
    for (answer, number) in answers(clients).iter().zip([1, 2, 3, 4, 2, 1, 1]) {
        assert_eq!((answer.status, &answer.json()["id"]), (200, &id(number).to_string().into()));
    }
    let calls: Vec<_> = store.calls().into_iter().map(|lookup| lookup.ids).collect();
    assert_eq!(calls, [vec![id(1)], vec![id(2)], vec![id(1), id(2), id(3), id(4)]]);
}

#[test]
fn many_concurrent_readers_are_all_answered() {
    let store = Arc::new(TestStore::new("s", usize::MAX >> 3, 300));
    let fixture = gateway(&[&store]);
    let mut clients = ask(&fixture, 0..256);
    for round in 1..20 {
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.answer().status, 200, "round {round}");
            client.send(format!("GET /events/{} HTTP/1.1\r\nHost: localhost\r\n\r\n", id(round * 256 + number)));
        }
    }
    assert!(answers(clients).iter().all(|answer| answer.status == 200));
    let calls = store.calls();
    assert!(calls.iter().all(|lookup| lookup.ids.len() <= LOOKUP_IDS_MAX));
    assert!(calls.len() < 20 * 256, "{} calls", calls.len());
}

#[test]
fn events_without_room_in_an_answer_are_looked_up_again() {
    let store = Arc::new(TestStore::new("s", usize::MAX >> 3, EVENT_BYTES_MAX - 1_000));
    let fixture = gateway(&[&store]);
    // Several ids, and one event for several requests: each response is a copy.
    let clients = ask(&fixture, (0..8).chain([3; 8]));
    for (answer, number) in answers(clients).iter().zip((0..8).chain([3; 8])) {
        assert_eq!(answer.status, 200);
        assert!(answer.body.len() > EVENT_BYTES_MAX - 1_000 && answer.json()["id"] == id(number).to_string());
    }
}

#[test]
fn stores_are_asked_concurrently_and_first_event_wins() {
    let [has, hangs, dead] = ["has", "hangs", "dead"].map(|name| TestStore::new(name, usize::MAX >> 3, 10));
    let unknown: HashSet<_> = [id(2)].into();
    let has = Arc::new(TestStore { unknown, ..has });
    let hangs = Arc::new(TestStore { permits: Semaphore::new(0), unknown: [id(2)].into(), ..hangs });
    let dead = Arc::new(TestStore { is_dead: true.into(), ..dead });
    let fixture = gateway(&[&has, &hangs, &dead]);
    assert_eq!(get_event(&fixture, 1).status, 200, "although one hangs and one is down");
    let mut waits = ask(&fixture, [2]);
    wait_for_calls(&fixture, &hangs, 2);
    hangs.permits.add_permits(2);
    assert_eq!(waits[0].answer().code(), "store_unavailable", "the one that is down may have it");
    dead.is_dead.store(false, Ordering::SeqCst);
    hangs.permits.add_permits(9);
    assert_eq!(get_event(&fixture, 2).status, 200);
}

#[test]
fn dead_store_is_503_immediately_and_hung_one_soon() {
    let store = Arc::new(TestStore::new("s", 1, 10));
    store.is_dead.store(true, Ordering::SeqCst);
    let fixture = gateway(&[&store]);
    let began = Instant::now();
    let answer = get_event(&fixture, 1);
    assert_eq!((answer.status, answer.code().as_str()), (503, "store_unavailable"));
    assert!(answer.header("retry-after").is_some());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // Now it hangs: two lookups are under way, and the third waits.
    let mut hung = Vec::new();
    for number in 1..=2 {
        hung.extend(ask(&fixture, [number]));
        wait_for_calls(&fixture, &store, 1 + number);
    }
    let waits = ask(&fixture, [3]);
    let began = Instant::now();
    let refused = std::iter::repeat_with(|| {
        let mut client = ask(&fixture, [4]).remove(0);
        // A request whose client has gone doesn't wait.
        client.reader.get_ref().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        client.try_answer().ok()
    });
    let refused = refused.flatten().next().unwrap();
    assert_eq!((refused.status, refused.code().as_str()), (503, "overload"));
    assert!(refused.header("retry-after").is_some());
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(answers(waits)[0].code(), "overload", "it has waited for seconds");
    store.is_dead.store(false, Ordering::SeqCst);
    store.permits.add_permits(9);
    assert!(answers(hung).iter().all(|answer| answer.status == 200));
    assert_eq!(get_event(&fixture, 5).status, 200);
}

#[test]
fn client_that_receives_slowly_keeps_no_others_from_reading() {
    let store = Arc::new(TestStore::new("s", usize::MAX >> 3, EVENT_BYTES_MAX - 1_000));
    let options = GatewayOptions {
        memory: Budgets { reads_bytes: 4 * EVENT_BYTES_MAX + 64 * 1024, ..Budgets::FULL },
        trusted_proxies: vec!["127.0.0.1/32".parse().unwrap()],
        ..GatewayOptions::default()
    };
    let fixture = Fixture::with(types(&[&store]), options);
    let request = |client: usize, number: usize| {
        format!("GET /events/{} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 203.0.113.{client}\r\n\r\n", id(number))
    };
    // More than the buffers of the sockets hold: each connection gets stuck with a response.
    let slow: Vec<Client> = (0..8)
        .map(|_| {
            let mut client = fixture.connect();
            client.send(request(1, 1).repeat(16));
            client
        })
        .collect();
    let asks = |client, number| {
        let mut connection = fixture.connect();
        connection.send(request(client, number));
        connection.answer()
    };
    // Until its share is used up.
    while asks(1, 2).status != 503 {}
    let refused = asks(1, 2);
    assert!(refused.json()["detail"].as_str().unwrap().contains("share"), "{:?}", refused.json());
    // Two clients share a quota only by a chance of one in hundreds: not all of these do.
    assert!((2..6).any(|client| asks(client, 4).status == 200));
    drop(slow);
    while asks(1, 3).status != 200 {}
}
