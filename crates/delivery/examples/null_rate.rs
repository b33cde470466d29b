//! The cost of delivery: CPU of its thread for each event into the null sink, and memory with a store that is down.
//!
//! `cargo run --release -p delivery --example null_rate [EVENTS] [DIRECTORY]`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example that measures")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use delivery::{Delivery, Options, Setup, SinkSetup};
use event::{EventId, TypeName};
use eventlog::{AppendBatch, DataDirectory, EventLog, JournalRecord, SourceLine};
use journal::disk::OsDisk;
use ledger::{Begin, Routes, SavedLedger};
use sink::{Null, Sink};
use sink_testing::MemoryHandle;

const BATCH: u32 = 5_000;
const PAYLOAD: &str = r#"{"time":"2026-11-21T10:00:00Z","client":"192.0.2.17","method":"GET","path":"/articles/4711/comments","status":200,"bytes":18231,"agent":"Mozilla/5.0 (X11; Linux x86_64)"}"#;

struct Opened {
    directory: DataDirectory,
    log: Arc<EventLog>,
    delivery: Delivery,
}

fn open(path: &Path, sink: Sink) -> Opened {
    let directory = DataDirectory::open(Arc::new(OsDisk), path).unwrap();
    let saved = SavedLedger::load(&directory).unwrap();
    let log = Arc::new(EventLog::open(&directory, &saved.log_options(1)).unwrap());
    let sinks =
        vec![SinkSetup { name: "sink".into(), sink, begin: Begin::Oldest, max_backlog: None, max_dead_letters: None }];
    let routes = Routes::new().with_others(["sink".into()]);
    let delivery =
        Delivery::start(&log, &directory, Setup { routes, sinks, ..Setup::default() }, saved, Options::new()).unwrap();
    Opened { directory, log, delivery }
}

fn append(log: &EventLog, events: u32) {
    let shard = &log.shards()[0];
    let event = log.types().intern(&TypeName::new("access").unwrap());
    for request in 0..events / BATCH {
        let mut batch = AppendBatch::default();
        for number in 0..BATCH {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&request.to_be_bytes());
            id[12..].copy_from_slice(&number.to_be_bytes());
            let record = JournalRecord {
                source: "loader",
                client: Some([192, 0, 2, 17].into()),
                request_start: number == 0,
                request_end: number + 1 == BATCH,
                ..JournalRecord::new(EventId(id), 1, "access", PAYLOAD.as_bytes())
            };
            batch.push(&record, SourceLine { number, type_id: event });
        }
        let before = shard.durable();
        drop(shard.append_derived(batch.records(), batch.type_counts()).unwrap());
        shard.commit_pending();
        // The commit may be in flight on another thread.
        while shard.durable() == before {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

fn pending(delivery: &Delivery) -> u64 {
    delivery.ledger().snapshot().iter().flat_map(|row| &row.sinks).map(|sink| sink.pending).sum()
}

/// Waits until everything is accepted and has its outcome.
fn wait(delivery: &Delivery, events: u32) {
    let accepted = || delivery.ledger().snapshot().iter().map(|row| row.accepted).sum::<u64>();
    while accepted() < u64::from(events) || pending(delivery) > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// CPU seconds of the threads of this name.
fn cpu(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let nanoseconds = tasks.filter_map(|task| {
        let path = task.unwrap().path();
        let same = std::fs::read_to_string(path.join("comm")).unwrap_or_default().trim() == name;
        let stat = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        if same { stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()) } else { None }
    });
    nanoseconds.sum::<f64>() / 1e9
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let events: u32 = arguments.next().map_or(2_000_000, |text| text.parse().unwrap());
    let base: PathBuf = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let path = base.join(format!("null-rate-{}", std::process::id()));

    let opened = open(&path, Sink::new(Null));
    let start = Instant::now();
    append(&opened.log, events);
    let appended = start.elapsed();
    wait(&opened.delivery, events);
    let live = cpu("delivery");
    println!("appended {events} in {appended:.2?}, delivered {:.2?} after the first", start.elapsed());
    println!("null, during the appends: {:.3} us an event", live * 1e6 / f64::from(events));
    opened.delivery.stop(Duration::from_secs(10));
    drop((opened.log, opened.directory));

    let before = resident_mib();
    let memory = MemoryHandle::fenced();
    memory.block();
    std::fs::remove_dir_all(&path).unwrap();
    let opened = open(&path, Sink::new(memory));
    append(&opened.log, events);
    println!(
        "a store that is down: {before:.1} MiB before, {:.1} MiB with {} pending",
        resident_mib(),
        pending(&opened.delivery)
    );
    drop(opened);

    let opened = open(&path, Sink::new(Null));
    wait(&opened.delivery, events);
    println!("null, from disk: {:.3} us an event", cpu("delivery") * 1e6 / f64::from(events));
    drop(opened);
    std::fs::remove_dir_all(&path).unwrap();
}
