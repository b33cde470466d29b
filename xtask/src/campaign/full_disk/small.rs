//! Small disks that Forebay fills itself: journal and store share a disk of some MiB. Clients send batches as fast as they can until
//! they are told 507, the process is killed, and started again and again. Each time it starts, and in the end all that was acknowledged
//! is stored once, without anybody's help.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::{ANSWERS, SmallDisk, wait};
use crate::http::{self, Connection};
use crate::server::{Launch, Server};
use crate::workspace;

/// A disk, and what is sent to fill it.
#[derive(Clone, Copy)]
pub(super) struct Small {
    mebibytes: u32,
    record_bytes: usize,
    /// Records of a batch.
    records: usize,
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
const CLIENTS: usize = 8;
/// Starts that are broken off as soon as the process answers.
const BROKEN_STARTS: u32 = 3;
const START_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

/// Fills one disk, and looks at what has become of it.
pub(super) fn run(binary: &Path, small: Small) -> Result<()> {
    let Small { mebibytes, record_bytes, .. } = small;
    let folder = workspace::scratch_directory("small-disk")?;
    let disk = SmallDisk::mount(folder.join("disk"), &format!("size={mebibytes}m"))?;
    let mut launch = Launch::new(binary, &folder, None)?;
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
    judge(&launch.data.join("events.db"), &acknowledged, small.records)?;
    println!(
        "a disk of {mebibytes} MiB, events of {record_bytes} bytes: {} acknowledged until 507, all stored {:.1} s after start {}",
        acknowledged.len() * small.records,
        took.as_secs_f64(),
        BROKEN_STARTS + 2
    );
    drop(disk);
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// A batch: whose it is, and its number among those.
type BatchNumber = (usize, usize);

/// Sends until the disk is full, and kills the process in the midst of it. Gives the batches that were acknowledged.
fn fill(launch: &Launch, small: Small) -> Result<Vec<BatchNumber>> {
    let mut server = launch.start()?;
    server.wait_ready(START_LIMIT)?;
    let shared = Arc::new(Shared::default());
    let clients: Vec<_> = (0..CLIENTS).map(|client| spawn(&shared, launch.intake, client, small)).collect();
    let told = wait(|| shared.disk_full.load(Ordering::SeqCst) >= ANSWERS).context("507");
    server.kill()?;
    shared.stop.store(true, Ordering::SeqCst);
    let mut acknowledged = Vec::new();
    for client in clients {
        acknowledged.extend(client.join().map_err(|_| anyhow!("a client panicked"))??);
    }
    told?;
    Ok(acknowledged)
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    disk_full: AtomicUsize,
}

fn spawn(
    shared: &Arc<Shared>,
    intake: SocketAddr,
    client: usize,
    small: Small,
) -> JoinHandle<Result<Vec<BatchNumber>>> {
    let shared = shared.clone();
    thread::spawn(move || {
        let mut connection = Connection::open(intake)?;
        let mut acknowledged = Vec::new();
        for number in 0.. {
            let request = batch((client, number), small);
            if !send(&shared, intake, &mut connection, &request)? {
                break;
            }
            acknowledged.push((client, number));
        }
        Ok(acknowledged)
    })
}

/// Sends a batch until it is taken; false where the server has gone.
fn send(shared: &Shared, intake: SocketAddr, connection: &mut Connection, request: &[u8]) -> Result<bool> {
    loop {
        let Ok(answer) = connection.send(request) else {
            // Who is refused before its body is read is cut off behind the answer.
            match Connection::open(intake) {
                Ok(another) if !shared.stop.load(Ordering::SeqCst) => *connection = another,
                _ => return Ok(false),
            }
            continue;
        };
        match answer.status {
            200 => return Ok(true),
            503 => {}
            507 => {
                shared.disk_full.fetch_add(1, Ordering::SeqCst);
            }
            status => bail!("answered {status}: {}", String::from_utf8_lossy(&answer.body)),
        }
        if shared.stop.load(Ordering::SeqCst) {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
}

/// A batch under a key of its own.
fn batch((client, number): BatchNumber, small: Small) -> Vec<u8> {
    let filler = "x".repeat(small.record_bytes);
    let line = |record| format!("{{\"n\":\"{client}-{number}-{record}\",\"filler\":\"{filler}\"}}\n");
    let body: String = (0..small.records).map(line).collect();
    let key = format!("Idempotency-Key: {client}-{number}");
    http::post("/ingest/batch", &["Content-Type: application/x-ndjson", &key], body.as_bytes())
}

/// Starts the process and waits until it answers, be it that it takes nothing.
fn answering(launch: &Launch) -> Result<Server> {
    let mut server = launch.start()?;
    let began = Instant::now();
    while server.metrics().is_err() {
        if let Some(status) = server.process.ended()? {
            bail!("it ended with {status}");
        }
        if began.elapsed() > START_LIMIT {
            bail!("it doesn't answer");
        }
        thread::sleep(PAUSE);
    }
    Ok(server)
}

/// Every record of a batch that was acknowledged is stored, and none is twice.
fn judge(database: &Path, acknowledged: &[BatchNumber], records: usize) -> Result<()> {
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-readonly").arg(database).arg("select substr(payload, 1, 60) from events").stdout(Stdio::piped());
    let mut sqlite = sqlite.spawn().context("sqlite3 reads what is stored: `cargo xtask services` installs it")?;
    let rows = BufReader::new(sqlite.stdout.take().context("sqlite3 prints rows")?);
    let mut stored = HashSet::new();
    for row in rows.lines() {
        let row = row?;
        let name = row.split('"').nth(3).with_context(|| format!("a stranger is stored: {row}"))?;
        if !stored.insert(name.to_owned()) {
            bail!("{name} is stored twice");
        }
    }
    if !sqlite.wait()?.success() {
        bail!("sqlite3 couldn't read {}", database.display());
    }
    let names = acknowledged
        .iter()
        .flat_map(|(client, number)| (0..records).map(move |record| format!("{client}-{number}-{record}")));
    let lost: Vec<String> = names.filter(|name| !stored.contains(name)).collect();
    if !lost.is_empty() {
        bail!("{} records were acknowledged and are not stored, {} among them", lost.len(), lost[0]);
    }
    if acknowledged.is_empty() {
        bail!("nothing was acknowledged: nothing was checked");
    }
    Ok(())
}
