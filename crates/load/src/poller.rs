//! Waits for sockets with epoll, and for a time that is due.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

const READY_MAX: usize = 1024;
/// The timer among the sockets' numbers.
const TIMER: u64 = u64::MAX;

/// An epoll instance and its timer.
pub(crate) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    timer_due: Option<Instant>,
    ready: Vec<epoll::Event>,
}

impl Poller {
    /// Without sockets.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(cannot("create an epoll instance"))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(cannot("create a timer"))?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)
            .map_err(cannot("watch a timer"))?;
        Ok(Self { epoll, timer, timer_due: None, ready: Vec::with_capacity(READY_MAX) })
    }

    /// Watches a socket as `number`.
    pub(crate) fn add(&self, socket: impl AsFd, number: u64, flags: EventFlags) -> std::io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Watches a socket for other events.
    pub(crate) fn modify(&self, socket: impl AsFd, number: u64, flags: EventFlags) -> std::io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Waits until something happens, `due`, or `at_most` is over. Returns the number of events.
    pub(crate) fn wait(&mut self, due: Option<Instant>, at_most: Duration) -> anyhow::Result<usize> {
        let mut wait = at_most;
        if let Some(due) = due {
            let left = due.saturating_duration_since(Instant::now());
            if left < at_most && !left.is_zero() {
                self.set_timer(due, left)?;
            } else {
                wait = wait.min(left);
            }
        }
        let timeout = Timespec::try_from(wait).ok();
        self.ready.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), timeout.as_ref()) {
            Err(Errno::INTR) => {}
            waited => drop(waited.map_err(cannot("wait"))?),
        }
        Ok(self.ready.len())
    }

    /// An event of the last wait: the number of its socket, and what happened. None if it is the timer's.
    pub(crate) fn event(&self, at: usize) -> Option<(usize, EventFlags)> {
        let event = self.ready.get(at)?;
        let number = event.data.u64();
        (number != TIMER).then(|| (usize::try_from(number).unwrap_or(usize::MAX), event.flags))
    }

    /// epoll itself counts in milliseconds: too coarse for a schedule.
    fn set_timer(&mut self, due: Instant, left: Duration) -> anyhow::Result<()> {
        if self.timer_due == Some(due) {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec::try_from(left).unwrap_or(zero);
        let once = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).map_err(cannot("set a timer"))?;
        self.timer_due = Some(due);
        Ok(())
    }
}

/// The error of a failed operation.
fn cannot(what: &'static str) -> impl FnOnce(Errno) -> anyhow::Error {
    move |error| anyhow!("can't {what}: {error}")
}
