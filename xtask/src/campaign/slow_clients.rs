//! Clients that send slowly, read nothing, or send nothing, and clients that connect and leave, together with clients that
//! work normally: each slow one is cut at its deadline, the others are almost unaffected, and no resource of them stays.

mod crowd;
mod slow;
mod source;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use super::frame::FrameOptions;
use crate::clients::with_clients;
use crate::latency::latency_ms;
use crate::metrics;
use crate::report::median;
use crate::server::{NULL_SINK, Server};
use crate::wait::until;
use crowd::{Crowd, CutClients};
use slow::Kind;
use source::Manner;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Slow clients at a time, a quarter of each kind.
    #[arg(long, default_value_t = 20_000)]
    clients: u64,
    /// How many seconds they stay; a silent client may stay for 75.
    #[arg(long, default_value_t = 100)]
    stay: u64,
    /// Within how many seconds they connect.
    #[arg(long, default_value_t = 30)]
    come: u64,
    /// Connections that are opened and closed immediately.
    #[arg(long, default_value_t = 1_000_000)]
    connects: u64,
    /// Good requests a second.
    #[arg(long, default_value_t = 2_000)]
    rate: u64,
    /// How many seconds the good requests are measured, without the slow clients and with them.
    #[arg(long, default_value_t = 30)]
    measured: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

/// A longer wait will not end.
const HANGS: Duration = Duration::from_secs(120);
/// If the server hasn't answered yet it closes 10 s later.
const LATE_MAX: Duration = Duration::from_secs(11);
/// Good requests may take so many times as long as without slow clients.
const SLOWER_MAX: f64 = 2.0;
/// The allocator's and the kernel's own bookkeeping of so many connections, of which a part stays.
const MEMORY_STAYS_MAX: u64 = 8 * 1024 * 1024;
/// Descriptors that a server opens and closes at any time: segments, the store's files.
const DESCRIPTORS_STAY_MAX: usize = 8;
/// In addition to those of the slow clients, in a server and here.
const OTHER_DESCRIPTORS: u64 = 500;
const CONNECTING_THREADS: u32 = 4;
const STRETCHES: u32 = 5;

/// A few hundred clients on the server that the tests were built with. Only those with the shortest deadlines reach them, and
/// the speed of the others isn't measured on a busy machine.
pub(crate) fn short() -> Result<()> {
    let frame = FrameOptions::short();
    let options = Options { clients: 400, stay: 13, come: 2, connects: 20_000, rate: 200, measured: 2, frame };
    try_server(&options).map(drop)
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let slower = try_server(options)?;
    if slower > SLOWER_MAX {
        bail!("with slow clients p99 is {slower:.2} times what it is without them; at most {SLOWER_MAX}");
    }
    Ok(())
}

/// Says how many times as long good requests took while the slow clients were there.
fn try_server(options: &Options) -> Result<f64> {
    raise_file_limit(options.clients)?;
    let Options { clients, stay, connects, rate, measured, .. } = *options;
    let frame = options.frame.begin(format!("slow clients: {clients} at a time for {stay} s, {connects} connects"))?;
    let launch = frame.launch(Some(NULL_SINK))?;
    let server = launch.ready()?;
    let good = |seconds| good_requests(&frame.binary, launch.intake, rate, Duration::from_secs(seconds));

    let alone = good(measured)?;
    let before = Footprint::of(&server)?;
    println!("without them: p99 {alone:.2} ms, {before}");

    let crowd = Crowd::connect(launch.intake, clients, Duration::from_secs(options.come));
    until("the slow clients are there", HANGS, || Ok(crowd.there() == clients || crowd.has_failed()))?;
    let began = Instant::now();
    let together = good(measured)?;
    println!("with them:    p99 {together:.2} ms, {}", Footprint::of(&server)?);
    thread::sleep(Duration::from_secs(stay).saturating_sub(began.elapsed()));
    let cut_clients = crowd.leave()?;
    judge(cut_clients, options)?;

    let begun = Instant::now();
    connect_and_close(launch.intake, connects)?;
    println!("{connects} connects and closes in {:.0} s", begun.elapsed().as_secs_f64());
    let after = wait_for_quiet(&server, before)?;
    println!("afterwards:   {after}");
    good(1)?;
    server.stop()?;
    frame.end()?;
    let slower = together / alone;
    println!("p99 is {slower:.2} times what it was");
    Ok(slower)
}

