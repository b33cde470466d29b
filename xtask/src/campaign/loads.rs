//! `forebay load` of a packed file while client and server are SIGKILLed repeatedly: afterwards every line is in SQLite
//! as often as it is in the file, byte for byte.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::frame::{Frame, FrameOptions, short_with};
use super::sent::Sent;
use super::{ledger, sqlite};
use crate::server::{Launch, Process, Server};
use crate::wait::until;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// NDJSON to load; without it access records of the generator.
    #[arg(long)]
    file: Option<PathBuf>,
    /// How often the records are in the file that is loaded.
    #[arg(long, default_value_t = 100)]
    copies: u64,
    /// Kills of the client, and as many of the server.
    #[arg(long, default_value_t = 3)]
    kills: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

/// The client has this long for the rest after the last kill.
const LOAD_LIMIT: Duration = Duration::from_secs(300);
/// Small batches: a kill should interrupt some of them.
const SMALL_BATCHES: &[&str] = &["--batch-bytes", "262144"];

#[derive(Clone, Copy, Debug)]
enum Victim {
    Client,
    Server,
}

/// A small run with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    let options = Options { file: None, copies: 10, kills: 2, frame: FrameOptions::short() };
    short_with(&["sqlite3"], || run(&options))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { copies, kills, .. } = *options;
    let frame = options.frame.begin(format!("load: {copies} copies, {kills} kills of client and server each"))?;
    let sent = Sent::read(options.file.as_deref(), copies)?;
    let file = sent.packed(&frame.folder)?;
    let launch = frame.launch(None)?;
    let server = load_and_kill(&frame, &launch, &file, kills, sent.events())?;
    server.wait_stored()?;
    ledger::expect_stored(&server, sent.events() as f64, 1)?;
    server.stop()?;
    sent.compare(&mut sqlite::payloads(&launch.data.join("events.db"), &frame.folder)?)?;
    println!("{} rows, each line of the file once, each payload unchanged", sent.events());
    frame.end()
}

/// Starts `forebay load` of a file of access records.
pub(super) fn start_load(binary: &Path, server: SocketAddr, file: &Path, options: &[&str]) -> Result<Process> {
    let mut command = Command::new(binary);
    command.args(["load", "--type", "access", "--url", &format!("http://{server}")]).args(options).arg(file);
    Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()))
}

/// Kills one or the other whenever another share of the lines was accepted, in an order that the seed decides.
fn load_and_kill(frame: &Frame, launch: &Launch, file: &Path, kills: u64, lines: u64) -> Result<Server> {
    let mut victims: Vec<_> = (0..kills).flat_map(|_| [Victim::Client, Victim::Server]).collect();
    frame.random().shuffle(&mut victims);
    let start_client = || start_load(&frame.binary, launch.intake, file, SMALL_BATCHES);
    let mut server = launch.ready()?;
    let mut client = start_client()?;
    for (number, victim) in (1..).zip(&victims) {
        let due = lines * number / (victims.len() as u64 + 1);
        let accepted = wait_accepted(&server, due, &mut client)?;
        println!("the {victim:?} is killed after {accepted} of {lines} lines");
        match victim {
            Victim::Client => {
                drop(client);
                client = start_client()?;
            }
            Victim::Server => {
                server.kill()?;
                server = launch.ready()?;
            }
        }
    }
    client.wait_success(LOAD_LIMIT).context("the last client")?;
    Ok(server)
}

/// Waits until so many lines were accepted. Fails if the client ends before.
fn wait_accepted(server: &Server, due: u64, client: &mut Process) -> Result<f64> {
    let mut accepted = 0.0;
    until("the lines are accepted", LOAD_LIMIT, || {
        accepted = ledger::accepted(server)?;
        match client.ended()? {
            Some(status) if accepted < due as f64 => bail!("the client ended with {status} after {accepted} lines"),
            _ => Ok(accepted >= due as f64),
        }
    })?;
    Ok(accepted)
}
