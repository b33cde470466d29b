//! The loop that sends requests and receives answers.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use hdrhistogram::Histogram;
use rustix::event::epoll::EventFlags;
use rustix::time::{ClockId, clock_gettime};

use super::client::{Client, Flight};
use super::payload::Requests;
use super::{BenchCounters, BenchOptions, cannot};
use crate::poller::Poller;
use crate::{IngestEndpoint, ServerConnector};

const SCRATCH_BYTES: usize = 64 * 1024;
/// Requests in flight at the end get so long to be answered.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How soon a stop is seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Latencies up to a minute, in nanoseconds, to a thousandth.
const LATENCY_MAX: u64 = 60_000_000_000;
const DIGITS: u8 = 3;

/// An empty histogram of latencies.
pub(crate) fn histogram() -> anyhow::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LATENCY_MAX, DIGITS).map_err(cannot("create a histogram"))
}

/// The results of a run.
pub(super) struct Measured {
    pub(super) elapsed: Duration,
    pub(super) sent: u64,
    /// Requests of the schedule that no connection was free to send, even late.
    pub(super) unsent: u64,
    pub(super) answers: BTreeMap<u16, u64>,
    /// The text of the first answer with each status but 200.
    pub(super) said: BTreeMap<u16, String>,
    /// Requests whose connection broke, by the operating system's error.
    pub(super) errors: BTreeMap<String, u64>,
    /// Of requests that were answered 200.
    pub(super) latency: Histogram<u64>,
    /// Events that were answered 200, by number; a request has as many as all others.
    pub(super) acknowledged: Vec<bool>,
    pub(super) cpu: Duration,
    /// Why it ended before its time, if it did.
    pub(super) failure: Option<anyhow::Error>,
}

/// A run with all its connections.
pub(super) struct Run<'a> {
    server: &'a ServerConnector,
    options: &'a BenchOptions,
    counters: &'a BenchCounters,
    stop: &'a AtomicBool,
    requests: Requests,
    poller: Poller,
    clients: Vec<Option<Client>>,
    /// Those without a request.
    free: Vec<usize>,
    in_flight: usize,
    measured: Measured,
    scratch: Vec<u8>,
}

impl<'a> Run<'a> {
    /// Opens all connections.
    pub(super) fn new(
        (to, options): (&'a IngestEndpoint, &'a BenchOptions),
        counters: &'a BenchCounters,
        stop: &'a AtomicBool,
    ) -> anyhow::Result<Self> {
        let requests = Requests::new(to, options)?;
        let latency = histogram()?;
        let measured = Measured {
            elapsed: Duration::ZERO,
            sent: 0,
            unsent: 0,
            answers: BTreeMap::new(),
            said: BTreeMap::new(),
            errors: BTreeMap::new(),
            latency,
            acknowledged: Vec::new(),
            cpu: Duration::ZERO,
            failure: None,
        };
        let mut run = Self {
            requests,
            server: &to.server,
            options,
            counters,
            stop,
            poller: Poller::new()?,
            clients: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            measured,
            scratch: vec![0; SCRATCH_BYTES],
        };
        for at in 0..usize::from(options.connections) {
            run.clients.push(None);
            run.connect(at)?;
        }
        Ok(run)
    }

    /// A connection that can't be opened ends the run: there is no server to measure.
    fn connect(&mut self, at: usize) -> anyhow::Result<()> {
        let server = self.server;
        let failed = |error| anyhow!("{}: {error}", server.target());
        self.clients[at] = Some(Client::connect(server, &self.poller, at as u64).map_err(failed)?);
        self.free.push(at);
        Ok(())
    }

    /// Sends for the whole duration and waits for the last answers. What was measured before a failure counts too.
    pub(super) fn measure(mut self) -> Measured {
        let cpu_before = own_cpu();
        let begun = Instant::now();
        let mut schedule = Schedule::new(self.options, begun);
        let sent = self.send_all(&mut schedule);
        self.measured.elapsed = begun.elapsed();
        self.measured.unsent = schedule.overdue(Instant::now());
        self.measured.failure = sent.and_then(|()| self.wait_for_answers()).err();
        if self.in_flight > 0 {
            *self.measured.errors.entry("no response by the end".into()).or_default() += self.in_flight as u64;
        }
        self.measured.cpu = own_cpu().saturating_sub(cpu_before);
        self.measured
    }

    fn send_all(&mut self, schedule: &mut Schedule) -> anyhow::Result<()> {
        while !schedule.is_over(Instant::now()) && !self.stop.load(Ordering::Relaxed) {
            self.send_due(schedule)?;
            self.wait(schedule.next_due().filter(|_| !self.free.is_empty()), LOOK_EVERY.min(schedule.left()))?;
        }
        // Requests that became due during the last wait.
        self.send_due(schedule)
    }

    fn wait_for_answers(&mut self) -> anyhow::Result<()> {
        let last = Instant::now() + ANSWER_MAX;
        while self.in_flight > 0 && Instant::now() < last && !self.stop.load(Ordering::Relaxed) {
            self.wait(None, LOOK_EVERY)?;
        }
        Ok(())
    }

