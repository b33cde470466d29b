//! The values that events become in each structure.

use bytes::Bytes;
use event::EventId;
use sink::{Batch, Record, Sink, SinkError, Write, WriteOutcome};
use sink_redis::{Redis, RedisConfig, Structure};

use crate::fixture::{Fixture, STREAM, server};
use sink_testing::events::{id, lane};
use testkit::redis::{RedisReply, RedisServer};

/// An event without its position.
struct Event {
    id: EventId,
    time: i64,
    write: Write,
    payload: String,
}

impl Event {
    fn new(number: u64, payload: &str) -> Self {
        Self { id: id(7, number), time: 1_000, write: Write::Insert, payload: payload.to_owned() }
    }

    fn at(self, time: i64) -> Self {
        Self { time, ..self }
    }

    fn revised(self, revision: u64) -> Self {
        Self { write: Write::Upsert(revision), ..self }
    }
}

/// Writes events to a lane, beginning at a position.
async fn write(sink: &Sink, shard: u16, first: u64, events: &[Event]) -> Result<WriteOutcome, SinkError> {
    let mut batch = Batch::new(lane(shard), first);
    for (sequence, event) in (first..).zip(events) {
        let block = Bytes::from(format!("access{}", event.payload));
        let record = Record {
            sequence,
            id: event.id,
            type_name: std::str::from_utf8(&block[..6]).unwrap(),
            source: "",
            received_at: event.time,
            event_time: None,
            write: event.write,
            payload: &block[6..],
        };
        batch.push(&block, &record);
    }
    let report = sink.write(&batch).await;
    // A duplicate changes nothing.
    if report == Ok(WriteOutcome::Committed) {
        assert_eq!(sink.write(&batch).await, Ok(WriteOutcome::Committed));
    }
    report
}

fn texts(value: RedisReply) -> Vec<String> {
    value.list().into_iter().map(RedisReply::text).collect()
}

fn plain(count: u64) -> Vec<Event> {
    (1..=count).map(|number| Event::new(number, &number.to_string())).collect()
}

#[tokio::test]
async fn lists_and_sets_hold_payloads() {
    let Some(server) = server() else { return };
    let list = Fixture::new(server, Structure::List { entries_max: None });
    assert_eq!(write(&list.sink(), 0, 1, &plain(3)).await, Ok(WriteOutcome::Committed));
    assert_eq!(texts(server.ask(&["LRANGE", &list.key, "0", "-1"])), ["1", "2", "3"]);
    let short = Fixture::new(server, Structure::List { entries_max: Some(2) });
    assert_eq!(write(&short.sink(), 0, 1, &plain(3)).await, Ok(WriteOutcome::Committed));
    assert_eq!(texts(server.ask(&["LRANGE", &short.key, "0", "-1"])), ["2", "3"]);
    let set = Fixture::new(server, Structure::Set);
    let twice: Vec<Event> = plain(2).into_iter().chain(plain(2)).collect();
    assert_eq!(write(&set.sink(), 0, 1, &twice).await, Ok(WriteOutcome::Committed));
    let mut members = texts(server.ask(&["SMEMBERS", &set.key]));
    members.sort();
    assert_eq!(members, ["1", "2"]);
}

#[tokio::test]
async fn streams_are_trimmed_and_contain_revisions() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, Structure::Stream { entries_max: Some(100) });
    assert_eq!(write(&fixture.sink(), 0, 1, &plain(1_000)).await, Ok(WriteOutcome::Committed));
    let count = fixture.count();
    assert!((100..300).contains(&count), "{count} entries");
    let fixture = Fixture::new(server, STREAM);
    assert_eq!(write(&fixture.sink(), 0, 1, &[Event::new(1, "7").revised(3)]).await, Ok(WriteOutcome::Committed));
    let entry = server.ask(&["XRANGE", &fixture.key, "-", "+"]).list().remove(0).list().remove(1);
    assert_eq!(texts(entry), ["id", &id(7, 1).to_string(), "revision", "3", "payload", "7"]);
}

