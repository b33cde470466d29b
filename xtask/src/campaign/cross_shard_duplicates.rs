//! Batches that share ids with a large one of another shard, whose client stops retrying when the server is SIGKILLED: acknowledged events
//! are stored once, also if the first copy was lost with the other's block.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::frame::{FrameOptions, short_with};
use super::sqlite;
use crate::http::{self, Connection};
use crate::server::Launch;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 50)]
    kills: u64,
    /// Events of the large batch, of about a kilobyte each.
    #[arg(long, default_value_t = 20_000)]
    large: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

/// A kill happens up to this long after the first small batch: before the large one is durable, or after it.
const KILL_DELAY_MICROSECONDS_MAX: u64 = 300_000;
/// A connection goes to the shard with the least to do: the large batch's isn't that one.
const CONFIG: &str = "[gateway]\nshards = 2\n\n[types.e]\nid = \"/id\"\nroutes = [\"local\"]\n\n[sinks.local]\nkind = \"sqlite\"\n\
    path = \"events.db\"\ntable = \"events\"\n";

/// A batch under a key: an id of the large batch, and another one.
struct Small {
    ids: [String; 2],
    request: Vec<u8>,
    is_answered: bool,
}

/// A few kills of the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with(&["sqlite3"], || run(&Options { kills: 5, large: 20_000, frame: FrameOptions::short() }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let frame = options.frame.begin(format!("cross-shard duplicates: {} kills", options.kills))?;
    let launch = frame.launch(Some(CONFIG))?;
    let mut random = frame.random();
    let mut smalls = Vec::new();
    let mut server = launch.ready()?;
    for round in 0..options.kills {
        let delay = Duration::from_micros(random.below(KILL_DELAY_MICROSECONDS_MAX));
        let is_killed = AtomicBool::new(false);
        let sent = thread::scope(|scope| {
            let large = scope.spawn(|| send_once(&launch, &large(round, options.large)));
            let small = scope.spawn(|| send_smalls(&launch, round, options.large, &is_killed));
            thread::sleep(delay);
            is_killed.store(true, Ordering::Release);
            server.kill()?;
            let _ = large.join();
            small.join().map_err(|_| anyhow!("a client panicked"))
        });
        smalls.extend(sent?);
        server = launch.ready()?;
        for small in smalls.iter_mut().filter(|small| !small.is_answered) {
            while !send_once(&launch, &small.request) {
                thread::sleep(Duration::from_millis(2));
            }
            small.is_answered = true;
        }
    }
    server.wait_stored()?;
    server.stop()?;
    check(&launch, &smalls)?;
    println!("{} small batches, all acknowledged, each event stored once", smalls.len());
    frame.end()
}

fn shared_id(round: u64, number: u64) -> String {
    format!("shared-{round}-{number}")
}

fn large(round: u64, count: u64) -> Vec<u8> {
    let pad = "x".repeat(1_000);
    let line = |number| format!("{{\"id\":\"{}\",\"pad\":\"{pad}\"}}\n", shared_id(round, number));
    let lines: String = (0..count).map(line).collect();
    http::post("/ingest/batch/e", &["Content-Type: application/x-ndjson"], lines.as_bytes())
}

/// Sends one small batch after the other until the server is killed. Those at its end have no answer.
fn send_smalls(launch: &Launch, round: u64, large: u64, is_killed: &AtomicBool) -> Vec<Small> {
    let mut smalls = Vec::new();
    let pad = "x".repeat(1_000);
    while !is_killed.load(Ordering::Acquire) {
        let number = smalls.len() as u64;
        // The same bytes as in the large batch: it is the same event.
        let ids = [shared_id(round, number * 17 % large), format!("own-{round}-{number}")];
        let lines: String = ids.iter().map(|id| format!("{{\"id\":\"{id}\",\"pad\":\"{pad}\"}}\n")).collect();
        let key = format!("Idempotency-Key: small-{round}-{number}");
        let headers = ["Content-Type: application/x-ndjson", key.as_str()];
        let request = http::post("/ingest/batch/e", &headers, lines.as_bytes());
        let is_answered = send_once(launch, &request);
        smalls.push(Small { ids, request, is_answered });
    }
    smalls
}

/// Whether the request was answered with 200.
fn send_once(launch: &Launch, request: &[u8]) -> bool {
    let answer = Connection::open(launch.intake).and_then(|mut connection| connection.send(request));
    answer.is_ok_and(|answer| answer.status == 200)
}

/// Each id of a small batch is stored once.
fn check(launch: &Launch, smalls: &[Small]) -> Result<()> {
    let query = "select payload ->> 'id', count(*) from events group by 1";
    let rows = sqlite::select(&launch.data.join("events.db"), query)?;
    let counts: BTreeMap<&str, &str> = rows.lines().filter_map(|row| row.split_once('|')).collect();
    let wrong = |id: &&String| counts.get(id.as_str()) != Some(&"1");
    let wrong: Vec<_> = smalls.iter().flat_map(|small| &small.ids).filter(wrong).collect();
    if let Some(first) = wrong.first() {
        let count = counts.get(first.as_str()).unwrap_or(&"0");
        bail!("{} acknowledged events aren't stored once: {first} is there {count} times", wrong.len());
    }
    Ok(())
}
