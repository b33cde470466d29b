//! Batches that a server acknowledges but stores in part, because its account is full: at the beginning of a stream, of
//! a purged one, and of one whose messages have expired. Missing events are resent, and none is stored twice.
//!
//! The server compares each message with the account's room when it arrives, and again when it stores the batch: so the
//! first is stored.

use event::Lane;
use sink::{Batch, Cursor, Sink, SinkError, WriteOutcome};

use crate::fixture::Fixture;
use sink_testing::events::{batch, deliver, id, lane};
use testkit::nats::{NatsServer, ROOMY};

/// Bytes that the account may store.
const ACCOUNT_BYTES: usize = 256 * 1024;
/// Bytes with room for a cursor, and for no event of [`large`].
const OF_A_CURSOR: usize = 1_500;
/// The maximum of bytes that one event needs in the stream.
const OF_AN_EVENT: usize = 2_500;
/// Bytes of a filler message without its payload.
const OF_A_FILLER: usize = 60;

fn limited() -> Option<NatsServer> {
    let account = format!(
        "{ROOMY}accounts {{ A {{ jetstream {{ max_file: {ACCOUNT_BYTES}, max_mem: 1MB }}, \
         users [ {{ user: ann, password: s3cret }} ] }} }}\nno_auth_user: ann\n"
    );
    NatsServer::start_with(&account)
}

