//! The same ids repeatedly on many connections, with SIGKILLs in between: each id has one effect, also in
//! the journal, and other bytes under a known id are rejected.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::frame::{FrameOptions, short_with};
use super::kills::clients::Shared;
use super::{ledger, sqlite};
use crate::clients::with_clients;
use crate::http::{self, Client};
use crate::server::{Launch, Server};
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
    connections: u32,
    #[arg(long, default_value_t = 20)]
    kills: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

/// One post in so many has other bytes than its id, if that was acknowledged.
const OTHER_BYTES_EVERY: u64 = 16;

/// The state that the clients share.
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
    let options = Options { posts: 20_000, ids: 500, connections: 64, kills: 3, frame: FrameOptions::short() };
    short_with(&["sqlite3"], || run(&options))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { posts, ids, connections, kills, .. } = *options;
    let frame = options.frame.begin(format!("duplicates: {posts} posts of {ids} ids"))?;
    let launch = frame.launch(None)?;
    let state = ClientState {
        server: Shared::new(launch.intake, frame.seed),
        acknowledged: (0..ids).map(|_| AtomicBool::new(false)).collect(),
        sent: AtomicU64::new(0),
        posts,
        conflicts: AtomicU64::new(0),
    };
    let client = |client| {
        let sent = send(&state, Random::new(frame.seed ^ (u64::from(client) + 1)));
        if sent.is_err() {
            state.server.stop();
        }
        sent
    };
    let act = || {
        let server = kill_on_the_way(&launch, kills, &state);
        if server.is_err() {
            state.server.stop();
        }
        server
    };
    // The clients end when all is sent.
    let (_, server) = with_clients(connections, client, act, || {})?;
    server.wait_stored()?;
    let accepted = ledger::accepted(&server)?;
    server.stop()?;
    check(&launch.data.join("events.db"), &state, accepted)?;
    println!(
        "{ids} ids, {} posts, {kills} kills: each id has one effect; {} posts with other bytes were rejected",
        state.sent.load(Ordering::SeqCst),
        state.conflicts.load(Ordering::SeqCst)
    );
    frame.end()
}

fn kill_on_the_way(launch: &Launch, kills: u64, state: &ClientState) -> Result<Server> {
    let mut server = launch.ready()?;
    for kill in 1..=kills {
        state.server.server_is_up();
        let due = state.posts * kill / (kills + 1);
        while state.sent.load(Ordering::SeqCst) < due && !state.server.is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
        state.server.server_goes_down();
        server.kill()?;
        server = launch.ready().with_context(|| format!("the start after kill {kill}"))?;
    }
    state.server.server_is_up();
    Ok(server)
}

/// One client: posts until all are sent.
fn send(state: &ClientState, mut random: Random) -> Result<()> {
    let mut client = Client::new(state.server.address());
    while state.sent.fetch_add(1, Ordering::SeqCst) < state.posts {
        let id = random.below(state.acknowledged.len() as u64);
        let is_known = state.acknowledged[usize::try_from(id)?].load(Ordering::SeqCst);
        let has_other_bytes = is_known && random.below(OTHER_BYTES_EVERY) == 0;
        let key = format!("Idempotency-Key: id-{id}");
        let payload = if has_other_bytes { format!("{{\"other\":{id}}}") } else { id.to_string() };
        let request = http::post("/ingest/event", &[&key], payload.as_bytes());
        let status = loop {
            if !state.server.connect(&mut client) {
                return Ok(());
            }
            match client.send(&request).map(|answer| answer.status) {
                Ok(503) | Err(_) => {}
                Ok(status) => break status,
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

/// No id is stored twice, none is missing, none has other bytes, and none was journaled twice.
fn check(database: &Path, state: &ClientState, accepted: f64) -> Result<()> {
    let printed = sqlite::select(database, "select payload from events order by cast(payload as integer)")?;
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
