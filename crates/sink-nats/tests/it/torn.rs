//! Batches that a server acknowledges and stores in part, since its account is full: at the beginning of a stream, of one that was
//! purged, and of one whose messages have aged. What is missing is sent again, and nothing twice.
//!
//! The server compares each message with the account's room when it comes, and again when it stores the batch: so the first is stored.

use event::Lane;
use sink::{Batch, Cursor, Sink, SinkError, WriteOutcome};

use crate::fixture::Fixture;
use sink_testing::events::{batch, deliver, id, lane};
use testkit::nats::{NatsServer, ROOMY};

/// Bytes that the account may store.
const ACCOUNT_BYTES: usize = 256 * 1024;
/// Bytes that hold a cursor, and no event of [`large`].
const OF_A_CURSOR: usize = 1_500;
/// Bytes that one event takes, at most, in the stream.
const OF_AN_EVENT: usize = 2_500;
/// Bytes of a message of the filler beside its payload.
const OF_A_FILLER: usize = 60;

fn limited() -> Option<NatsServer> {
    let account = format!(
        "{ROOMY}accounts {{ A {{ jetstream {{ max_file: {ACCOUNT_BYTES}, max_mem: 1MB }}, \
         users [ {{ user: ann, password: s3cret }} ] }} }}\nno_auth_user: ann\n"
    );
    NatsServer::start_with(&account)
}