/// Leaves this much room in the account; all room with `None`.
fn leave(server: &NatsServer, room: Option<usize>) {
    let mut client = server.client();
    client.stream("CREATE", "FILLER", r#"{"name":"FILLER","subjects":["filler"],"storage":"file"}"#);
    client.stream("PURGE", "FILLER", "");
    let Some(room) = room else { return };
    let info = client.ask("$JS.API.INFO", "");
    let (_, rest) = info.split_once("\"storage\":").unwrap();
    let used: usize = rest.split([',', '}']).next().unwrap().trim().parse().unwrap();
    let answer = client.publish("filler", "", &"x".repeat(ACCOUNT_BYTES - used - room - OF_A_FILLER));
    assert!(!answer.contains("error"), "{answer}");
}

/// Events of the size that `leave` expects.
fn large(shard: u16, first: u64, count: usize) -> Batch {
    let payload = format!(r#"{{"text": "{}"}}"#, "x".repeat(2_000));
    batch(shard, first, &vec![payload.as_str(); count])
}

/// A stream whose deduplication window is so short that only the cursor keeps events from being stored twice.
fn forgetful(fixture: &Fixture<'_>, settings: &str) {
    let description = fixture.description(&format!(",\"duplicate_window\":100000000{settings}"));
    let made = fixture.server.client().stream("CREATE", &fixture.stream, &description);
    assert!(!made.contains("\"error\""), "{made}");
}

async fn forget() {
    // Longer than the window, which the server checks as often.
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
}

/// Writes a batch that is acknowledged, but of which only this many events are stored.
async fn tear(fixture: &Fixture<'_>, sink: &Sink, events: &Batch, stored: usize) {
    leave(fixture.server, Some(OF_A_CURSOR + stored * OF_AN_EVENT));
    let before = fixture.messages().len();
    let answer = sink.write(events).await;
    let Err(SinkError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("stored only some of them") && reason.contains("no room left"), "{reason}");
    assert_eq!(fixture.messages().len(), before + stored);
}

async fn expect_cursor(sink: &Sink, lane: &Lane, position: u64) {
    assert_eq!(sink.cursor(lane).await, Ok(Cursor::Store(position)));
}

/// These events of shard 0 are stored, each once.
fn expect(fixture: &Fixture<'_>, positions: impl Iterator<Item = u64>) {
    let mut ids: Vec<_> = fixture.messages().into_iter().map(|(id, _)| id).collect();
    ids.retain(|found| found.0[6..8] == [0, 0]);
    ids.sort();
    assert_eq!(ids, positions.map(|position| id(0, position)).collect::<Vec<_>>());
}

#[tokio::test]
async fn partly_stored_first_batch_is_completed() {
    let Some(server) = limited() else { return };
    for (stored, is_restarted) in [(1, false), (1, true), (2, false), (2, true)] {
        let fixture = Fixture::new(&server);
        let sink = fixture.sink();
        sink.connect().await.unwrap();
        tear(&fixture, &sink, &large(0, 1, 5), stored).await;
        let sink = if is_restarted { fixture.sink() } else { sink };
        expect_cursor(&sink, &lane(0), 0).await;
        leave(&server, None);
        deliver(&sink, &large(0, 1, 5)).await;
        expect(&fixture, 1..=5);
        expect_cursor(&fixture.sink(), &lane(0), 5).await;
    }
}

#[tokio::test]
async fn repeatedly_torn_batch_is_stored_once() {
    let Some(server) = limited() else { return };
    let fixture = Fixture::new(&server);
    forgetful(&fixture, "");
    for stored in [1, 1, 2] {
        let sink = fixture.sink();
        expect_cursor(&sink, &lane(0), 0).await;
        tear(&fixture, &sink, &large(0, 1, 6), stored).await;
        forget().await;
    }
    leave(&server, None);
    deliver(&fixture.sink(), &large(0, 1, 6)).await;
    expect(&fixture, 1..=6);
    expect_cursor(&fixture.sink(), &lane(0), 6).await;
}

#[tokio::test]
async fn torn_batch_in_a_purged_stream_is_completed() {
    let Some(server) = limited() else { return };
    // Alone in its stream a lane knows the end of its last batch; with another lane's purged messages in between it
    // doesn't.
    for others in [0, 20] {
        for is_restarted in [false, true] {
            let fixture = Fixture::new(&server);
            leave(&server, None);
            let sink = fixture.sink();
            deliver(&sink, &large(0, 1, 10)).await;
            if others > 0 {
                deliver(&sink, &large(1, 1, others)).await;
            }
            server.client().stream("PURGE", &fixture.stream, &format!("{{\"filter\":\"{}.>\"}}", fixture.stream));
            tear(&fixture, &sink, &large(0, 11, 5).sent_after(10, 10), 1).await;
            let sink = if is_restarted { fixture.sink() } else { sink };
            expect_cursor(&sink, &lane(0), 10).await;
            leave(&server, None);
            deliver(&sink, &large(0, 11, 5).sent_after(10, 15)).await;
            expect(&fixture, 11..=15);
        }
    }
}

#[tokio::test]
async fn complete_batch_counts_as_stored_after_deletions() {
    let Some(server) = limited() else { return };
    let purge = |fixture: &Fixture<'_>, what: &str| {
        let done =
            server.client().stream("PURGE", &fixture.stream, &format!("{{\"filter\":\"{}.>\"{what}}}", fixture.stream));
        assert!(done.contains("\"success\":true"), "{done}");
    };
    let delete = |fixture: &Fixture<'_>, sequence: u64| {
        let done = server
            .client()
            .ask(&format!("$JS.API.STREAM.MSG.DELETE.{}", fixture.stream), &format!("{{\"seq\":{sequence}}}"));
        assert!(done.contains("\"success\":true"), "{done}");
    };
    let spoils: [&dyn Fn(&Fixture<'_>); 4] = [
        &|fixture| purge(fixture, ""),
        &|fixture| purge(fixture, ",\"keep\":2"),
        &|fixture| delete(fixture, 1),
        &|fixture| [1, 2, 4].iter().for_each(|sequence| delete(fixture, *sequence)),
    ];
    for spoil in spoils {
        let fixture = Fixture::new(&server);
        forgetful(&fixture, "");
        deliver(&fixture.sink(), &large(0, 1, 5)).await;
        spoil(&fixture);
        let left = fixture.messages().len();
        forget().await;
        expect_cursor(&fixture.sink(), &lane(0), 5).await;
        assert_eq!(fixture.sink().write(&large(0, 1, 5)).await, Ok(WriteOutcome::Committed));
        assert_eq!(fixture.messages().len(), left, "nothing is restored");
    }
    // By age: the stream then begins with a cursor.
    let fixture = Fixture::new(&server);
    forgetful(&fixture, ",\"max_age\":500000000");
    deliver(&fixture.sink(), &large(0, 1, 5)).await;
    while fixture.count() > 1 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    expect_cursor(&fixture.sink(), &lane(0), 5).await;
    deliver(&fixture.sink(), &large(0, 6, 1)).await;
}

/// Nothing is left of it, as if another stream had used the room: while the server has the ids, possibly missing events
/// are resent.
#[tokio::test]
async fn new_batch_without_its_messages_is_resent() {
    let Some(server) = limited() else { return };
    let fixture = Fixture::new(&server);
    // Another lane's messages, which are then purged, are at the sequences of the batch.
    deliver(&fixture.sink(), &large(1, 1, 10)).await;
    tear(&fixture, &fixture.sink(), &large(0, 1, 5), 1).await;
    server.client().stream("PURGE", &fixture.stream, &format!("{{\"filter\":\"{}.>\"}}", fixture.stream));
    expect_cursor(&fixture.sink(), &lane(0), 0).await;
    leave(&server, None);
    deliver(&fixture.sink(), &large(0, 1, 5)).await;
    // The server has the first one's id.
    expect(&fixture, 2..=5);
}

/// If an operator deletes messages immediately, the server still has their ids.
#[tokio::test]
async fn events_purged_immediately_are_not_stored_again() {
    let Some(server) = limited() else { return };
    let fixture = Fixture::new(&server);
    deliver(&fixture.sink(), &large(0, 1, 5)).await;
    server.client().stream("PURGE", &fixture.stream, &format!("{{\"filter\":\"{}.>\"}}", fixture.stream));
    deliver(&fixture.sink(), &large(0, 1, 5)).await;
    deliver(&fixture.sink(), &large(0, 6, 2)).await;
    expect(&fixture, 6..=7);
}

/// Proofs that remain although messages of the batch, or before it, are missing.
#[tokio::test]
async fn torn_batch_is_recognised_by_its_remains() {
    let Some(server) = limited() else { return };
    // Events 1 and 2 of 5 are stored, and then one of them or both are deleted: deleted ones stay deleted, missing ones
    // are sent.
    for (deleted, left) in [(vec![1], vec![2, 3, 4, 5]), (vec![2], vec![1, 3, 4, 5])] {
        let fixture = Fixture::new(&server);
        forgetful(&fixture, "");
        tear(&fixture, &fixture.sink(), &large(0, 1, 5), 2).await;
        for sequence in &deleted {
            server
                .client()
                .ask(&format!("$JS.API.STREAM.MSG.DELETE.{}", fixture.stream), &format!("{{\"seq\":{sequence}}}"));
        }
        forget().await;
        expect_cursor(&fixture.sink(), &lane(0), 0).await;
        leave(&server, None);
        deliver(&fixture.sink(), &large(0, 1, 5)).await;
        let all: std::collections::BTreeSet<u64> = left.iter().chain(&deleted).copied().collect();
        // A deleted message of a torn batch can't be distinguished from one that was never stored: it is resent.
        expect(&fixture, all.into_iter());
    }
}
