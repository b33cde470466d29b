//! Many slow clients on one thread. A client that is cut connects again immediately, until the crowd is sent away.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::slow::{Kind, Seen, Slow};
use crate::priority::come_last;

/// Each client sends once in so many steps, of this length: about once a second.
const STEPS: usize = 500;
const STEP: Duration = Duration::from_millis(2);
const READY_MAX: usize = 1024;
/// The server checks once a second.
pub(super) const EARLY_MAX: Duration = Duration::from_millis(1500);

/// How long the clients of one kind were tolerated, and how they were cut.
#[derive(Clone, Debug, Default)]
pub(super) struct CutClients {
    pub(super) cut: u64,
    /// Of those: how many were answered 408.
    pub(super) answered_408: u64,
    pub(super) shortest: Option<Duration>,
    pub(super) longest: Duration,
    /// How many were cut too early, and the server's answer to the last of them.
    pub(super) early: u64,
    pub(super) early_words: String,
}

impl CutClients {
    fn add(&mut self, time: Duration, answered_408: bool) {
        self.cut += 1;
        self.answered_408 += u64::from(answered_408);
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
        self.longest = self.longest.max(time);
    }
}

/// A crowd that is there until it is sent away.
pub(super) struct Crowd {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<[CutClients; Kind::ALL.len()]>>,
}

#[derive(Default)]
struct Shared {
    goes: AtomicBool,
    /// How many have connected.
    there: AtomicU64,
}

impl Crowd {
    /// So many clients of each kind, which connect one after the other within a while: otherwise all would be cut and
    /// connect again at the same time, which is another test.
    pub(super) fn connect(server: SocketAddr, count: u64, within: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let thread = thread::spawn({
            let shared = shared.clone();
            move || {
                come_last()?;
                Members::open(server, count, within, &shared).and_then(|members| members.stay(&shared))
            }
        });
        Self { shared, thread }
    }

    /// How many have connected.
    pub(super) fn there(&self) -> u64 {
        self.shared.there.load(Ordering::Relaxed)
    }

    /// Whether a thread has failed, for instance without descriptors.
    pub(super) fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Sends all away, and returns the results of each kind.
    pub(super) fn leave(self) -> Result<[CutClients; Kind::ALL.len()]> {
        self.shared.goes.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the slow clients panicked"))?
    }
}

struct Members {
    server: SocketAddr,
    epoll: OwnedFd,
    slow: Vec<Slow>,
    cut_clients: [CutClients; Kind::ALL.len()],
    next: u64,
    step: usize,
    step_due: Instant,
}

impl Members {
    fn open(server: SocketAddr, count: u64, within: Duration, shared: &Shared) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).context("making an epoll")?;
        let (slow, cut_clients) = Default::default();
        let mut members = Self { server, epoll, slow, cut_clients, next: 0, step: 0, step_due: Instant::now() };
        let began = Instant::now();
        for at in 0..usize::try_from(count)? {
            let slow = members.come(at)?;
            members.slow.push(slow);
            shared.there.fetch_add(1, Ordering::Relaxed);
            // While the others connect, the connected ones continue.
            members.serve(began + within.mul_f64(at as f64 / count as f64))?;
        }
        Ok(members)
    }

    fn come(&mut self, at: usize) -> Result<Slow> {
        let kind = Kind::ALL[at % Kind::ALL.len()];
        self.next += 1;
        let slow = Slow::open(self.server, self.next, kind).with_context(|| format!("slow client {}", self.next))?;
        let what = if kind == Kind::Reader { EventFlags::RDHUP } else { EventFlags::IN };
        epoll::add(&self.epoll, slow.stream.as_fd(), EventData::new_u64(at as u64), what)?;
        Ok(slow)
    }

    fn stay(mut self, shared: &Shared) -> Result<[CutClients; Kind::ALL.len()]> {
        while !shared.goes.load(Ordering::Relaxed) {
            self.serve(Instant::now() + STEP)?;
        }
        Ok(self.cut_clients)
    }

    /// Serves all until then; a part of them sends with each step.
    fn serve(&mut self, until: Instant) -> Result<()> {
        loop {
            let now = Instant::now();
            if now >= self.step_due {
                self.slow.iter_mut().skip(self.step % STEPS).step_by(STEPS).for_each(Slow::drip);
                self.step += 1;
                self.step_due = now + STEP;
            }
            self.poll(self.step_due.min(until).saturating_duration_since(now))?;
            if now >= until {
                return Ok(());
            }
        }
    }

    fn poll(&mut self, at_most: Duration) -> Result<()> {
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(READY_MAX);
        match epoll::wait(&self.epoll, spare_capacity(&mut ready), Timespec::try_from(at_most).ok().as_ref()) {
            Err(Errno::INTR) => return Ok(()),
            waited => waited.context("waiting")?,
        };
        for event in ready {
            let at = usize::try_from(event.data.u64())?;
            let flags = event.flags;
            let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP);
            if let Some(slow) = self.slow.get_mut(at)
                && let Seen::Cut { answered_408 } = slow.look(broken)
            {
                let (kind, time) = (slow.kind, slow.since.elapsed());
                let cut_clients = &mut self.cut_clients[kind as usize];
                cut_clients.add(time, answered_408);
                if time + EARLY_MAX < kind.deadline() {
                    cut_clients.early += 1;
                    cut_clients.early_words = slow.last_words();
                }
                // Closing alone doesn't end the watch if a process that another thread starts has the descriptor as well until
                // its exec: an event of the old connection would count for the new one.
                epoll::delete(&self.epoll, slow.stream.as_fd())?;
                self.slow[at] = self.come(at)?;
            }
        }
        Ok(())
    }
}