#[tokio::test]
async fn latest_event_of_each_field_is_kept() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, Structure::Latest { field: "/d".parse().unwrap() });
    let sink = fixture.sink();
    let of = |device: &str, n: u64| Event::new(n, &format!("{{\"d\": {device}, \"n\": {n}}}"));
    let kept = |device: &str| server.ask(&["HGET", &fixture.key, device]).text();
    let first = [of("\"a\"", 1).at(10), of("7", 2).at(10), of("\"a\"", 3).at(12), of("\"a\"", 4).at(11)];
    assert_eq!(write(&sink, 0, 1, &first).await, Ok(WriteOutcome::Committed));
    assert_eq!(kept("a"), r#"{"d": "a", "n": 3}"#);
    assert_eq!(kept("7"), r#"{"d": 7, "n": 2}"#);
    // A delayed lane delivers older events.
    assert_eq!(write(&sink, 1, 1, &[of("\"a\"", 5).at(9), of("7", 6).at(11)]).await, Ok(WriteOutcome::Committed));
    assert_eq!(kept("a"), r#"{"d": "a", "n": 3}"#);
    assert_eq!(kept("7"), r#"{"d": 7, "n": 6}"#);
    let Ok(WriteOutcome::Rejected { refused }) =
        write(&sink, 0, 5, &[of("null", 7), of("{}", 8), of("\"b\"", 9)]).await
    else {
        panic!("two have no field")
    };
    assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [0, 1]);
    assert!(refused[0].reason.contains("no value at /d"), "{}", refused[0].reason);
}

#[tokio::test]
async fn counters_count_events_once_and_newest_revisions() {
    let Some(server) = server() else { return };
    let structure = Structure::Counter { field: "/s".parse().unwrap(), by: Some("/n".parse().unwrap()) };
    let fixture = Fixture::new(server, structure);
    let sink = fixture.sink();
    let of = |id: u64, s: &str, n: i64| Event::new(id, &format!("{{\"s\": \"{s}\", \"n\": {n}}}"));
    let count = |field: &str| server.ask(&["HGET", &fixture.key, field]).text();
    assert_eq!(
        write(&sink, 0, 1, &[of(1, "a", 5), of(2, "a", -2), of(3, "b b", i64::MAX)]).await,
        Ok(WriteOutcome::Committed)
    );
    assert_eq!((count("a"), count("b b")), ("3".into(), i64::MAX.to_string()));
    let results = [of(4, "a", 10).revised(1), of(4, "a", -7).revised(2), of(5, "a", 100).revised(9)];
    assert_eq!(write(&sink, 0, 4, &results).await, Ok(WriteOutcome::Committed));
    assert_eq!(count("a"), "96");
    // Revisions decide between lanes, because positions can't: an older one changes nothing, a newer one replaces.
    assert_eq!(write(&sink, 1, 1, &[of(4, "a", 1_000).revised(1)]).await, Ok(WriteOutcome::Committed));
    assert_eq!(count("a"), "96");
    let others = [of(4, "c", 8).revised(3), of(5, "a", 0).revised(10)];
    assert_eq!(write(&sink, 1, 2, &others).await, Ok(WriteOutcome::Committed));
    assert_eq!((count("a"), count("c")), ("3".into(), "8".into()));
    let newest = [of(5, "a", 1).revised(11)];
    assert_eq!(write(&sink, 2, 1, &newest).await, Ok(WriteOutcome::Committed));
    assert_eq!(count("a"), "4");
}

#[tokio::test]
async fn messages_reach_current_subscribers() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, Structure::Publish);
    let mut listener = server.client();
    listener.ask(&["SUBSCRIBE", &fixture.key]);
    assert_eq!(write(&fixture.sink(), 0, 1, &plain(2)).await, Ok(WriteOutcome::Committed));
    for payload in ["1", "2"] {
        assert_eq!(texts(listener.next_push()), ["message", &fixture.key, payload]);
    }
    assert_eq!(server.ask(&["EXISTS", &fixture.key]).number(), 0);
}

#[tokio::test]
async fn existing_value_of_another_type_is_unchanged() {
    let Some(server) = server() else { return };
    for structure in [STREAM, Structure::List { entries_max: None }, Structure::Set, Structure::Hash] {
        let fixture = Fixture::new(server, structure);
        server.ask(&["SET", &fixture.key, "mine"]);
        let Err(SinkError::Misconfigured(reason)) = write(&fixture.sink(), 0, 1, &plain(2)).await else {
            panic!("a string is no {}", fixture.config.structure)
        };
        assert!(reason.contains("move it away"), "{reason}");
        assert_eq!(server.ask(&["GET", &fixture.key]).text(), "mine");
        server.ask(&["DEL", &fixture.key]);
        assert_eq!(write(&fixture.sink(), 0, 1, &plain(2)).await, Ok(WriteOutcome::Committed));
    }
}

#[tokio::test]
async fn types_have_separate_keys_in_each_database() {
    let Some(server) = RedisServer::start() else { return };
    let fixture = Fixture::new(&server, STREAM);
    let url = format!("redis://{}/3", fixture.proxy.address());
    let config =
        RedisConfig { key: "of:{type}".parse().unwrap(), server: url.parse().unwrap(), ..fixture.config.clone() };
    assert_eq!(write(&Sink::new(Redis::new(config)), 0, 1, &plain(2)).await, Ok(WriteOutcome::Committed));
    assert_eq!(server.ask(&["DBSIZE"]).number(), 0);
    let mut client = server.client();
    client.ask(&["SELECT", "3"]);
    assert_eq!(client.ask(&["XLEN", "of:access"]).number(), 2);
}
