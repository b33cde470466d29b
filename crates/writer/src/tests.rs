//! A hanging sink or a slow gateway must not use the memory and the connections of others.

mod other_versions;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use access::{Demand, Tokens};
use bytes::Bytes;
use event::read::{Filter, Query, Wanted};
use event::{EventId, Lane, Origin};
use limits::memory::WriterBudgets;
use limits::{EVENT_BYTES_MAX, READ_BYTES_MAX, READ_EVENTS_MAX};
use net::connections::ConnectionLimiter;
use net::newcomers::{Newcomers, Place};
use sink::{Batch, Null, Record, Sink, Write};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::time::Instant;
use writer_protocol::{frame, version, wire};

use crate::reads::ReadRoom;
use crate::request_parts::{BODY_SILENCE_MAX, ROOM_WAIT_MAX};
use crate::{Offered, Writer, connection};

/// Bytes of an answer that a test reads at most.
const ANSWER_BYTES: usize = 1024;

fn lane(sink: &str) -> Lane {
    Lane { origin: Origin([1; 16]), shard: 0, sink: sink.into() }
}

/// A frame of one record.
fn frame_of(sink: &str) -> Bytes {
    let block = Bytes::from_static(b"event{}");
    let mut batch = Batch::new(lane(sink), 1);
    let record = Record {
        sequence: 1,
        id: EventId([2; 16]),
        type_name: std::str::from_utf8(&block[..5]).unwrap(),
        source: "",
        received_at: 0,
        event_time: None,
        write: Write::Insert,
        payload: &block[5..],
    };
    batch.push(&block, &record);
    frame::encode(&batch)
}

fn head(sink: &str, bytes: usize, more: &str) -> String {
    let (lane, content_type) = (wire::lane_text(&lane(sink)), wire::CONTENT_TYPE);
    format!(
        "POST /ingest/data/{sink} HTTP/1.1\r\nHost: localhost\r\nForebay-Protocol: {}\r\nForebay-Lane: {lane}\r\n\
         Forebay-Positions: 1-1\r\nForebay-Min-Position: 0\r\nForebay-Resent-Through: 0\r\n\
         Content-Type: {content_type}\r\nContent-Length: {bytes}\r\n{more}\r\n",
        version::OWN
    )
}

/// A writer with two sinks that accept everything.
fn writer() -> Arc<Writer> {
    let offered = |name: &str| (name.to_owned(), Offered::new("null", BTreeMap::new(), Sink::new(Null)));
    let offered = ["slow", "other"].map(offered).into();
    Arc::new(Writer::new(offered, Arc::new(Tokens::default()), Demand::WithTokens, true, None))
}

/// The place of a connection of this machine, with room for it alone.
pub(super) async fn place() -> Arc<Place> {
    let newcomers = Newcomers::new(Arc::new(ConnectionLimiter::new(1, 1)));
    Arc::new(newcomers.arrive(Ipv4Addr::LOCALHOST.into()).await.unwrap().0)
}

fn connect(writer: &Arc<Writer>) -> DuplexStream {
    let (gateway, stream) = tokio::io::duplex(64 * 1024);
    let writer = writer.clone();
    tokio::spawn(async move { connection::requests(stream, &writer, &place().await).await });
    gateway
}

async fn answer(gateway: &mut DuplexStream) -> String {
    let mut answer = vec![0; ANSWER_BYTES];
    let length = gateway.read(&mut answer).await.unwrap();
    String::from_utf8(answer[..length].to_vec()).unwrap()
}

async fn post(writer: &Arc<Writer>, sink: &str, more: &str) -> String {
    let (mut gateway, frame) = (connect(writer), frame_of(sink));
    gateway.write_all(head(sink, frame.len(), more).as_bytes()).await.unwrap();
    gateway.write_all(&frame).await.unwrap();
    answer(&mut gateway).await
}