    fn send_due(&mut self, schedule: &mut Schedule) -> anyhow::Result<()> {
        while let Some(at) = self.free.pop() {
            let Some(intended) = schedule.take(Instant::now()) else {
                self.free.push(at);
                return Ok(());
            };
            self.send(at, intended)?;
        }
        Ok(())
    }

    fn send(&mut self, at: usize, intended: Instant) -> anyhow::Result<()> {
        let Some(client) = &mut self.clients[at] else { return Ok(()) };
        let number = self.requests.next(client.out());
        client.flight = Some(Flight { number, intended });
        self.in_flight += 1;
        self.measured.sent += 1;
        let events = self.requests.events() as usize;
        self.measured.acknowledged.resize(self.measured.acknowledged.len() + events, false);
        match client.send(&self.poller, at as u64) {
            Ok(()) => Ok(()),
            Err(error) => self.lost(at, &error),
        }
    }

    /// Waits until something happens, the next request is due, or `at_most` is over.
    fn wait(&mut self, due: Option<Instant>, at_most: Duration) -> anyhow::Result<()> {
        for at in 0..self.poller.wait(due, at_most)? {
            if let Some((client, flags)) = self.poller.event(at) {
                self.happened(client, flags)?;
            }
        }
        Ok(())
    }

    fn happened(&mut self, at: usize, flags: EventFlags) -> anyhow::Result<()> {
        let Some(client) = self.clients.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        if flags.contains(EventFlags::OUT)
            && let Err(error) = client.send(&self.poller, at as u64)
        {
            return self.lost(at, &error);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return Ok(());
        }
        match client.receive(&mut self.scratch, &mut self.measured.said) {
            Ok(None) => Ok(()),
            Err(error) => self.lost(at, &error),
            Ok(Some(answered)) => {
                if let Some(flight) = client.flight.take() {
                    self.in_flight -= 1;
                    self.note(flight, answered.status);
                }
                if answered.closes {
                    self.clients[at] = None;
                    return self.connect(at);
                }
                self.free.push(at);
                Ok(())
            }
        }
    }

    fn note(&mut self, flight: Flight, status: u16) {
        *self.measured.answers.entry(status).or_default() += 1;
        if status != 200 {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let nanoseconds = u64::try_from(flight.intended.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.measured.latency.saturating_record(nanoseconds);
        let events = u64::from(self.requests.events());
        self.counters.events.fetch_add(events, Ordering::Relaxed);
        let first = usize::try_from(flight.number * events).unwrap_or(usize::MAX);
        let range = first..first.saturating_add(self.requests.events() as usize);
        if let Some(acknowledged) = self.measured.acknowledged.get_mut(range) {
            acknowledged.fill(true);
        }
    }

    /// The connection broke: its request in flight has failed, and another connection replaces it.
    fn lost(&mut self, at: usize, error: &io::Error) -> anyhow::Result<()> {
        if let Some(client) = self.clients[at].take()
            && client.flight.is_some()
        {
            self.in_flight -= 1;
            *self.measured.errors.entry(error.to_string()).or_default() += 1;
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.free.retain(|free| *free != at);
        self.connect(at)
    }
}

/// When requests are due.
struct Schedule {
    end: Instant,
    /// The time between two; none if each is due immediately.
    every: Option<Duration>,
    begun: Instant,
    taken: u32,
}

impl Schedule {
    fn new(options: &BenchOptions, begun: Instant) -> Self {
        let every = options.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
        Self { end: begun + options.duration, every, begun, taken: 0 }
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.end
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// When the next one is due: none if it may be sent at any time.
    fn next_due(&self) -> Option<Instant> {
        self.every.map(|every| self.begun + every * self.taken)
    }

    /// Takes the next one if it is due, and returns its due time.
    fn take(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next_due().unwrap_or(now);
        if due > now || due >= self.end {
            return None;
        }
        self.taken += 1;
        Some(due)
    }

    /// How many were due and not sent.
    fn overdue(&self, now: Instant) -> u64 {
        let Some(every) = self.every else { return 0 };
        let due = now.min(self.end).saturating_duration_since(self.begun).as_nanos().div_ceil(every.as_nanos().max(1));
        u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(u64::from(self.taken))
    }
}

/// The cost of this process so far.
pub(crate) fn own_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_returns_the_due_times() {
        let begun = Instant::now();
        let second = Duration::from_secs(1);
        let mut schedule = Schedule { end: begun + 3 * second, every: Some(second), begun, taken: 0 };
        assert_eq!(schedule.take(begun), Some(begun));
        assert_eq!(schedule.take(begun), None);
        // However late, the latency counts from when it should have been sent.
        assert_eq!(schedule.take(begun + 9 * second), Some(begun + second));
        assert_eq!(schedule.overdue(begun + 9 * second), 1);
        assert_eq!(schedule.take(begun + 9 * second), Some(begun + 2 * second));
        assert_eq!((schedule.take(begun + 9 * second), schedule.overdue(begun + 9 * second)), (None, 0));
    }
}