/// Leaves so much room in the account; none for as much as there is.
fn leave(server: &NatsServer, room: Option<usize>) {
    let mut client = server.client();
    client.stream("CREATE", "FILLER", r#"{"name":"FILLER","subjects":["filler"],"storage":"file"}"#);
    client.stream("PURGE", "FILLER", "");
    let Some(room) = room else { return };
    let info = client.ask("$JS.API.INFO", "");
    let (_, behind) = info.split_once("\"storage\":").unwrap();
    let used: usize = behind.split([',', '}']).next().unwrap().trim().parse().unwrap();
    let answer = client.publish("filler", "", &"x".repeat(ACCOUNT_BYTES - used - room - OF_A_FILLER));
    assert!(!answer.contains("error"), "{answer}");
}

/// Events of which `leave` knows the size.
fn large(shard: u16, first: u64, count: usize) -> Batch {
    let payload = format!(r#"{{"text": "{}"}}"#, "x".repeat(2_000));
    batch(shard, first, &vec![payload.as_str(); count])
}

/// A stream whose window for ids is so short that only the cursor keeps events from being stored twice.
fn forgetful(fixture: &Fixture<'_>, settings: &str) {
    let description = fixture.description(&format!(",\"duplicate_window\":100000000{settings}"));
    let made = fixture.server.client().stream("CREATE", &fixture.stream, &description);
    assert!(!made.contains("\"error\""), "{made}");
}

async fn forget() {
    // Longer than the window; the server looks at it as often.
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
}

/// Writes a batch that is acknowledged, and of which only so many events are stored.
async fn tear(fixture: &Fixture<'_>, sink: &Sink, events: &Batch, stored: usize) {
    leave(fixture.server, Some(OF_A_CURSOR + stored * OF_AN_EVENT));
    let before = fixture.messages().len();
    let answer = sink.write(events).await;
    let Err(SinkError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("stored only some of them") && reason.contains("no room left"), "{reason}");
    assert_eq!(fixture.messages().len(), before + stored);
}

async fn stands_at(sink: &Sink, lane: &Lane, position: u64) {
    assert_eq!(sink.cursor(lane).await, Ok(Cursor::Store(position)));
}

/// These events of shard 0 are there, each once.
fn expect(fixture: &Fixture<'_>, positions: impl Iterator<Item = u64>) {
    let mut ids: Vec<_> = fixture.messages().into_iter().map(|(id, _)| id).collect();
    ids.retain(|found| found.0[6..8] == [0, 0]);
    ids.sort();
    assert_eq!(ids, positions.map(|position| id(0, position)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_first_batch_of_which_some_is_stored_is_completed() {
    let Some(server) = limited() else { return };
    for (stored, is_restarted) in [(1, false), (1, true), (2, false), (2, true)] {
        let fixture = Fixture::new(&server);
        let sink = fixture.sink();
        sink.connect().await.unwrap();
        tear(&fixture, &sink, &large(0, 1, 5), stored).await;
        let sink = if is_restarted { fixture.sink() } else { sink };
        stands_at(&sink, &lane(0), 0).await;
        leave(&server, None);
        deliver(&sink, &large(0, 1, 5)).await;
        expect(&fixture, 1..=5);
        stands_at(&fixture.sink(), &lane(0), 5).await;
    }
}

#[tokio::test]
async fn a_batch_that_is_torn_again_and_again_is_stored_once_by_its_cursors_alone() {
    let Some(server) = limited() else { return };
    let fixture = Fixture::new(&server);
    forgetful(&fixture, "");
    for stored in [1, 1, 2] {
        let sink = fixture.sink();
        stands_at(&sink, &lane(0), 0).await;
        tear(&fixture, &sink, &large(0, 1, 6), stored).await;
        forget().await;
    }
    leave(&server, None);
    deliver(&fixture.sink(), &large(0, 1, 6)).await;
    expect(&fixture, 1..=6);
    stands_at(&fixture.sink(), &lane(0), 6).await;
}

#[tokio::test]
async fn a_batch_that_is_torn_at_the_beginning_of_a_purged_stream_is_completed() {
    let Some(server) = limited() else { return };
    // Alone in its stream a lane knows where its last batch ended; with another lane's purged messages in between it doesn't.
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
            stands_at(&sink, &lane(0), 10).await;
            leave(&server, None);
            deliver(&sink, &large(0, 11, 5).sent_after(10, 15)).await;
            expect(&fixture, 11..=15);
        }
    }
}

#[tokio::test]
async fn a_whole_batch_stays_whole_when_its_messages_are_purged_deleted_or_aged() {
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
        stands_at(&fixture.sink(), &lane(0), 5).await;
        assert_eq!(fixture.sink().write(&large(0, 1, 5)).await, Ok(WriteOutcome::Committed));
        assert_eq!(fixture.messages().len(), left, "nothing comes back");
    }
    // By age: the stream then begins with a cursor.
    let fixture = Fixture::new(&server);
    forgetful(&fixture, ",\"max_age\":500000000");
    deliver(&fixture.sink(), &large(0, 1, 5)).await;
    while fixture.count() > 1 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    stands_at(&fixture.sink(), &lane(0), 5).await;
    deliver(&fixture.sink(), &large(0, 6, 1)).await;
}

/// Nothing is left of it, as if another stream had taken the room: as long as the server knows ids, what it may lack is sent again.
#[tokio::test]
async fn a_new_batch_of_which_only_the_cursor_is_left_is_sent_again() {
    let Some(server) = limited() else { return };
    let fixture = Fixture::new(&server);
    // Another lane's messages, which are purged then, are where the batch would be.
    deliver(&fixture.sink(), &large(1, 1, 10)).await;
    tear(&fixture, &fixture.sink(), &large(0, 1, 5), 1).await;
    server.client().stream("PURGE", &fixture.stream, &format!("{{\"filter\":\"{}.>\"}}", fixture.stream));
    stands_at(&fixture.sink(), &lane(0), 0).await;
    leave(&server, None);
    deliver(&fixture.sink(), &large(0, 1, 5)).await;
    // The server has had the first.
    expect(&fixture, 2..=5);
}

/// Whatever an operator removes at once, the server knows the ids of what it had.
#[tokio::test]
async fn what_is_purged_right_behind_a_batch_is_not_stored_again() {
    let Some(server) = limited() else { return };
    let fixture = Fixture::new(&server);
    deliver(&fixture.sink(), &large(0, 1, 5)).await;
    server.client().stream("PURGE", &fixture.stream, &format!("{{\"filter\":\"{}.>\"}}", fixture.stream));
    deliver(&fixture.sink(), &large(0, 1, 5)).await;
    deliver(&fixture.sink(), &large(0, 6, 2)).await;
    expect(&fixture, 6..=7);
}

/// Proofs that are left although messages of the batch, or before it, are gone.
#[tokio::test]
async fn a_torn_batch_is_known_by_what_is_left_of_it() {
    let Some(server) = limited() else { return };
    // Events 1 and 2 of 5 are stored, and then one of them or both are deleted: what is gone isn't there, what is missing is sent.
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
        stands_at(&fixture.sink(), &lane(0), 0).await;
        leave(&server, None);
        deliver(&fixture.sink(), &large(0, 1, 5)).await;
        let all: std::collections::BTreeSet<u64> = left.iter().chain(&deleted).copied().collect();
        // A deleted message of a torn batch can't be told from one that was never stored: it is sent again.
        expect(&fixture, all.into_iter());
    }
}
