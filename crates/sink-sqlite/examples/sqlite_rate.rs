//! Rows a second into SQLite: this sink against `sqlite3 .import` of the same rows into the same table, alternating, in
//! one run. Both use a write-ahead log, sync each commit, and end with everything in the file.
//!
//! ```text
//! cargo run --release -p sink --example sqlite_rate -- [rows, 1000000] [rounds, 3]
//! ```
//!
//! Payloads are the lines of `access.ndjson` in the folder `FOREBAY_TEST_RECORDS`, or generated ones of the same size.
//! Ids ascend consecutively, as Forebay creates them; `.import` gets 16 characters instead of 16 bytes. Only the ratio
//! is meaningful: the machine's speed isn't the sink's.
#![allow(clippy::print_stdout, reason = "an example talks to its user")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use event::id::{IdGenerator, numbered};
use event::{Lane, Origin};
use sink::{Batch, Record, Sink, TableName, Write, WriteOutcome};
use sink_sqlite::{Sqlite, SqliteConfig};

const BATCH_RECORDS: usize = 10_000;
const RECEIVED_AT: i64 = 1_760_000_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<usize>());
    let (rows, rounds) = (number(1_000_000)?, number(3)?);
    let payloads = payloads();
    let directory = tempfile::tempdir()?;
    let import = directory.path().join("rows");
    write_import(&import, &payloads, rows)?;
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let ours = write_sink(directory.path(), &payloads, rows)?;
        let theirs = run_import(directory.path(), &import, rows)?;
        let rate = |time: Duration| rows as f64 / time.as_secs_f64();
        println!("round {round}: sink {:.0} rows/s, .import {:.0} rows/s", rate(ours), rate(theirs));
        ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    println!("sink / .import, median: {:.2}", ratios[ratios.len() / 2]);
    Ok(())
}

/// Lines of about 335 bytes.
fn payloads() -> Vec<Bytes> {
    let folder = std::env::var_os("FOREBAY_TEST_RECORDS").unwrap_or_default();
    if let Ok(text) = fs::read(Path::new(&folder).join("access.ndjson")) {
        let text = Bytes::from(text);
        return text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| text.slice_ref(line))
            .collect();
    }
    println!("no access.ndjson: set FOREBAY_TEST_RECORDS to its folder; payloads are generated");
    let line =
        |n: usize| format!(r#"{{"type":"access","status":200,"bytes":{n},"path":"/{n:064x}","agent":"{:200}"}}"#, "x");
    (0..10_000).map(|n| Bytes::from(line(n))).collect()
}

fn write_sink(directory: &Path, payloads: &[Bytes], rows: usize) -> Result<Duration, Box<dyn Error>> {
    let path = directory.join("sink.db");
    let table = TableName::new("events")?;
    let sink = Sink::new(Sqlite::new(SqliteConfig { path: path.clone(), table, retention: None }));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let start = Instant::now();
    runtime.block_on(async {
        let mut ids = IdGenerator::new(1);
        let mut next = batch(&mut ids, payloads, 0, rows);
        while !next.is_empty() {
            // As in delivery, the next batch is built while this one is written.
            let (writing, written) = (sink.clone(), next.clone());
            let answer = tokio::spawn(async move { writing.write(&written).await });
            tokio::task::yield_now().await;
            next = batch(&mut ids, payloads, usize::try_from(next.last())?, rows);
            let report = answer.await??;
            if report != WriteOutcome::Committed {
                return Err(format!("{report:?}").into());
            }
        }
        sink.close().await?;
        Ok::<(), Box<dyn Error>>(())
    })?;
    let time = start.elapsed();
    remove(&path)?;
    Ok(time)
}

/// The rows after the first `done`.
fn batch(ids: &mut IdGenerator, payloads: &[Bytes], done: usize, rows: usize) -> Batch {
    let lane = Lane { origin: Origin([1; 16]), shard: 0, sink: "local".into() };
    let records = done..rows.min(done + BATCH_RECORDS);
    let mut text = b"access".to_vec();
    records.clone().for_each(|row| text.extend_from_slice(&payloads[row % payloads.len()]));
    let block = Bytes::from(text);
    let first = ids.request(0);
    let mut batch = Batch::new(lane, done as u64 + 1);
    let mut at = 6;
    for (number, row) in (0..).zip(records) {
        let length = payloads[row % payloads.len()].len();
        let record = Record {
            sequence: row as u64 + 1,
            id: numbered(first, number),
            type_name: std::str::from_utf8(&block[..6]).unwrap_or_default(),
            source: "",
            received_at: RECEIVED_AT,
            event_time: None,
            write: Write::Insert,
            payload: &block[at..at + length],
        };
        batch.push(&block, &record);
        at += length;
    }
    batch
}

/// Rows with the separators of `.mode ascii`, which needs no quotes and is the fastest.
fn write_import(path: &Path, payloads: &[Bytes], rows: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for row in 0..rows {
        write!(file, "{row:016x}\x1faccess\x1f\x1f{RECEIVED_AT}\x1f")?;
        file.write_all(&payloads[row % payloads.len()])?;
        file.write_all(b"\x1e")?;
    }
    file.flush()
}

fn run_import(directory: &Path, rows: &Path, expected: usize) -> Result<Duration, Box<dyn Error>> {
    let path = directory.join("import.db");
    let table =
        "create table events (id blob not null unique, type text, source text, received_at integer, payload text)";
    let start = Instant::now();
    let done = Command::new("sqlite3")
        .arg(&path)
        .args(["pragma journal_mode = wal", "pragma synchronous = full", table, ".mode ascii"])
        .arg(format!(".import {} events", rows.display()))
        .output()?;
    let time = start.elapsed();
    let count = Command::new("sqlite3").arg(&path).arg("select count(*) from events").output()?;
    if !done.status.success() || String::from_utf8(count.stdout)?.trim() != expected.to_string() {
        return Err(format!(".import failed: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    remove(&path)?;
    Ok(time)
}

/// Removes a closed database.
fn remove(path: &Path) -> std::io::Result<()> {
    fs::remove_file(path)
}