#[tokio::test(start_paused = true)]
async fn hanging_store_uses_no_memory_of_other_sinks() {
    let writer = writer();
    let room = writer.offered["slow"].room.clone();
    let batches = room.try_acquire_many(u32::try_from(room.available_permits()).unwrap()).unwrap();
    let begun = Instant::now();
    let refused = post(&writer, "slow", "").await;
    assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("all of its memory"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(3), "a gateway treats a writer as dead that is silent for longer");
    assert!(begun.elapsed() >= ROOM_WAIT_MAX);
    let stored = post(&writer, "other", "").await;
    assert!(stored.starts_with("HTTP/1.1 200 ") && stored.contains("\"stored\""), "{stored}");
    drop(batches);
    let stored = post(&writer, "slow", "").await;
    assert!(stored.contains("\"stored\""), "{stored}");
}

#[tokio::test(start_paused = true)]
async fn slow_body_is_rejected_and_frees_its_memory() {
    let writer = writer();
    let room = writer.offered["slow"].room.clone();
    let all = room.available_permits();
    let mut gateway = connect(&writer);
    gateway.write_all(head("slow", 256 * 1024, "").as_bytes()).await.unwrap();
    let begun = Instant::now();
    let mut refused = String::new();
    while refused.is_empty() {
        gateway.write_all(b"x").await.unwrap();
        let read = tokio::time::timeout(BODY_SILENCE_MAX / 2, answer(&mut gateway)).await;
        refused = read.unwrap_or_default();
        assert!(begun.elapsed() < 2 * BODY_SILENCE_MAX, "a slow body keeps the memory");
    }
    assert!(refused.starts_with("HTTP/1.1 408 "), "{refused}");
    assert_eq!(room.available_permits(), all);
}

#[tokio::test]
async fn malformed_header_is_not_a_missing_one() {
    let writer = writer();
    for name in ["Forebay-Claim", "Forebay-Mark", "Forebay-Layout"] {
        let refused = post(&writer, "other", &format!("{name}: \u{e4}\r\n")).await;
        assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains(&name.to_lowercase()), "{refused}");
    }
}

/// A writer's port with so many places, of which one client may have all, and a token that it needs.
async fn listening(places: usize) -> (std::net::SocketAddr, Arc<Writer>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, writer) = (listener.local_addr().unwrap(), writer());
    let limiter = ConnectionLimiter::new(places, places);
    tokio::spawn(writer.clone().serve(listener, limiter, std::future::pending()));
    (address, writer)
}

#[tokio::test]
async fn silent_connections_yield_their_places_to_gateways() {
    const PLACES: usize = 4;
    let (address, writer) = listening(PLACES).await;
    let mut gateway = TcpStream::connect(address).await.unwrap();
    let ask =
        format!("GET /ingest/data/slow HTTP/1.1\r\nHost: localhost\r\nForebay-Protocol: {}\r\n\r\n", version::OWN);
    let ask = ask.as_bytes();
    gateway.write_all(ask).await.unwrap();
    let mut answer = [0; ANSWER_BYTES];
    assert!(gateway.read(&mut answer).await.unwrap() > 0);
    let mut silent = Vec::new();
    for _ in 0..3 * PLACES {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let mut late = TcpStream::connect(address).await.unwrap();
    late.write_all(ask).await.unwrap();
    assert!(late.read(&mut answer).await.unwrap() > 0, "a gateway that arrives late has a place");
    gateway.write_all(ask).await.unwrap();
    assert!(gateway.read(&mut answer).await.unwrap() > 0, "a gateway that was admitted keeps its place");
    for stream in &mut silent[..2 * PLACES] {
        assert_eq!(stream.read(&mut answer).await.unwrap_or(0), 0, "the oldest are closed");
    }
    assert!(writer.counters().connections_closed.get() >= 2 * PLACES as u64);
}

#[tokio::test]
async fn pages_are_bounded_for_any_query() {
    let writer = writer();
    let ask = |room: ReadRoom| {
        let wanted = Wanted::Stored(Filter::default());
        let query = Query { wanted, only_type: None, after: None, limit: usize::MAX, bytes_max: usize::MAX };
        room.bounded(query)
    };
    let bounded = ask(writer.reads.clone());
    assert_eq!((bounded.limit, bounded.bytes_max), (READ_EVENTS_MAX, READ_BYTES_MAX));
    let little = WriterBudgets::least(&Writer::memory_parts(2, 0));
    let bounded = ask(ReadRoom::new(&little));
    assert!(bounded.bytes_max < READ_BYTES_MAX && bounded.bytes_max >= EVENT_BYTES_MAX);
}
