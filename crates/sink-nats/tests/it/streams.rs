//! The messages in a stream, the allowed settings of a stream, and events that it already has.

use event::EventId;
use sink::{Cursor, Record, Sink, Write, WriteOutcome};
use sink_nats::{Creation, Nats, NatsConfig};

use crate::fixture::{Fixture, server};
use sink_testing::events::{batch_named, batch_of, deliver, id, lane, plain};
use testkit::nats::{NatsServer, ROOMY};

#[tokio::test]
async fn message_has_the_payload_and_the_events_headers() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server);
    fixture.config.subject = format!("{}.{{day}}.{{type}}.x", fixture.stream).parse().unwrap();
    let batch = batch_of(3, 7, &["{\"a\":\t1}", "[2]"], |record| match record.sequence {
        7 => record,
        _ => Record { event_time: Some(0), write: Write::Upsert(4), ..record },
    });
    assert_eq!(fixture.sink().write(&batch).await, Ok(WriteOutcome::Committed));
    let messages = server.client().messages(&fixture.stream, ">");
    let [first, second, cursor] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(first.payload, b"{\"a\":\t1}");
    let header = |name| (first.header(name), second.header(name));
    let (one, two) = (id(3, 7).to_string(), format!("{}-4", id(3, 8)));
    assert_eq!(header("Nats-Msg-Id"), (Some(one.as_str()), Some(two.as_str())));
    assert_eq!(header("Forebay-Type"), (Some("access"), Some("access")));
    assert_eq!(header("Forebay-Revision"), (None, Some("4")));
    assert_eq!(header("Forebay-Received-At").0, Some("2025-10-09T08:53:20.000007Z"));
    assert_eq!(header("Forebay-Event-Time").1, Some("1970-01-01T00:00:00.000000Z"));
    assert_eq!(header("Forebay-Position"), (Some("3:7"), Some("3:8")));
    assert_eq!((cursor.header("Forebay-Cursor"), cursor.payload.len()), (Some("8"), 0));
    let taken = |subject: &str| server.client().messages(&fixture.stream, subject).len();
    let prefix = &fixture.stream;
    assert_eq!(taken(&format!("{prefix}.2025-10-09.access.x")), 1);
    assert_eq!(taken(&format!("{prefix}.1970-01-01.access.x")), 1);
    assert_eq!(taken(&format!("forebay.cursors.{prefix}.{}.3.warehouse", "09".repeat(16))), 1);
}

#[tokio::test]
async fn lanes_cursor_does_not_expire() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server);
    fixture.config.creation = Some(Creation { replicas: 1, age_max: Some(std::time::Duration::from_secs(1)) });
    let sink = fixture.sink();
    for first in [1, 1_501] {
        deliver(&sink, &plain(0, first, 1_500)).await;
        deliver(&sink, &plain(1, first, 1)).await;
    }
    // Old events expire, cursors don't.
    while fixture.count() > 2 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(fixture.messages(), []);
    for (shard, position) in [(0, 3_000), (1, 1_501)] {
        assert_eq!(fixture.sink().cursor(&lane(shard)).await, Ok(Cursor::Store(position)));
    }
    deliver(&fixture.sink(), &plain(0, 3_001, 1)).await;
}

/// Events that another gateway has delivered, or a lane that lost its cursor in a power cut.
#[tokio::test]
async fn event_already_in_the_stream_is_skipped_alone() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server);
    let sink = fixture.sink();
    let known: Vec<u64> = vec![1, 2, 500, 999, 1_000, 1_200];
    for at in &known {
        server.client().publish(
            &format!("{}.access", fixture.stream),
            &format!("Nats-Msg-Id: {}\r\n", id(0, *at)),
            "1",
        );
    }
    assert_eq!(server.client().count(&fixture.stream), None, "there is no stream yet, so they aren't stored");
    sink.connect().await.unwrap();
    for at in &known {
        let header = format!("Nats-Msg-Id: {}\r\n", id(0, *at));
        let answer = server.client().publish(&format!("{}.access", fixture.stream), &header, "\"of another\"");
        assert!(answer.contains("\"seq\""), "{answer}");
    }
    // An id twice in one batch.
    let last = id(0, 1_200);
    let batch = batch_named(0, 1, &vec!["1"; 1_202], |at| if at > 1_200 { last } else { id(0, at) });
    assert_eq!(sink.write(&batch).await, Ok(WriteOutcome::Committed));
    let mut ids: Vec<EventId> = fixture.messages().into_iter().map(|(id, _)| id).collect();
    ids.sort();
    assert_eq!(ids, (1..=1_200).map(|at| id(0, at)).collect::<Vec<_>>());
    assert_eq!(fixture.sink().cursor(&lane(0)).await, Ok(Cursor::Store(1_202)));
}

#[tokio::test]
async fn server_with_a_batch_limit_gets_small_batches() {
    let limits = format!("{ROOMY}jetstream {{ limits {{ batch {{ max_msgs: 7 }} }} }}\n");
    let Some(server) = NatsServer::start_with(&limits) else { return };
    let fixture = Fixture::new(&server);
    deliver(&fixture.sink(), &plain(0, 1, 100)).await;
    assert_eq!(fixture.messages().len(), 100);
}

#[tokio::test]
async fn two_gateways_with_two_shards_share_a_stream() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server);
    fixture.sink().connect().await.unwrap();
    let mut writes = Vec::new();
    for origin in 0..2_u8 {
        let sink = Sink::new(Nats::new(NatsConfig { ..fixture.config.clone() }));
        for shard in 0..2 {
            let sink = sink.clone();
            writes.push(tokio::spawn(async move {
                for first in [1, 1_001, 2_001] {
                    deliver(&sink, &plain(shard + 2 * u16::from(origin), first, 1_000)).await;
                }
            }));
        }
    }
    for write in writes {
        write.await.unwrap();
    }
    let mut ids: Vec<_> = fixture.messages().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 12_000);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 12_000, "each once");
    assert_eq!(fixture.count(), 12_004, "and a cursor for each lane");
}
