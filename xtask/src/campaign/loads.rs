//! `forebay load` of a packed file while client and server are SIGKILLed on the way: afterwards every line stands in SQLite
//! as often as it stands in the file, byte for byte.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::batches::{Ledger, check, records};
use super::{any_seed, short_with_sqlite3};
use crate::metrics;
use crate::server::{Launch, Process, Server};
use crate::workspace;
use crate::workspace::gzip;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// NDJSON to load; without it access records of the generator.
    #[arg(long)]
    file: Option<PathBuf>,
    /// How often the records stand in the file that is loaded.
    #[arg(long, default_value_t = 100)]
    copies: u64,
    /// Kills of the client, and as many of the server.
    #[arg(long, default_value_t = 3)]
    kills: u64,
    /// Repeats a run: the same moments to kill.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to kill; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const READY_LIMIT: Duration = Duration::from_secs(30);
/// The client has this long for what is left after the last kill.
const LOAD_LIMIT: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug)]
enum Victim {
    Client,
    Server,
}

/// A small run with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with_sqlite3(|binary| run(&Options { file: None, copies: 10, kills: 2, seed: Some(1), binary }))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("load: {} copies, {} kills of client and server each, --seed {seed}", options.copies, options.kills);
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let records = records(options.file.as_deref())?;
    let file = packed(&folder, &records, options.copies)?;
    let launch = Launch::new(&binary, &folder, None)?;
    let lines = records.len() as u64 * options.copies;
    let server = Run { launch: &launch, binary: &binary, file: &file }.load_and_kill(options.kills, lines, seed)?;
    server.wait_stored()?;
    let ledger = Ledger::read(&server)?;
    server.stop()?;
    let rows = check(&launch.data.join("events.db"), &records, options.copies)?;
    ledger.check()?;
    println!("{rows} rows, each line of the file once, each payload as it stands there");
    println!("ledger: {ledger:?}");
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// Writes the records so many times into a file, and packs it.
pub(super) fn packed(folder: &Path, records: &[Vec<u8>], copies: u64) -> Result<PathBuf> {
    let file = folder.join("lines.ndjson");
    let mut out = File::create(&file).with_context(|| format!("writing {}", file.display()))?;
    let mut lines = records.join(&b'\n');
    lines.push(b'\n');
    (0..copies).try_for_each(|_| out.write_all(&lines))?;
    gzip(&file)
}

struct Run<'a> {
    launch: &'a Launch,
    binary: &'a Path,
    file: &'a Path,
}

impl Run<'_> {
    /// Kills one or the other whenever another share of the lines was accepted, in an order that the seed decides.
    fn load_and_kill(&self, kills: u64, lines: u64, seed: u64) -> Result<Server> {
        let mut victims: Vec<_> = (0..kills).flat_map(|_| [Victim::Client, Victim::Server]).collect();
        Random::new(seed).shuffle(&mut victims);
        let mut server = self.launch.start()?;
        server.wait_ready(READY_LIMIT)?;
        let mut client = self.start_client()?;
        for (number, victim) in (1..).zip(&victims) {
            let due = lines * number / (victims.len() as u64 + 1);
            let accepted = wait_accepted(&server, due, &mut client)?;
            println!("the {victim:?} is killed after {accepted} of {lines} lines");
            match victim {
                Victim::Client => {
                    drop(client);
                    client = self.start_client()?;
                }
                Victim::Server => {
                    server.kill()?;
                    server = self.launch.start()?;
                    server.wait_ready(READY_LIMIT)?;
                }
            }
        }
        client.wait_success(LOAD_LIMIT).context("the last client")?;
        Ok(server)
    }

    fn start_client(&self) -> Result<Process> {
        let mut command = Command::new(self.binary);
        let url = format!("http://{}", self.launch.intake);
        command.args(["load", "--batch-bytes", "262144", "--type", "access", "--url", &url]).arg(self.file);
        Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()))
    }
}

/// Waits until so many lines were accepted, which a client that has ended will never bring about.
fn wait_accepted(server: &Server, due: u64, client: &mut Process) -> Result<f64> {
    let begun = Instant::now();
    loop {
        let accepted = metrics::sum(&server.metrics()?, "forebay_events_accepted_total");
        if accepted >= due as f64 {
            return Ok(accepted);
        }
        if let Some(status) = client.ended()? {
            bail!("the client ended with {status} after {accepted} lines");
        }
        if begun.elapsed() > LOAD_LIMIT {
            bail!("only {accepted} lines were accepted in {LOAD_LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}
