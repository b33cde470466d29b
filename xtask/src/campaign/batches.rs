//! Records in batches with keys while the server is SIGKILLed on the way, and unanswered batches are sent again:
//! afterwards every record stands in SQLite as often as it was sent, byte for byte, and the ledger balances.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use generator::{Generator, RecordKind};

use super::sent::Sent;
use super::{any_seed, short_with_sqlite3};
use crate::http::{self, Connection};
use crate::metrics;
use crate::server::{Launch, Server};
use crate::workspace;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// NDJSON to send; without it access records of the generator.
    #[arg(long)]
    file: Option<PathBuf>,
    /// How often the records are sent, each time with other keys.
    #[arg(long, default_value_t = 100)]
    copies: u64,
    #[arg(long, default_value_t = 3)]
    kills: u64,
    /// Records of a batch.
    #[arg(long, default_value_t = 1_000)]
    batch: usize,
    /// Repeats a run: the same moments to kill.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to kill; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const READY_LIMIT: Duration = Duration::from_secs(30);
const GENERATED: usize = 9_999;
/// A kill comes up to this long after its share of the batches was answered, so that it meets a batch in flight.
const KILL_DELAY_MICROSECONDS_MAX: u64 = 20_000;

/// A small run with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with_sqlite3(|binary| run(&Options { file: None, copies: 3, kills: 3, batch: 1_000, seed: Some(1), binary }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("batches: {} copies, {} kills, --seed {seed}", options.copies, options.kills);
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let records = records(options.file.as_deref())?;
    let launch = Launch::new(&binary, &folder, None)?;
    let (server, repeated) = send_and_kill(&launch, &records, options, seed)?;
    server.wait_stored()?;
    let ledger = Ledger::read(&server)?;
    server.stop()?;
    let rows = check(&launch.data.join("events.db"), &records, options.copies)?;
    ledger.check()?;
    println!("{rows} rows, each payload as it was sent; {repeated} batches had to be sent again");
    println!("ledger: {ledger:?}");
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

pub(super) fn records(file: Option<&Path>) -> Result<Vec<Vec<u8>>> {
    let text = match file {
        Some(path) => std::fs::read(path).with_context(|| format!("reading {}", path.display()))?,
        None => {
            let mut generator = Generator::new(RecordKind::Access, 1);
            let mut text = Vec::new();
            (0..GENERATED).for_each(|_| generator.next_line(&mut text));
            text
        }
    };
    Ok(text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
}

/// Sends everything while another thread kills the server at even distances. Says how many batches were sent again.
fn send_and_kill(launch: &Launch, records: &[Vec<u8>], options: &Options, seed: u64) -> Result<(Server, u64)> {
    let requests = options.copies * records.chunks(options.batch).len() as u64;
    let answered = AtomicU64::new(0);
    let sender_ended = AtomicBool::new(false);
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let sent = send(launch, records, options, &answered);
            sender_ended.store(true, Ordering::Release);
            sent
        });
        let mut random = Random::new(seed);
        for kill in 1..=options.kills {
            let due = requests * kill / (options.kills + 1);
            while answered.load(Ordering::Acquire) < due && !sender_ended.load(Ordering::Acquire) {
                thread::sleep(Duration::from_micros(200));
            }
            thread::sleep(Duration::from_micros(random.below(KILL_DELAY_MICROSECONDS_MAX)));
            server.kill()?;
            println!("killed after {} of {requests} batches", answered.load(Ordering::Acquire));
            server = launch.start()?;
            server.wait_ready(READY_LIMIT)?;
        }
        let repeated = sender.join().map_err(|_| anyhow!("the sender panicked"))??;
        Ok((server, repeated))
    })
}

fn send(launch: &Launch, records: &[Vec<u8>], options: &Options, answered: &AtomicU64) -> Result<u64> {
    let mut connection = None;
    let mut repeated = 0;
    for copy in 0..options.copies {
        for (number, lines) in records.chunks(options.batch).enumerate() {
            let key = format!("Idempotency-Key: copy-{copy}-batch-{number}");
            let headers = ["Content-Type: application/x-ndjson", key.as_str()];
            let request = http::post("/ingest/batch/access", &headers, &lines.join(&b'\n'));
            while !send_once(launch, &mut connection, &request)? {
                repeated += 1;
                thread::sleep(Duration::from_millis(2));
            }
            answered.fetch_add(1, Ordering::Release);
        }
    }
    Ok(repeated)
}

/// Whether the request was answered with 200; a connection that broke is opened again by the next call.
fn send_once(launch: &Launch, connection: &mut Option<Connection>, request: &[u8]) -> Result<bool> {
    let sent = match connection.take() {
        Some(open) => Ok(open),
        None => Connection::open(launch.intake),
    }
    .and_then(|mut open| open.send(request).map(|answer| (open, answer)));
    let Ok((open, answer)) = sent else { return Ok(false) };
    *connection = Some(open);
    match answer.status {
        200 => Ok(true),
        500..=599 => Ok(false),
        status => bail!("a batch was answered {status}: {}", String::from_utf8_lossy(&answer.body)),
    }
}

/// Reads every stored payload with SQLite's own program, which shares no code with the server.
pub(super) fn check(database: &Path, records: &[Vec<u8>], copies: u64) -> Result<u64> {
    let sent = Sent::new(records, copies);
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-readonly").arg(database).arg("select payload from events").stdout(Stdio::piped());
    let mut sqlite = sqlite.spawn().context("sqlite3 reads what is stored: `cargo xtask services` installs it")?;
    let mut rows = BufReader::new(sqlite.stdout.take().context("sqlite3 prints rows")?);
    sent.compare(&mut rows)?;
    if !sqlite.wait()?.success() {
        bail!("sqlite3 couldn't read {}", database.display());
    }
    Ok(sent.events())
}

/// The sums of the ledger over all types and sinks.
#[derive(Debug)]
pub(super) struct Ledger {
    accepted: f64,
    stored: f64,
    dead: f64,
    skipped: f64,
    pending: f64,
}

impl Ledger {
    pub(super) fn read(server: &Server) -> Result<Self> {
        let text = server.metrics()?;
        let sum = |name| metrics::sum(&text, name);
        Ok(Self {
            accepted: sum("forebay_events_accepted_total"),
            stored: sum("forebay_events_stored_total"),
            dead: sum("forebay_events_dead_total"),
            skipped: sum("forebay_events_skipped_total"),
            pending: sum("forebay_events_pending"),
        })
    }

    pub(super) fn check(&self) -> Result<()> {
        let outcomes = self.stored + self.dead + self.skipped + self.pending;
        if (self.accepted - outcomes).abs() > 0.5 || self.pending > 0.5 || self.dead > 0.5 || self.skipped > 0.5 {
            bail!("the ledger doesn't balance with everything stored: {self:?}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(accepted: f64, stored: f64, pending: f64) -> Ledger {
        Ledger { accepted, stored, dead: 0.0, skipped: 0.0, pending }
    }

    #[test]
    fn a_ledger_balances_only_with_everything_stored() {
        assert!(ledger(10.0, 10.0, 0.0).check().is_ok());
        assert!(ledger(10.0, 9.0, 1.0).check().is_err());
        assert!(ledger(10.0, 9.0, 0.0).check().is_err());
    }
}
