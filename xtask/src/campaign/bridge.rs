//! Requests over a bridge to workers that are killed, slow, answer twice, late or never, with restarts of NATS in between: each request has
//! its own answer, once, and a 504 comes at its deadline.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use random::Random;
use testkit::nats::NatsServer;

use super::frame::FrameOptions;
use crate::bus_worker::{self, BusRequest, Replies};
use crate::clients::with_clients;
use crate::http::{self, Client};
use crate::metrics;
use crate::server::{NULL_SINK, PATIENCE, Server};
use crate::wait::until;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Requests, all clients together.
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Restarts of NATS.
    #[arg(long, default_value_t = 20)]
    restarts: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

const WORKERS: u32 = 4;
const SUBJECT: &str = "campaign.echo";
const TIMEOUT: Duration = Duration::from_secs(1);
/// A 504 may be so much later than its deadline, and than other answers of the same server.
const LATE_MAX: Duration = Duration::from_millis(100);
/// What the allocator may keep in addition to the memory after a tenth of the requests.
const GROWTH_MAX: u64 = 8 * 1024 * 1024;
/// A client waits so long after a 503.
const PAUSE: Duration = Duration::from_millis(20);
/// The answers that a request may have, apart from its own.
const ALLOWED: [(u16, &str); 5] =
    [(503, "no_worker"), (503, "bus_unavailable"), (503, "bridge_busy"), (504, "bridge_timeout"), (502, "bus_lost")];

/// What a request's worker does. The name begins the body.
const KINDS: [(&str, u64); 5] = [("twice", 50), ("slow", 10), ("late", 2), ("never", 2), ("kill", 1)];
/// The rest of so many are answered immediately.
const OF: u64 = 1_000;

/// A few requests on the server that the tests were built with. Times aren't judged on a busy machine.
pub(crate) fn short() -> Result<()> {
    let options = Options { requests: 10_000, connections: 32, restarts: 2, frame: FrameOptions::short() };
    try_bridge(&options).map(drop)
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Some((late, control)) = try_bridge(options)? else {
        bail!("NATS is missing: `cargo xtask services` builds it")
    };
    ensure!(
        late <= LATE_MAX + control,
        "a 504 is {late:?} late (p99); at most {LATE_MAX:?} and {control:?} are allowed"
    );
    Ok(())
}

/// The state that the clients share.
#[derive(Default)]
struct Shared {
    sent: AtomicU64,
    is_over: AtomicBool,
}

/// What a client counted.
#[derive(Default)]
struct Seen {
    own: u64,
    others: [u64; ALLOWED.len()],
    /// How long after its deadline each 504 came.
    late: Vec<Duration>,
}

/// Returns the 99th percentiles of the delay of a 504, and of the time of a request that needs no bus.
fn try_bridge(options: &Options) -> Result<Option<(Duration, Duration)>> {
    let Options { requests, connections, restarts, .. } = *options;
    let Some(nats) = NatsServer::start() else { return Ok(None) };
    let frame = options.frame.begin(format!("bridge: {requests} requests, {restarts} restarts of NATS"))?;
    let bus = nats.address();
    let launch = frame.launch(Some(&format!(
        "{NULL_SINK}\n[bus]\nurl = \"nats://{bus}\"\n\n[[bridge]]\npath = \"/echo\"\nsubject = \"{SUBJECT}\"\n\
         methods = [\"POST\"]\ntimeout = \"{}s\"\n",
        TIMEOUT.as_secs()
    )))?;
    let server = launch.ready()?;
    let shared = Shared::default();
    let worker = |number| {
        let mut random = Random::new(frame.seed ^ u64::from(number));
        bus_worker::run(bus, SUBJECT, &shared.is_over, |request, replies| work(request, replies, &mut random));
        Ok(())
    };
    let client = |number| {
        let random = Random::new(frame.seed ^ (u64::from(number) << 32));
        let seen = send(launch.intake, requests, &shared, random);
        // The others end too.
        seen.inspect_err(|_| shared.sent.store(requests, Ordering::SeqCst))
    };
    let over = || shared.is_over.store(true, Ordering::SeqCst);
    let act = || {
        until_answered(launch.intake)?;
        let restart = || restart_on_the_way(&nats, &server, options, &shared, frame.random());
        let ((seen, memory), mut control) = thread::scope(|scope| {
            let control = scope.spawn(|| control(launch.intake, &shared));
            let done = with_clients(connections, client, restart, || {});
            over();
            Ok::<_, anyhow::Error>((done?, control.join().ok().context("the control panicked")??))
        })?;
        Ok((seen, memory, percentile_99(&mut control)))
    };
    let (_, (seen, memory, control)) = with_clients(WORKERS, worker, act, over)?;
    let late = judge(&seen, &server, requests)?;
    let after = server.process.anonymous_memory()?;
    println!("p99 of GET /ip {control:.0?}; memory {memory} bytes after a tenth, {after} at the end");
    ensure!(after <= memory + GROWTH_MAX, "the server's memory grew from {memory} to {after} bytes");
    server.stop()?;
    frame.end()?;
    Ok(Some((late, control)))
}

/// A worker's answer to one request.
fn work(request: &BusRequest<'_>, replies: &mut Replies, random: &mut Random) {
    let echo = request.body;
    let kind = echo.split(|byte| *byte == b' ').next().unwrap_or_default();
    match kind {
        b"twice" => (0..2).for_each(|_| replies.send(request, echo)),
        b"slow" => replies.send_after(Duration::from_millis(50 + random.below(250)), request, echo),
        b"late" => replies.send_after(TIMEOUT + Duration::from_millis(20 + random.below(500)), request, echo),
        b"never" => {}
        b"kill" => replies.kill(),
        _ => replies.send(request, echo),
    }
}

