//! The same ids again and again, at once on many connections, with SIGKILLs on the way: each id has one effect, also in
//! the journal, and other bytes under a known id are refused.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::kills::clients::Shared;
use super::{any_seed, short_with_sqlite3};
use crate::http;
use crate::metrics;
use crate::server::{Launch, Server};
use crate::workspace;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Posts, all clients together.
    #[arg(long, default_value_t = 1_000_000)]
    posts: u64,
    /// Ids that they share.
    #[arg(long, default_value_t = 10_000)]
    ids: u64,
    #[arg(long, default_value_t = 64)]
    connections: u64,
    #[arg(long, default_value_t = 20)]
    kills: u64,
    /// Repeats a run: the same posts in the same order of each client.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to kill; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

const READY_LIMIT: Duration = Duration::from_secs(30);
/// One post in so many has other bytes than its id, where that is known to be taken.
const OTHER_BYTES_EVERY: u64 = 16;

/// What the clients share.
struct ClientState {
    server: Shared,
    /// For each id whether a client has an answer for it.
    acknowledged: Vec<AtomicBool>,
    sent: AtomicU64,
    posts: u64,
    conflicts: AtomicU64,
}

/// A few posts on the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_with_sqlite3(|binary| {
        run(&Options { posts: 20_000, ids: 500, connections: 64, kills: 3, seed: Some(1), binary })
    })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("duplicates: {} posts of {} ids, --seed {seed}", options.posts, options.ids);
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let launch = Launch::new(&binary, &folder, None)?;
    let state = Arc::new(ClientState {
        server: Shared::new(launch.intake, seed),
        acknowledged: (0..options.ids).map(|_| AtomicBool::new(false)).collect(),
        sent: AtomicU64::new(0),
        posts: options.posts,
        conflicts: AtomicU64::new(0),
    });
    let accepted = send_and_kill(&launch, options, seed, &state)?;
    check(&launch.data.join("events.db"), &state, accepted)?;
    println!(
        "{} ids, {} posts, {} kills: each id has one effect; {} posts with other bytes were refused",
        options.ids,
        state.sent.load(Ordering::SeqCst),
        options.kills,
        state.conflicts.load(Ordering::SeqCst)
    );
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// Says how many events were accepted since the beginning.
fn send_and_kill(launch: &Launch, options: &Options, seed: u64, state: &Arc<ClientState>) -> Result<f64> {
    let clients: Vec<_> = (0..options.connections)
        .map(|client| {
            let state = state.clone();
            thread::spawn(move || send(&state, Random::new(seed ^ (client + 1))))
        })
        .collect();
    let server = kill_on_the_way(launch, options, state);
    if server.is_err() {
        state.server.stop();
    }
    for client in clients {
        client.join().map_err(|_| anyhow!("a client panicked"))??;
    }
    let server = server?;
    server.wait_stored()?;
    let accepted = metrics::sum(&server.metrics()?, "forebay_events_accepted_total");
    server.stop()?;
    Ok(accepted)
}

fn kill_on_the_way(launch: &Launch, options: &Options, state: &ClientState) -> Result<Server> {
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    for kill in 1..=options.kills {
        state.server.server_is_up();
        let due = options.posts * kill / (options.kills + 1);
        while state.sent.load(Ordering::SeqCst) < due && !state.server.is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
        state.server.server_goes_down();
        server.kill()?;
        server = launch.start()?;
        server.wait_ready(READY_LIMIT).with_context(|| format!("the start after kill {kill}"))?;
    }
    state.server.server_is_up();
    Ok(server)
}

/// One client: posts until all are sent.
fn send(state: &ClientState, mut random: Random) -> Result<()> {
    let result = send_all(state, &mut random);
    if result.is_err() {
        state.server.stop();
    }
    result
}

fn send_all(state: &ClientState, random: &mut Random) -> Result<()> {
    let mut connection = None;
    while state.sent.fetch_add(1, Ordering::SeqCst) < state.posts {
        let id = random.below(state.acknowledged.len() as u64);
        let is_known = state.acknowledged[usize::try_from(id)?].load(Ordering::SeqCst);
        let has_other_bytes = is_known && random.below(OTHER_BYTES_EVERY) == 0;
        let key = format!("Idempotency-Key: id-{id}");
        let payload = if has_other_bytes { format!("{{\"other\":{id}}}") } else { id.to_string() };
        let request = http::post("/ingest/event", &[&key], payload.as_bytes());
        let status = loop {
            if connection.is_none() {
                connection = state.server.connect();
            }
            let Some(open) = &mut connection else { return Ok(()) };
            match open.send(&request).map(|answer| answer.status) {
                Ok(503) => {}
                Ok(status) => break status,
                Err(_) => connection = None,
            }
        };
        match (status, has_other_bytes) {
            (200, false) => state.acknowledged[usize::try_from(id)?].store(true, Ordering::SeqCst),
            (409, true) => drop(state.conflicts.fetch_add(1, Ordering::SeqCst)),
            _ => bail!("id {id}: {payload} was answered {status}"),
        }
    }
    Ok(())
}

/// With SQLite's own program: no id twice, none missing, none with other bytes, and none journaled twice.
fn check(database: &Path, state: &ClientState, accepted: f64) -> Result<()> {
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-readonly").arg(database).arg("select payload from events order by cast(payload as integer)");
    let printed = workspace::output(&mut sqlite).context("sqlite3 reads what is stored")?;
    let stored: Vec<&str> = printed.lines().collect();
    let known = state.acknowledged.iter().enumerate().filter(|(_, known)| known.load(Ordering::SeqCst));
    let expected: Vec<String> = known.map(|(id, _)| id.to_string()).collect();
    if stored != expected {
        bail!("{} ids were acknowledged, and {} rows are stored, or not the same", expected.len(), stored.len());
    }
    if (accepted - expected.len() as f64).abs() > 0.5 {
        bail!("{} ids were acknowledged, but {accepted} events were journaled", expected.len());
    }
    if state.conflicts.load(Ordering::SeqCst) == 0 {
        bail!("no post with other bytes was sent: nothing was checked");
    }
    Ok(())
}
