//! The case of marks: all sinks on one store read the same mark, and write no batch for another store.

use std::collections::BTreeSet;
use std::time::Duration;

use super::events::{batch, lane, numbered};
use super::fixture::Fixture;
use super::suite::Suite;
use sink::{Mark, Sink, SinkError};

/// Sinks that connect concurrently.
const SINKS: usize = 4;
/// The pause before a retry: another sink may be creating the mark.
const RETRY_EVERY: Duration = Duration::from_millis(2);

async fn mark(sink: Sink) -> Result<Option<Mark>, SinkError> {
    loop {
        let found = async {
            sink.connect().await?;
            sink.mark().await
        };
        match found.await {
            Err(SinkError::Unavailable(_)) => tokio::time::sleep(RETRY_EVERY).await,
            found => return found,
        }
    }
}

pub(super) async fn marks(suite: Suite) {
    let subject = suite.fresh().await;
    let asked: Vec<_> = (0..SINKS).map(|_| tokio::spawn(mark(subject.sink()))).collect();
    let mut found = BTreeSet::new();
    for one in asked {
        found.insert(one.await.expect("a task that asks ends").expect("a store at hand returns its mark"));
    }
    assert_eq!(found.len(), 1, "sinks that connect concurrently agree: {found:?}");
    let Some(Some(found)) = found.pop_first() else { return };
    let fixture = Fixture { suite, sink: subject.sink(), subject };
    assert_eq!(mark(fixture.sink.clone()).await, Ok(Some(found)), "a later sink agrees");
    if suite.has_own_mark {
        assert_ne!(mark(suite.fresh().await.sink()).await, Ok(Some(found)), "another store has another mark");
    }
    if fixture.sink.bound_to().is_some() {
        // A sink of a gateway sends the mark itself.
        return;
    }
    let (events, other) = (numbered(1, 3), Mark([0xee; 16]));
    let batch = batch(&lane(0), 1, &events);
    let refused = fixture.sink.write(&batch.clone().for_store(Some(other))).await;
    assert_eq!(refused, Err(SinkError::OtherStore(found)), "a batch for another store is rejected");
    fixture.expect_cursor(&lane(0), 0).await;
    fixture.expect_rows(&[]).await;
    fixture.store(&batch.for_store(Some(found))).await;
    fixture.expect_rows(&events).await;
}
