//! Connections that are cut or freeze, servers that are killed during writes, and tokens that expire in between.

use std::time::Duration;

use objects::{Codec, Manifest, Portion};
use sink::{Sink, SinkError};
use testkit::proxy::Proxy;
use testkit::swift::{SwiftProcess, SwiftServer};

use super::{ContainerFixture, MakeSink, lines};
use crate::events::{batch, deliver, lane, plain};
use crate::faults::{self, CutStep, FaultHarness};

/// The bytes of the server's answers between two cuts.
const CUT_STEP: usize = 41;
/// How often a server is killed.
const KILLS: u32 = 4;

impl FaultHarness for ContainerFixture<'_> {
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

/// Connections that are cut after more and more bytes of the answers: every `step`, or else every 41.
///
/// # Panics
/// If an object isn't stored once.
pub async fn cut_at_any_byte(make_sink: MakeSink, step: Option<usize>) {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = ContainerFixture::new(server, make_sink);
    fixture.sink().connect().await.unwrap();
    let step = step.unwrap_or(CUT_STEP);
    faults::cut_at_any_byte(&fixture, CutStep { new: step, open: step }, 10).await;
}

/// A connection that freezes, and thaws after another sink has stored the same.
///
/// # Panics
/// If it changes anything.
pub async fn freeze_and_thaw(make_sink: MakeSink) {
    let Some(server) = SwiftServer::shared() else { return };
    // Before any answer, in the first one, and between an object and its description.
    faults::freeze_and_thaw(&ContainerFixture::new(server, make_sink), &[0, 20, 400, 700], 300).await;
}

/// Servers that are killed while two lanes write: `kills` times, or else 4.
///
/// # Panics
/// If an object isn't stored once.
pub async fn kill_servers(make_sink: MakeSink, kills: Option<u32>) {
    let Some(server) = SwiftServer::start() else { return };
    let fixtures = [0, 1].map(|_| ContainerFixture::new(&server, make_sink));
    let done = tokio::sync::watch::Sender::new(false);
    let written = tokio::sync::watch::Sender::new(0_u64);
    let mut lanes = Vec::new();
    for (fixture, shard) in fixtures.iter().zip(0..) {
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
    for round in 0..kills.unwrap_or(KILLS) {
        // Something is stored between two kills, even on a slow machine.
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
    for (stored, fixture) in stored.into_iter().zip(&fixtures) {
        assert_eq!(stored, fixture.count());
    }
}

/// Objects that are larger than the memory for one: written, written again, and cut.
///
/// # Panics
/// If the store hasn't each event once.
pub async fn objects_beyond_memory(make_sink: MakeSink, codecs: &[Codec]) {
    let Some(server) = SwiftServer::shared() else { return };
    for codec in codecs {
        let fixture = ContainerFixture::with(server, make_sink, *codec);
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
        // After a cut in the middle the store has only what it had before.
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
