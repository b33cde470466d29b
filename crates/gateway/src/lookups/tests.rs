//! The queue of a store, without a tick: nothing here ends because time passes.

use event::read::{Found, LookingUp, Lookup, Payload, Query, Reading, StoredEvent};
use limits::EVENT_BYTES_MAX;
use limits::memory::Budgets;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::task::{LocalSet, yield_now};

use super::*;
use crate::admission::two_clients;

/// A store with all events.
struct Full(Arc<str>);

impl StoreReader for Full {
    fn name(&self) -> &Arc<str> {
        &self.0
    }

    fn read(&self, _query: Query) -> Reading<'_> {
        Box::pin(async { Err(ReadError::Busy) })
    }

    fn get(&self, lookup: Lookup) -> LookingUp<'_> {
        let (type_name, source) = (String::new(), String::new());
        let event = |id| {
            let (type_name, source) = (type_name.clone(), source.clone());
            StoredEvent { id, type_name, source, received_at: 0, payload: Payload::of(b"1") }
        };
        let found = Found { events: lookup.ids.into_iter().map(event).collect(), left: Vec::new() };
        Box::pin(async { Ok(found) })
    }

    fn settled_up_to(&self, _shard: u16) -> u64 {
        0
    }
}

/// The answer after all that can happen has happened.
async fn answer(asked: &mut oneshot::Receiver<Answer>) -> Option<Answer> {
    for _ in 0..100 {
        yield_now().await;
    }
    match asked.try_recv() {
        Ok(answer) => Some(answer),
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Closed) => panic!("each request is answered"),
    }
}

#[tokio::test]
async fn client_that_waits_for_memory_does_not_delay_others() {
    let memory = Budgets { reads_bytes: 4 * EVENT_BYTES_MAX + 64 * 1024, ..Budgets::FULL };
    let budget = Arc::new(ReadBudget::new(&memory));
    let clock = Arc::new(CachedClock::new());
    let timer = Rc::new(CoarseTimer::new(clock.clone(), Rc::default()));
    let lookups = Lookups::new(budget.clone(), timer, clock);
    let (store, [slow, other]): (Arc<dyn StoreReader>, _) = (Arc::new(Full("s".into())), two_clients());
    let held = budget.take(3 * EVENT_BYTES_MAX, slow).unwrap();
    let asks = async {
        let mut waits = lookups.ask(&store, EventId([1; 16]), slow);
        assert!(answer(&mut waits).await.is_none(), "it has more than its share");
        let mut quick = lookups.ask(&store, EventId([2; 16]), other);
        let (event, permit) = answer(&mut quick).await.unwrap().unwrap().unwrap();
        assert_eq!((event.id, permit.bytes()), (EventId([2; 16]), event.bytes()));
        assert!(answer(&mut waits).await.is_none());
        drop(held);
        assert!(answer(&mut waits).await.unwrap().unwrap().is_some(), "it waited for memory");
    };
    LocalSet::new().run_until(asks).await;
}
