//! Rows a second into PostgreSQL: this sink against `\copy` of the same rows into the same table with its primary key, in
//! turn, in one run, on a server that waits for its disk.
//!
//! ```text
//! cargo run --release -p sink --features postgres --example postgres_rate -- [rows, 300000] [rounds, 3]
//! ```
//!
//! Payloads are the lines of `access.ndjson` in the folder that `FOREBAY_TEST_RECORDS` names, or made-up ones of the
//! same size. Ids ascend and stand side by side, as Forebay makes them. Only the ratio means something.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example talks to its user, and ends by what fails")]

#[path = "../tests/postgres_server/mod.rs"]
mod postgres_server;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use event::id::{IdGenerator, numbered};
use event::{Lane, Origin};
use sink::postgres::{Conflict, Layout, PayloadKind, PostgresConfig};
use sink::{Batch, Record, Report, Sink, SinkConfig, Write};

use postgres_server::PostgresServer;

const BATCH_RECORDS: usize = 10_000;
const RECEIVED_AT: i64 = 1_760_000_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<usize>());
    let (rows, rounds) = (number(300_000)?, number(3)?);
    let payloads = payloads();
    let Some(server) = PostgresServer::start_with(&["max_wal_size=4GB", "shared_buffers=256MB"]) else { return Ok(()) };
    let file = server.folder().join("rows");
    write_rows(&file, &payloads, rows)?;
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let ours = write_sink(&server, &payloads, rows)?;
        let theirs = copy(&server, &file, rows);
        let rate = |time: Duration| rows as f64 / time.as_secs_f64();
        println!("round {round}: sink {:.0} rows/s, \\copy {:.0} rows/s", rate(ours), rate(theirs));
        ratios.push(theirs.as_secs_f64() / ours.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    println!("sink / \\copy, median: {:.2}", ratios[ratios.len() / 2]);
    Ok(())
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

fn write_sink(server: &PostgresServer, payloads: &[Bytes], rows: usize) -> Result<Duration, Box<dyn Error>> {
    server.psql("drop table if exists events, forebay_cursors; checkpoint");
    let sink = Sink::new(SinkConfig::Postgres(PostgresConfig {
        server: server.url().parse()?,
        ca: None,
        table: "events".parse()?,
        layout: Layout::Whole { payload: PayloadKind::Jsonb },
        conflict: Conflict::Refuse,
        timeout: Duration::from_mins(1),
    }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = Instant::now();
    runtime.block_on(async {
        let mut ids = IdGenerator::new(1);
        let mut done = 0;
        while done < rows {
            let batch = batch(&mut ids, payloads, done, rows);
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
    assert_eq!(server.psql("select count(*) from events"), rows.to_string());
    Ok(time)
}

/// The rows after the first `done`.
fn batch(ids: &mut IdGenerator, payloads: &[Bytes], done: usize, rows: usize) -> Batch {
    let lane = Lane { origin: Origin([1; 16]), shard: 0, sink: "warehouse".into() };
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

/// Rows in the format that `\copy` takes by itself, its quickest for texts.
fn write_rows(path: &Path, payloads: &[Bytes], rows: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut ids = IdGenerator::new(1);
    let mut first = ids.request(0);
    for row in 0..rows {
        if row % BATCH_RECORDS == 0 {
            first = ids.request(0);
        }
        let id = numbered(first, u32::try_from(row % BATCH_RECORDS).unwrap());
        write!(file, "{id}\taccess\t\t2025-10-09 08:53:20+00\t")?;
        for byte in &payloads[row % payloads.len()] {
            match byte {
                b'\\' => file.write_all(b"\\\\")?,
                b'\t' => file.write_all(b"\\t")?,
                byte => file.write_all(&[*byte])?,
            }
        }
        file.write_all(b"\n")?;
    }
    file.flush()
}

fn copy(server: &PostgresServer, rows: &Path, expected: usize) -> Duration {
    server.psql(
        "drop table if exists copied; checkpoint; create table copied (id uuid primary key, type text, source text,
         received_at timestamptz, payload jsonb)",
    );
    let start = Instant::now();
    server.psql(&format!("\\copy copied from '{}'", rows.display()));
    let time = start.elapsed();
    assert_eq!(server.psql("select count(*) from copied"), expected.to_string());
    time
}