/// Sends good requests at a fixed rate and returns their p99 in milliseconds: the median of several stretches, since the machine
/// itself stalls now and then.
fn good_requests(binary: &Path, intake: SocketAddr, rate: u64, duration: Duration) -> Result<f64> {
    let stretches: Result<Vec<f64>> = (0..STRETCHES).map(|_| p99(binary, intake, rate, duration / STRETCHES)).collect();
    Ok(median(stretches?))
}

/// All must be answered 200.
fn p99(binary: &Path, intake: SocketAddr, rate: u64, duration: Duration) -> Result<f64> {
    let mut bench = Command::new(binary);
    bench.args(["bench", "--json", "--connections", "32", "--url", &format!("http://{intake}")]);
    bench.args(["--rate", &rate.to_string(), "--duration", &format!("{}ms", duration.as_millis())]);
    let output = bench.stderr(Stdio::inherit()).output().context("starting forebay bench")?;
    let text = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        bail!("good requests weren't all answered 200: {text}");
    }
    let result: Value = serde_json::from_str(&text).context("forebay bench printed no JSON")?;
    latency_ms(&result, "p99")
}

/// Each kind whose deadline passed while they stayed was cut at it.
fn judge(cut_clients: [CutClients; Kind::ALL.len()], options: &Options) -> Result<()> {
    let each = options.clients / Kind::ALL.len() as u64;
    for (kind, CutClients { cut, answered_408, shortest, longest, early, early_words }) in
        Kind::ALL.into_iter().zip(cut_clients)
    {
        let shortest = shortest.unwrap_or_default();
        let times = format!("{:.1} to {:.1} s", shortest.as_secs_f64(), longest.as_secs_f64());
        println!("{:<13} {cut} cut, {answered_408} of them with a 408, after {times}", kind.name());
        if early > 0 {
            bail!("{early} {} were cut too early, the last with: {early_words}", kind.name());
        }
        if longest > kind.deadline() + LATE_MAX {
            bail!("{} were cut after {times}, expected {:?}", kind.name(), kind.deadline());
        }
        if Duration::from_secs(options.stay) > kind.deadline() + LATE_MAX && cut < each {
            bail!("only {cut} of {each} {} were cut in {} s", kind.name(), options.stay);
        }
        if matches!(kind, Kind::Head | Kind::Body) && (cut == 0 || answered_408 < cut) {
            bail!("{} of {} weren't answered 408", cut - answered_408, kind.name());
        }
    }
    Ok(())
}

fn connect_and_close(server: SocketAddr, count: u64) -> Result<()> {
    let next = AtomicU64::new(0);
    let one_thread = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let manner = Manner { reads_little: false, resets: number.is_multiple_of(2) };
            source::open(server, number, manner).with_context(|| format!("connect {number}"))?;
        }
    };
    with_clients(CONNECTING_THREADS, |_| one_thread(), || Ok(()), || {}).map(drop)
}

/// A server's use of the machine.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    memory: u64,
    descriptors: usize,
    connections: f64,
}

impl Footprint {
    fn of(server: &Server) -> Result<Self> {
        let text = server.metrics()?;
        Ok(Self {
            memory: server.process.memory()?.now,
            descriptors: server.process.descriptors()?,
            connections: metrics::sum(&text, "forebay_http_connections"),
        })
    }

    fn is_like(&self, before: &Self) -> bool {
        self.connections == 0.0
            && self.memory <= before.memory + MEMORY_STAYS_MAX
            && self.descriptors <= before.descriptors + DESCRIPTORS_STAY_MAX
    }
}

impl std::fmt::Display for Footprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { memory, descriptors, connections } = self;
        write!(f, "{connections} connections, {descriptors} descriptors, {:.1} MB", *memory as f64 / 1e6)
    }
}

/// Waits until the server uses as much as before.
fn wait_for_quiet(server: &Server, before: Footprint) -> Result<Footprint> {
    let mut last = Footprint::of(server)?;
    let quiet = until("the clients have left nothing", HANGS, || {
        last = Footprint::of(server)?;
        Ok(last.is_like(&before))
    });
    quiet.with_context(|| format!("the server was at {before}, and stays at {last}"))?;
    Ok(last)
}

/// Both ends of every connection need a descriptor: ours here, and the server inherits the limit.
fn raise_file_limit(clients: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = clients + OTHER_DESCRIPTORS;
    if limit.maximum.is_none_or(|maximum| maximum >= wanted) {
        let raised = Rlimit { current: limit.maximum, ..limit };
        return setrlimit(Resource::Nofile, raised).context("raising the limit of open files");
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: Some(wanted) }).with_context(|| {
        format!("{clients} clients need {wanted} open files: raise the hard limit (root may), or send fewer")
    })
}
