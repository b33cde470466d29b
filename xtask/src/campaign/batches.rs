//! Records in batches with keys while the server is SIGKILLed repeatedly, and unanswered batches are sent again:
//! afterwards every record is in SQLite exactly as often as sent, byte for byte, and the ledger balances.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use super::frame::{FrameOptions, short_with};
use super::sent::Sent;
use super::{ledger, sqlite};
use crate::clients::with_clients;
use crate::http::{self, Client};
use crate::server::{Launch, Server};
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
    #[command(flatten)]
    frame: FrameOptions,
}

/// A kill comes up to this long after its share of the batches was answered: it should interrupt a batch in flight.
const KILL_DELAY_MICROSECONDS_MAX: u64 = 20_000;

/// A small run with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    let options = Options { file: None, copies: 3, kills: 3, batch: 1_000, frame: FrameOptions::short() };
    short_with(&["sqlite3"], || run(&options))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let frame = options.frame.begin(format!("batches: {} copies, {} kills", options.copies, options.kills))?;
    let sent = Sent::read(options.file.as_deref(), options.copies)?;
    let launch = frame.launch(None)?;
    let (server, repeated) = send_and_kill(&launch, &sent, options, frame.random())?;
    server.wait_stored()?;
    ledger::expect_stored(&server, sent.events() as f64, 1)?;
    server.stop()?;
    sent.compare(&mut sqlite::payloads(&launch.data.join("events.db"), &frame.folder)?)?;
    println!("{} rows, each payload unchanged; {repeated} batches had to be sent again", sent.events());
    frame.end()
}

/// Sends everything while another thread kills the server at even distances. Says how many batches were sent again.
fn send_and_kill(launch: &Launch, sent: &Sent, options: &Options, mut random: Random) -> Result<(Server, u64)> {
    let requests = options.copies * sent.records().chunks(options.batch).len() as u64;
    let answered = AtomicU64::new(0);
    let [sender_ended, has_failed] = [false; 2].map(AtomicBool::new);
    let mut server = launch.ready()?;
    let send = |_| {
        let sent = send(launch, sent.records(), options, &answered, &has_failed);
        sender_ended.store(true, Ordering::Release);
        sent
    };
    let kill = || -> Result<Server> {
        for kill in 1..=options.kills {
            let due = requests * kill / (options.kills + 1);
            while answered.load(Ordering::Acquire) < due && !sender_ended.load(Ordering::Acquire) {
                thread::sleep(Duration::from_micros(200));
            }
            thread::sleep(Duration::from_micros(random.below(KILL_DELAY_MICROSECONDS_MAX)));
            server.kill()?;
            println!("killed after {} of {requests} batches", answered.load(Ordering::Acquire));
            server = launch.ready()?;
        }
        Ok(server)
    };
    // The sender ends when all is sent, or when the server can't be started again.
    let act = || kill().inspect_err(|_| has_failed.store(true, Ordering::Release));
    let (repeated, server) = with_clients(1, send, act, || {})?;
    Ok((server, repeated.iter().sum()))
}

fn send(
    launch: &Launch,
    records: &[Vec<u8>],
    options: &Options,
    answered: &AtomicU64,
    has_failed: &AtomicBool,
) -> Result<u64> {
    let mut client = Client::new(launch.intake);
    let mut repeated = 0;
    for copy in 0..options.copies {
        for (number, lines) in records.chunks(options.batch).enumerate() {
            let key = format!("Idempotency-Key: copy-{copy}-batch-{number}");
            let headers = ["Content-Type: application/x-ndjson", key.as_str()];
            let request = http::post("/ingest/batch/access", &headers, &lines.join(&b'\n'));
            loop {
                match client.send(&request) {
                    Ok(answer) if answer.status == 200 => break,
                    Ok(answer) if answer.status < 500 => {
                        bail!("a batch was answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body))
                    }
                    _ if has_failed.load(Ordering::Acquire) => bail!("the server has gone"),
                    _ => repeated += 1,
                }
                thread::sleep(Duration::from_millis(2));
            }
            answered.fetch_add(1, Ordering::Release);
        }
    }
    Ok(repeated)
}
