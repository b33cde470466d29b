//! The loop that lets users act and receives their answers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use hdrhistogram::Histogram;
use random::Random;

use super::connection::Connection;
use super::file::Scenario;
use super::plan::Plan;
use super::reading::Reading;
use crate::IngestEndpoint;
use crate::bench::BenchCounters;
use crate::bench::client::words;
use crate::bench::run::{histogram, own_cpu};
use crate::bench::stream;
use crate::poller::Poller;

const SCRATCH_BYTES: usize = 64 * 1024;
/// An answer may take so long. Then the request has failed.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Requests in flight at the end get so long to be answered.
const END_MAX: Duration = Duration::from_secs(10);
/// How soon a stop is seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The results of a run.
pub(super) struct Measured {
    pub(super) elapsed: Duration,
    pub(super) cpu: Duration,
    /// Connections that were opened.
    pub(super) connections: u64,
    /// In the order of the file.
    pub(super) steps: Vec<MeasuredStep>,
    /// Why it ended before its time, if it did.
    pub(super) failure: Option<anyhow::Error>,
}

/// The results of a step.
pub(super) struct MeasuredStep {
    pub(super) sent: u64,
    pub(super) answers: BTreeMap<u16, u64>,
    /// The text of the first answer with each unexpected status.
    pub(super) said: BTreeMap<u16, String>,
    /// Requests without an answer, by reason.
    pub(super) failures: BTreeMap<String, u64>,
    /// Requests that weren't answered as expected.
    pub(super) errors: u64,
    /// Of the others, in nanoseconds.
    pub(super) latency: Histogram<u64>,
}

struct User {
    connection: Option<Connection>,
    random: Random,
    /// The bytes of the last request: it may have to be repeated.
    request: Vec<u8>,
    /// How many steps the user has begun.
    begun: usize,
    /// When the last step was due.
    due: Instant,
    /// The step that isn't answered, and when it was sent.
    in_flight: Option<(usize, Instant)>,
}

/// A run with all its users.
pub(super) struct Run<'a> {
    to: &'a IngestEndpoint,
    scenario: &'a Scenario,
    duration: Duration,
    seed: u64,
    counters: &'a BenchCounters,
    stop: &'a AtomicBool,
    plan: Plan,
    addresses: Vec<SocketAddr>,
    poller: Poller,
    users: Vec<User>,
    /// The users who think, by the time of their next step.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    in_flight: usize,
    measured: Measured,
    scratch: Vec<u8>,
}

