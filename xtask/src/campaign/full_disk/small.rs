//! Small disks that Forebay fills itself: journal and store share a disk of some MiB. Clients send batches as fast as they can until
//! they get 507, the process is killed, and started again and again. Each time it starts, and in the end all that was acknowledged
//! is stored once, without help.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{ANSWERS, HANGS};
use crate::campaign::frame::Frame;
use crate::campaign::keyed_batches::{SentBatch, events, judge, request};
use crate::campaign::memory_disk::MemoryDisk;
use crate::campaign::sqlite;
use crate::clients::with_clients;
use crate::http::{self, Client};
use crate::server::{Launch, READY_LIMIT, Server};
use crate::wait::until;

/// A disk, and the events that fill it.
#[derive(Clone, Copy)]
pub(super) struct Small {
    mebibytes: u32,
    record_bytes: usize,
    /// Records of a batch.
    records: u32,
}

/// Events of many sizes: rows of some kB waste the most of a table, and large ones make the largest blocks.
pub(super) const DISKS: [Small; 6] = [
    Small { mebibytes: 64, record_bytes: 20_000, records: 10 },
    Small { mebibytes: 300, record_bytes: 20_000, records: 20 },
    Small { mebibytes: 128, record_bytes: 2_200, records: 100 },
    Small { mebibytes: 200, record_bytes: 900_000, records: 4 },
    Small { mebibytes: 64, record_bytes: 100, records: 2_000 },
    Small { mebibytes: 500, record_bytes: 20_000, records: 50 },
];
const CLIENTS: u32 = 8;
/// Starts that are killed as soon as the process answers.
const BROKEN_STARTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(5);

/// Fills one disk, and checks its store.
pub(super) fn run(frame: Frame, small: Small) -> Result<()> {
    let Small { mebibytes, record_bytes, .. } = small;
    let disk = MemoryDisk::mount(frame.folder.join("disk"), &format!("size={mebibytes}m"))?;
    let mut launch = frame.launch(None)?;
    launch.data = disk.path.join("data");
    let acknowledged = fill(&launch, small)?;
    for start in 1..=BROKEN_STARTS {
        let what = || format!("{mebibytes} MiB: start {start} on the full disk");
        answering(&launch).with_context(what)?.kill()?;
    }
    let began = Instant::now();
    let server = answering(&launch).context("the last start")?;
    server.wait_stored().context("what was acknowledged is to be stored")?;
    let took = began.elapsed();
    server.stop()?;
    judge(sqlite::payloads(&launch.data.join("events.db"), &frame.folder)?, &acknowledged)?;
    println!(
        "a disk of {mebibytes} MiB, events of {record_bytes} bytes: {} acknowledged until 507, all stored {:.1} s after start {}",
        events(&acknowledged),
        took.as_secs_f64(),
        BROKEN_STARTS + 2
    );
    drop(disk);
    frame.end()
}

/// Sends until the disk is full, and kills the process in the midst of it. Returns the batches that were acknowledged.
fn fill(launch: &Launch, small: Small) -> Result<Vec<SentBatch>> {
    let server = launch.ready()?;
    let (stop, disk_full) = (AtomicBool::new(false), AtomicUsize::new(0));
    let client = |number| {
        let mut client = Client::new(launch.intake);
        let mut acknowledged = Vec::new();
        for batch in (0..).map(|batch| (number, batch, small.records)) {
            if !send(&mut client, &request(batch, small.record_bytes), &stop, &disk_full)? {
                break;
            }
            acknowledged.push(batch);
        }
        Ok(acknowledged)
    };
    let kill = || {
        let full = until("clients get 507", HANGS, || Ok(disk_full.load(Ordering::SeqCst) >= ANSWERS));
        server.kill()?;
        full
    };
    let (known, ()) = with_clients(CLIENTS, client, kill, || stop.store(true, Ordering::SeqCst))?;
    Ok(known.concat())
}

/// Sends a batch until it is accepted; false if the server has gone.
fn send(client: &mut Client, request: &[u8], stop: &AtomicBool, disk_full: &AtomicUsize) -> Result<bool> {
    loop {
        match client.send(request) {
            Ok(answer) => match answer.status {
                200 => return Ok(true),
                503 => {}
                507 => {
                    disk_full.fetch_add(1, Ordering::SeqCst);
                }
                status => bail!("answered {status}: {}", String::from_utf8_lossy(&answer.body)),
            },
            // A client that is rejected before its body is read is cut off after the answer.
            Err(_) if client.connect().is_ok() => {}
            Err(_) => return Ok(false),
        }
        if stop.load(Ordering::SeqCst) {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
}

/// Starts the process and waits until it answers, even if it takes nothing.
fn answering(launch: &Launch) -> Result<Server> {
    let mut server = launch.start()?;
    until("it answers", READY_LIMIT, || match server.process.ended()? {
        Some(status) => bail!("it ended with {status}"),
        None => Ok(http::get(launch.admin, "/metrics").is_ok_and(|answer| answer.status == 200)),
    })?;
    Ok(server)
}
