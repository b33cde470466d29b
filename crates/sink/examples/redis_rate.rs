//! Entries a second into a stream of Redis: this sink against `redis-cli --pipe` with one `XADD` of the same fields for each, in
//! turn, in one run, on a server that waits for its disk (`appendfsync always`).
//!
//! ```text
//! cargo run --release -p sink --features redis --example redis_rate -- [entries, 300000] [rounds, 3] [least ratio]
//! ```
//!
//! Payloads are the lines of `access.ndjson` in the folder that `FOREBAY_TEST_RECORDS` names, or made-up ones of the
//! same size. Only the ratio means something.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example talks to its user, and ends by what fails")]

#[path = "../tests/redis_server/mod.rs"]
mod redis_server;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use event::id::{IdGenerator, numbered};
use event::{Lane, Origin};
use sink::redis::{RedisConfig, Structure};
use sink::{Batch, Record, Report, Sink, SinkConfig, Write};

use redis_server::RedisServer;

const BATCH_RECORDS: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>());
    let (entries, rounds) = (number(0, 300_000)?, number(1, 3)?);
    let least: f64 = arguments.get(2).map_or(Ok(0.0), |text| text.parse())?;
    let payloads = payloads();
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let settings =
        ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0", "--port", &port];
    let Some(server) = RedisServer::start_with(&settings) else { return Ok(()) };
    let file = server.folder().join("commands");
    write_commands(&file, &payloads, entries)?;
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let ours = write_sink(&server, &port, &payloads, entries)?;
        let theirs = pipe(&server, &port, &file, entries)?;
        let rate = |time: Duration| entries as f64 / time.as_secs_f64();
        println!("round {round}: sink {:.0} entries/s, redis-cli --pipe {:.0} entries/s", rate(ours), rate(theirs));
        ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!("sink / redis-cli --pipe, median: {median:.2}");
    if median < least { Err(format!("short of {least}").into()) } else { Ok(()) }
}

/// Lines of about 335 bytes.
fn payloads() -> Vec<Bytes> {
    let folder = std::env::var_os("FOREBAY_TEST_RECORDS").unwrap_or_default();
    if let Ok(text) = fs::read(Path::new(&folder).join("access.ndjson")) {
        let text = Bytes::from(text);
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        return lines.map(|line| text.slice_ref(line)).collect();
    }
    println!("no access.ndjson: set FOREBAY_TEST_RECORDS to its folder; payloads are made up");
    let line =
        |n: usize| format!(r#"{{"type":"access","status":200,"bytes":{n},"path":"/{n:064x}","agent":"{:200}"}}"#, "x");
    (0..10_000).map(|n| Bytes::from(line(n))).collect()
}

fn write_sink(
    server: &RedisServer,
    port: &str,
    payloads: &[Bytes],
    entries: usize,
) -> Result<Duration, Box<dyn Error>> {
    server.ask(&["FLUSHALL"]);
    let sink = Sink::new(SinkConfig::Redis(RedisConfig {
        server: format!("redis://127.0.0.1:{port}").parse()?,
        ca: None,
        key: "events".parse()?,
        structure: Structure::Stream { entries_max: None },
        timeout: Duration::from_mins(1),
    }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = Instant::now();
    runtime.block_on(async {
        let mut ids = IdGenerator::new(1);
        let mut done = 0;
        while done < entries {
            let batch = batch(&mut ids, payloads, done, entries);
            done = usize::try_from(batch.last())?;
            let report = sink.write(&batch).await?;
            if report != Report::Stored {
                return Err(format!("{report:?}").into());
            }
        }
        sink.close().await?;
        Ok::<(), Box<dyn Error>>(())
    })?;
    let time = start.elapsed();
    assert_eq!(server.ask(&["XLEN", "events"]).number(), entries as u64);
    Ok(time)
}

/// The events after the first `done`.
fn batch(ids: &mut IdGenerator, payloads: &[Bytes], done: usize, entries: usize) -> Batch {
    let lane = Lane { origin: Origin([1; 16]), shard: 0, sink: "live".into() };
    let records = done..entries.min(done + BATCH_RECORDS);
    let mut text = b"access".to_vec();
    records.clone().for_each(|at| text.extend_from_slice(&payloads[at % payloads.len()]));
    let block = Bytes::from(text);
    let first = ids.request(0);
    let mut batch = Batch::new(lane, done as u64 + 1);
    let mut start = 6;
    for (number, at) in (0..).zip(records) {
        let length = payloads[at % payloads.len()].len();
        let record = Record {
            sequence: at as u64 + 1,
            id: numbered(first, number),
            type_name: std::str::from_utf8(&block[..6]).unwrap_or_default(),
            source: "",
            received_at: 1_760_000_000_000_000,
            event_time: None,
            write: Write::Insert,
            payload: &block[start..start + length],
        };
        batch.push(&block, &record);
        start += length;
    }
    batch
}

/// The same entries as commands, as `redis-cli --pipe` sends them on.
fn write_commands(path: &Path, payloads: &[Bytes], entries: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut ids = IdGenerator::new(1);
    let mut first = ids.request(0);
    for at in 0..entries {
        if at % BATCH_RECORDS == 0 {
            first = ids.request(0);
        }
        let id = numbered(first, u32::try_from(at % BATCH_RECORDS).unwrap());
        let payload = &payloads[at % payloads.len()];
        write!(file, "*7\r\n$4\r\nXADD\r\n$5\r\npiped\r\n$1\r\n*\r\n$2\r\nid\r\n$36\r\n{id}\r\n$7\r\npayload\r\n")?;
        write!(file, "${}\r\n", payload.len())?;
        file.write_all(payload)?;
        file.write_all(b"\r\n")?;
    }
    file.flush()
}

fn pipe(server: &RedisServer, port: &str, commands: &Path, entries: usize) -> Result<Duration, Box<dyn Error>> {
    server.ask(&["FLUSHALL"]);
    let start = Instant::now();
    let piped = Command::new("redis-cli").args(["-p", port, "--pipe"]).stdin(File::open(commands)?).output()?;
    let time = start.elapsed();
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stdout));
    assert_eq!(server.ask(&["XLEN", "piped"]).number(), entries as u64);
    Ok(time)
}