impl<'a> Run<'a> {
    /// Checks that the server can be reached.
    pub(super) fn new(
        (to, scenario): (&'a IngestEndpoint, &'a Scenario),
        (duration, seed): (Duration, u64),
        counters: &'a BenchCounters,
        stop: &'a AtomicBool,
    ) -> anyhow::Result<Self> {
        let target = to.server.target();
        let failed = |error| anyhow!("{target}: {error}");
        // Its errors are clearer than those of a user.
        drop(stream::connect(&to.server).map_err(failed)?);
        let addresses = target.addresses().map_err(failed)?;
        let step = |_| {
            let latency = histogram()?;
            let (answers, said, failures) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
            Ok(MeasuredStep { sent: 0, answers, said, failures, errors: 0, latency })
        };
        let steps = scenario.steps.iter().map(step).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            to,
            scenario,
            duration,
            seed,
            counters,
            stop,
            plan: Plan::new(&scenario.steps, scenario.think),
            addresses,
            poller: Poller::new()?,
            users: Vec::new(),
            due: BinaryHeap::new(),
            in_flight: 0,
            measured: Measured { elapsed: Duration::ZERO, cpu: Duration::ZERO, connections: 0, steps, failure: None },
            scratch: vec![0; SCRATCH_BYTES],
        })
    }

    /// Lets the users act for the whole time, and waits for the last answers.
    pub(super) fn measure(mut self) -> Measured {
        let cpu_before = own_cpu();
        let begun = Instant::now();
        for number in 0..self.scenario.users {
            let due = begun + self.scenario.ramp.mul_f64(number as f64 / self.scenario.users as f64);
            let random = Random::stream(self.seed, number as u64);
            self.users.push(User { connection: None, random, request: Vec::new(), begun: 0, due, in_flight: None });
            self.due.push(Reverse((due, number)));
        }
        self.measured.failure = self.act_until(begun + self.duration).err();
        self.measured.elapsed = begun.elapsed();
        self.due.clear();
        if self.measured.failure.is_none() {
            self.measured.failure = self.wait_for_answers().err();
        }
        self.fail_older_than(Duration::ZERO, "no response by the end");
        self.measured.cpu = own_cpu().saturating_sub(cpu_before);
        self.measured
    }

    fn act_until(&mut self, end: Instant) -> anyhow::Result<()> {
        let mut swept = Instant::now();
        loop {
            let now = Instant::now();
            // Users who have done all steps leave.
            let is_over = now >= end || self.due.is_empty() && self.in_flight == 0;
            if is_over || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            while let Some(Reverse((due, at))) = self.due.peek().copied().filter(|Reverse((due, _))| *due <= now) {
                self.due.pop();
                self.begin(at, due);
            }
            if now - swept > Duration::from_secs(1) {
                self.fail_older_than(ANSWER_MAX, "no response within 60 s");
                swept = now;
            }
            let next = self.due.peek().map(|Reverse((due, _))| *due);
            self.wait(next, LOOK_EVERY.min(end.saturating_duration_since(now)))?;
        }
    }

    fn wait_for_answers(&mut self) -> anyhow::Result<()> {
        let last = Instant::now() + END_MAX;
        while self.in_flight > 0 && Instant::now() < last && !self.stop.load(Ordering::Relaxed) {
            self.wait(None, LOOK_EVERY)?;
        }
        Ok(())
    }

    fn wait(&mut self, due: Option<Instant>, at_most: Duration) -> anyhow::Result<()> {
        for event in 0..self.poller.wait(due, at_most)? {
            if let Some((at, _)) = self.poller.event(event) {
                self.advance(at);
            }
        }
        Ok(())
    }

    /// Begins the next step of a user.
    fn begin(&mut self, at: usize, due: Instant) {
        let user = &mut self.users[at];
        let Some(step) = self.plan.step(user.begun, &mut user.random) else {
            user.connection = None;
            return;
        };
        user.begun += 1;
        user.due = due;
        user.in_flight = Some((step, Instant::now()));
        self.in_flight += 1;
        self.measured.steps[step].sent += 1;
        self.write_request(at, step);
        self.send(at);
    }

    fn write_request(&mut self, at: usize, index: usize) {
        let (number, step, to) = (at + 1, &self.scenario.steps[index], self.to);
        let User { random, request: out, begun, .. } = &mut self.users[at];
        out.clear();
        let method = if step.body.is_some() { "POST " } else { "GET " };
        out.extend_from_slice(method.as_bytes());
        out.extend_from_slice(to.server.target().path("").as_bytes());
        step.path.write(out, number, random);
        // A `Vec` takes every byte.
        let _ = write!(out, " HTTP/1.1\r\nHost: {}\r\n", to.server.target().authority());
        if let Some(token) = &to.token {
            let _ = write!(out, "Authorization: Bearer {token}\r\n");
        }
        if let Some(ack) = &step.ack {
            let _ = write!(out, "Forebay-Ack: {ack}\r\n");
        }
        let Some(body) = &step.body else {
            out.extend_from_slice(b"\r\n");
            return;
        };
        // With a key, a POST may be repeated.
        out.extend_from_slice(b"Content-Type: application/json\r\nIdempotency-Key: ");
        match &step.key {
            Some(key) => key.write(out, number, random),
            None => drop(write!(out, "users-{:016x}-{number}-{begun}", self.seed)),
        }
        let mut text = Vec::new();
        body.write(&mut text, number, random);
        let _ = write!(out, "\r\nContent-Length: {}\r\n\r\n", text.len());
        out.extend_from_slice(&text);
    }

    /// Sends a user's request, over a new connection if there is none.
    fn send(&mut self, at: usize) {
        let user = &mut self.users[at];
        if let Some(connection) = &mut user.connection {
            connection.reuse();
        } else {
            let address =
                self.addresses[usize::try_from(self.measured.connections).unwrap_or(0) % self.addresses.len().max(1)];
            self.measured.connections += 1;
            match Connection::open(&self.to.server, address, (&self.poller, at)) {
                Ok(connection) => user.connection = Some(connection),
                Err(error) => return self.failed(at, error.to_string()),
            }
        }
        self.advance(at);
    }

    /// Sends and receives what can be.
    fn advance(&mut self, at: usize) {
        let Some(user) = self.users.get_mut(at) else { return };
        let Some(connection) = &mut user.connection else { return };
        match connection.advance(&user.request, &mut self.scratch) {
            Ok(None) => {}
            Ok(Some(answer)) => {
                if answer.closes {
                    user.connection = None;
                }
                self.answered(at, &answer);
            }
            Err(error) => {
                let was_idle = connection.was_idle();
                user.connection = None;
                if user.in_flight.is_none() {
                    // The server closed an idle connection: the next step opens another one.
                } else if was_idle {
                    // The server closed the idle connection while the request was in flight. A browser repeats it too.
                    self.send(at);
                } else {
                    self.failed(at, error.to_string());
                }
            }
        }
    }

    fn answered(&mut self, at: usize, answer: &Reading) {
        let Some((index, _)) = self.users[at].in_flight else { return };
        let (step, status) = (&mut self.measured.steps[index], answer.status);
        *step.answers.entry(status).or_default() += 1;
        let expected = &self.scenario.steps[index].expect;
        if expected.contains(&status) || expected.is_empty() && (200..300).contains(&status) {
            let nanoseconds = u64::try_from(self.users[at].due.elapsed().as_nanos()).unwrap_or(u64::MAX);
            step.latency.saturating_record(nanoseconds);
            self.counters.events.fetch_add(1, Ordering::Relaxed);
        } else {
            step.said.entry(status).or_insert_with(|| words(&answer.kept));
            step.errors += 1;
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.think(at);
    }

    fn failed(&mut self, at: usize, why: String) {
        let Some((index, _)) = self.users[at].in_flight else { return };
        let step = &mut self.measured.steps[index];
        *step.failures.entry(why).or_default() += 1;
        step.errors += 1;
        self.counters.failed.fetch_add(1, Ordering::Relaxed);
        self.think(at);
    }

    /// The next step is due a while after this one was due: not after its answer.
    fn think(&mut self, at: usize) {
        let user = &mut self.users[at];
        user.in_flight = None;
        self.in_flight -= 1;
        self.due.push(Reverse((user.due + self.plan.think(&mut user.random), at)));
    }

    /// Fails the requests that were sent before that time.
    fn fail_older_than(&mut self, age: Duration, why: &str) {
        for at in 0..self.users.len() {
            if self.users[at].in_flight.is_some_and(|(_, sent)| sent.elapsed() >= age) {
                self.users[at].connection = None;
                self.failed(at, why.to_owned());
            }
        }
    }
}