/// One client: requests with bodies that no other has, until all are sent.
fn send(gateway: SocketAddr, requests: u64, shared: &Shared, mut random: Random) -> Result<Seen> {
    let (mut client, mut seen) = (Client::new(gateway), Seen::default());
    loop {
        let order = shared.sent.fetch_add(1, Ordering::SeqCst);
        if order >= requests {
            return Ok(seen);
        }
        let kind = pick(random.below(OF));
        let (body, begun) = (format!("{kind} {order}"), Instant::now());
        // A 503 says that no worker has the request.
        while seen.add_answer(&mut client, kind, &body)? == 503 {
            ensure!(begun.elapsed() < PATIENCE, "{body} is still answered 503 after {PATIENCE:?}");
            thread::sleep(PAUSE);
        }
    }
}

impl Seen {
    /// Sends one request, and checks its answer. Returns the status.
    fn add_answer(&mut self, client: &mut Client, kind: &str, body: &str) -> Result<u16> {
        let begun = Instant::now();
        let answer = client.send(&http::post("/echo", &[], body.as_bytes()));
        let answer = answer.with_context(|| format!("{body}: no answer"))?;
        let (elapsed, text) = (begun.elapsed(), String::from_utf8_lossy(&answer.body));
        if answer.status == 200 {
            ensure!(text == body, "{body} was answered with {text}");
            let is_unanswered = ["late", "never", "kill"].contains(&kind);
            ensure!(!is_unanswered, "{body} was answered, but no worker answered it in time");
            self.own += 1;
            return Ok(200);
        }
        let is_this = |(status, code): &(u16, &str)| *status == answer.status && text.contains(&format!("\"{code}\""));
        let which = ALLOWED.iter().position(is_this);
        self.others[which.with_context(|| format!("{body} was answered {}: {text}", answer.status))?] += 1;
        if answer.status == 504 {
            let late = elapsed.checked_sub(TIMEOUT);
            self.late.push(late.with_context(|| format!("{body}: 504 after only {elapsed:?}"))?);
        }
        Ok(answer.status)
    }
}

fn pick(mut number: u64) -> &'static str {
    for (kind, share) in KINDS {
        match number.checked_sub(share) {
            Some(rest) => number = rest,
            None => return kind,
        }
    }
    "plain"
}

/// A request that doesn't use the bus, again and again: it shows how busy the machine is.
fn control(gateway: SocketAddr, shared: &Shared) -> Result<Vec<Duration>> {
    let (mut connection, mut times) = (http::Connection::open(gateway)?, Vec::new());
    while !shared.is_over.load(Ordering::SeqCst) {
        let begun = Instant::now();
        connection.get("/ip")?;
        times.push(begun.elapsed());
        thread::sleep(PAUSE);
    }
    Ok(times)
}

fn until_answered(gateway: SocketAddr) -> Result<()> {
    let request = http::post("/echo", &[], b"plain first");
    until("a worker answers", PATIENCE, || Ok(Client::new(gateway).send(&request)?.status == 200))
}

/// Restarts NATS evenly over the requests. Returns the server's memory after a tenth of them.
fn restart_on_the_way(
    nats: &NatsServer,
    server: &Server,
    options: &Options,
    shared: &Shared,
    mut random: Random,
) -> Result<u64> {
    let wait = |due: u64| {
        while shared.sent.load(Ordering::SeqCst) < due {
            thread::sleep(Duration::from_millis(1));
        }
    };
    wait(options.requests / 10);
    let memory = server.process.anonymous_memory()?;
    for restart in 1..=options.restarts {
        wait(options.requests / 10 + options.requests * 9 / 10 * restart / (options.restarts + 1));
        nats.kill();
        thread::sleep(Duration::from_millis(random.below(300)));
        nats.run();
    }
    Ok(memory)
}

/// Compares what the clients saw with the server's counters. Returns the 99th percentile of the delay of a 504.
fn judge(seen: &[Seen], server: &Server, requests: u64) -> Result<Duration> {
    let own: u64 = seen.iter().map(|seen| seen.own).sum();
    println!("{requests} requests: {own} with their own answers");
    for (which, (status, code)) in ALLOWED.iter().enumerate() {
        println!("   {:>8} {status} {code}", seen.iter().map(|seen| seen.others[which]).sum::<u64>());
    }
    ensure!(own >= requests * 9 / 10, "only {own} of {requests} requests had their own answers");
    let mut late: Vec<Duration> = seen.iter().flat_map(|seen| seen.late.iter().copied()).collect();
    let (p99, most) = (percentile_99(&mut late), late.last().copied().unwrap_or_default());
    println!("504 after the deadline: p99 {p99:.1?}, at most {most:.1?}");
    let text = server.metrics()?;
    ensure!(metrics::has(&text, "forebay_bridge_waiting"), "/metrics has no forebay_bridge_waiting");
    let waiting = metrics::sum(&text, "forebay_bridge_waiting");
    ensure!(waiting < 0.5, "{waiting} requests still wait");
    let counted = metrics::sum(&text, "forebay_bridge_requests_total");
    // Those before the first answer are counted too.
    ensure!(counted >= requests as f64, "{requests} requests were answered, but {counted} are counted");
    Ok(p99)
}

/// Sorts the times.
fn percentile_99(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() * 99 / 100).copied().unwrap_or_default()
}
