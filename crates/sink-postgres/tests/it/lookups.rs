//! Lookups of many ids with one query: what is found, what isn't stored, and what is left if the answer is full.

use event::read::{Found, Lookup, ReadError};
use event::{EventId, TypeName};
use sink::{Sink, TableName};
use sink_postgres::{Column, Partition, PayloadKind, TableLayout};

use crate::fixture::{Fixture, server};
use sink_testing::events::{batch, batch_of, deliver, id, plain};

const DAY: i64 = 86_400_000_000;

/// The numbers of the found and of the left events.
fn numbers(found: &Found) -> (Vec<u8>, Vec<u8>) {
    let mut events: Vec<u8> = found.events.iter().map(|event| event.id.0[15]).collect();
    events.sort_unstable();
    (events, found.left.iter().map(|id| id.0[15]).collect())
}

async fn get(sink: &Sink, sequences: &[u64], bytes_max: usize) -> Result<Found, ReadError> {
    let ids: Vec<EventId> = sequences.iter().map(|sequence| id(0, *sequence)).collect();
    sink.get(Lookup { ids, bytes_max, only_type: None }).await
}

#[tokio::test]
async fn ids_in_any_order_are_found_or_are_not_stored() {
    let Some(server) = server() else { return };
    for kind in [PayloadKind::Jsonb, PayloadKind::Text] {
        let fixture = Fixture::new(server, kind).await;
        let sink = fixture.sink();
        deliver(&sink, &plain(0, 1, 20)).await;
        let found = get(&sink, &[7, 99, 3, 20, 0, 12], 1 << 20).await.unwrap();
        assert_eq!(numbers(&found), (vec![3, 7, 12, 20], vec![]));
        assert_eq!(found.events[0].payload.text(), br#"{"status": 200}"#);
        assert_eq!(numbers(&get(&sink, &[99], 1 << 20).await.unwrap()), (vec![], vec![]));
    }
}

#[tokio::test]
async fn full_answer_leaves_ids_that_a_further_lookup_finds() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Text).await;
    let sink = fixture.sink();
    let large = format!("\"{}\"", "x".repeat(30_000));
    deliver(&sink, &batch(0, 1, &[&large, "1", &large, "2", "3", &large])).await;
    for bytes_max in [1, 10_000, 30_002, 40_000, 61_000, 1 << 20] {
        let (mut seen, mut wanted, mut calls) = (Vec::new(), vec![6, 77, 5, 4, 3, 2, 1], 0);
        while !wanted.is_empty() {
            let found = get(&sink, &wanted, bytes_max).await.unwrap();
            let bytes: usize = found.events.iter().map(event::read::StoredEvent::bytes).sum();
            assert!(bytes <= bytes_max || found.events.len() == 1, "{bytes} of {bytes_max}");
            let (events, left) = numbers(&found);
            seen.extend(events);
            wanted = left.into_iter().map(u64::from).collect();
            calls += 1;
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6], "{bytes_max}");
        assert_eq!(calls > 1, bytes_max < 1 << 20);
    }
}

#[tokio::test]
async fn event_of_a_repeated_id_is_found_once() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Text).await;
    fixture.config.partition = Partition::Day;
    let sink = fixture.sink();
    // The key of a partitioned table has the time in it.
    for (first, day) in [(1, 0), (2, 1), (3, 2)] {
        let repeated = batch_of(0, first, &["1"], |record| sink::Record {
            id: id(0, 1),
            event_time: Some(record.received_at - day * DAY),
            ..record
        });
        deliver(&sink, &repeated).await;
    }
    deliver(&sink, &plain(0, 4, 2)).await;
    assert_eq!(server.psql(&format!("select count(*) from {}.events where payload = '1'", fixture.schema)), "3");
    // With few ids, the repeated rows fill the answer.
    for ids in [vec![5, 1, 4], vec![5, 1, 4, 90, 91, 92]] {
        let (mut seen, mut wanted) = (Vec::new(), ids);
        while !wanted.is_empty() {
            let (events, left) = numbers(&get(&sink, &wanted, 1 << 20).await.unwrap());
            seen.extend(events);
            wanted = left.into_iter().map(u64::from).collect();
        }
        assert_eq!(seen, [1, 4, 5]);
    }
}

#[tokio::test]
async fn table_without_types_needs_the_only_type() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let name = TableName::new("status").unwrap();
    let column = Column { name, pointer: "/status".parse().unwrap(), kind: None };
    fixture.config.layout = TableLayout::Columns { columns: vec![column], payload: Some(PayloadKind::Jsonb) };
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 1)).await;
    assert!(matches!(get(&sink, &[1], 1 << 20).await, Err(ReadError::Untyped(_))));
    for only in ["access", "other"] {
        let lookup = Lookup { ids: vec![id(0, 1)], bytes_max: 1, only_type: Some(TypeName::new(only).unwrap()) };
        assert_eq!(sink.get(lookup).await.unwrap().events[0].type_name, only, "also after a reload");
    }
}
