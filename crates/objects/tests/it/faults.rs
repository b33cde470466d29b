//! Connections that are cut and that freeze, servers that are killed under writes, and tokens that end in between.

use std::time::Duration;

use objects::{Codec, Manifest, Portion};

use sink::{Sink, SinkError};
use sink_testing::faults::{CutStep, FaultHarness, cut_at_any_byte, freeze_and_thaw};

use crate::fixture::{BOTH, Fixture, Protocol, server};
use crate::lines;
use sink_testing::events::{batch, deliver, lane, plain};
use testkit::proxy::Proxy;
use testkit::swift::{SwiftProcess, SwiftServer};

/// How often a server is killed, unless `FOREBAY_SWIFT_KILLS` says.
const KILLS: u32 = 4;

fn from_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl FaultHarness for Fixture<'_> {
    fn sink(&self) -> Sink {
        self.sink()
    }

    fn past_the_proxy(&self) -> Sink {
        self.past_the_proxy()
    }

    fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    async fn count(&self) -> u64 {
        self.count()
    }
}

#[tokio::test]
async fn cut_at_any_byte_of_an_answer_an_object_is_there_once() {
    let Some(server) = server() else { return };
    for protocol in BOTH {
        let fixture = Fixture::new(server, protocol);
        fixture.sink().connect().await.unwrap();
        let step = CutStep { new: 41, open: 41 }.unless_all(std::env::var("FOREBAY_SWIFT_CUTS").ok());
        cut_at_any_byte(&fixture, step, 10).await;
    }
}

#[tokio::test]
async fn a_connection_that_froze_and_thaws_behind_a_twin_changes_nothing() {
    let Some(server) = server() else { return };
    for protocol in BOTH {
        // Before any answer, in the first one, and between an object and its description.
        freeze_and_thaw(&Fixture::new(server, protocol), &[0, 20, 400, 700], 300).await;
    }
}

#[tokio::test]
async fn servers_that_are_killed_under_load_have_each_object_once() {
    let Some(server) = SwiftServer::start() else { return };
    let stands = BOTH.map(|protocol| Fixture::new(&server, protocol));
    let kills = from_environment("FOREBAY_SWIFT_KILLS").map_or(KILLS, |count| count.parse().unwrap());
    let done = tokio::sync::watch::Sender::new(false);
    let written = tokio::sync::watch::Sender::new(0_u64);
    let mut lanes = Vec::new();
    for (fixture, shard) in stands.iter().zip(0..) {
        let (sink, done, written) = (fixture.sink(), done.subscribe(), written.clone());
        lanes.push(tokio::spawn(async move {
            let mut next = 1;
            while !*done.borrow() {
                deliver(&sink, &plain(shard, next, 500)).await;
                written.send_modify(|written| *written += 1);
                next += 500;
            }
            next - 1
        }));
    }
    let mut seen = written.subscribe();
    for round in 0..kills {
        // Something is stored between two kills, however slow the machine is.
        let before = *seen.borrow();
        seen.wait_for(|written| *written >= before + 4).await.unwrap();
        tokio::time::sleep(Duration::from_millis(u64::from(round * 7 % 13))).await;
        let part = [SwiftProcess::Object, SwiftProcess::Proxy, SwiftProcess::Container, SwiftProcess::Memcached]
            [round as usize % 4];
        server.kill_part(part);
        server.run_part(part);
    }
    done.send_replace(true);
    let mut stored = Vec::new();
    for lane in lanes {
        stored.push(lane.await.unwrap());
    }
    server.update_listings();
    for (stored, fixture) in stored.into_iter().zip(&stands) {
        assert_eq!(stored, fixture.count(), "{:?}", fixture.protocol);
    }
}

#[tokio::test]
async fn a_token_that_ends_is_exchanged_and_nobody_notices() {
    let Some(server) = SwiftServer::start() else { return };
    let fixture = Fixture::new(&server, Protocol::Swift);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    // What knows the tokens forgets them.
    server.kill_part(SwiftProcess::Memcached);
    server.run_part(SwiftProcess::Memcached);
    let large = "x".repeat(1 << 20);
    let payload = format!("{{\"large\": \"{large}\"}}");
    deliver(&sink, &plain(0, 11, 10)).await;
    server.kill_part(SwiftProcess::Memcached);
    server.run_part(SwiftProcess::Memcached);
    // A body that is made while it is sent is made once more.
    let batch = batch(0, 21, &[payload.as_str(); 12]);
    assert_eq!(sink.write(&batch).await, Ok(sink::WriteOutcome::Committed));
    assert_eq!(fixture.count(), 32);
}

#[tokio::test]
async fn an_object_that_memory_does_not_keep_arrives_as_it_is_and_is_found_again() {
    let Some(server) = server() else { return };
    for (protocol, codec) in
        [(Protocol::Swift, Codec::None), (Protocol::S3, Codec::None), (Protocol::Swift, Codec::Gzip)]
    {
        let fixture = Fixture::with(server, protocol, codec);
        // What gzip leaves of random digits is more than half of them.
        let payloads: Vec<String> = (0..30_u64).map(|seed| format!("\"{}\"", digits(seed, 700_000))).collect();
        let texts: Vec<&str> = payloads.iter().map(String::as_str).collect();
        let batch = batch(0, 1, &texts);
        deliver(&fixture.sink(), &batch).await;
        deliver(&fixture.sink(), &batch).await;
        let name = fixture.only_object();
        let stored = server.client().get(&fixture.container, &name).unwrap();
        assert!(stored.len() as u64 > fixture.rules.bytes_max, "{} bytes", stored.len());
        let found: Vec<Vec<u8>> = lines::events(&name, &stored).into_iter().map(|(_, payload)| payload).collect();
        assert!(found.iter().map(Vec::as_slice).eq(texts.iter().map(|text| text.as_bytes())));
        // Cut in its middle nothing is there but what was.
        let next = batch_of(&payloads, 31);
        let manifest = Manifest::new(
            lane(0),
            31..=60,
            Portion::received("access", 1_760_000_000_000_031),
            &fixture.rules,
            None,
            None,
        );
        let frozen = fixture.sink();
        frozen.connect().await.unwrap();
        let cut = fixture.proxy.cut_after(0);
        assert!(matches!(frozen.write(&next).await, Err(SinkError::Unavailable(_))));
        drop(cut);
        deliver(&frozen, &next).await;
        assert!(server.client().get(&fixture.container, &manifest.name).is_some());
        assert_eq!(fixture.count(), 60);
    }
}

fn batch_of(payloads: &[String], first: u64) -> sink::Batch {
    batch(0, first, &payloads.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Digits without a pattern, the same each time.
fn digits(seed: u64, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut digits = String::with_capacity(count);
    while digits.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        digits += &format!("{state:016x}");
    }
    digits.truncate(count);
    digits
}

#[tokio::test]
async fn an_object_that_no_listing_has_is_put_on_it() {
    let Some(server) = SwiftServer::start() else { return };
    let fixture = Fixture::new(&server, Protocol::Swift);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 5)).await;
    // What an object server leaves that is killed between the object and its container's listing.
    server.kill_part(SwiftProcess::Container);
    deliver(&sink, &plain(0, 6, 5)).await;
    std::fs::remove_dir_all(server.folder().join("srv/d1/async_pending")).unwrap();
    server.run_part(SwiftProcess::Container);
    assert_eq!(server.client().list(&fixture.container).len(), 2);
    deliver(&sink, &plain(0, 6, 5)).await;
    assert_eq!(server.client().list(&fixture.container).len(), 4);
    assert_eq!(fixture.count(), 10);
}
