//! The reads that wait for a reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use event::read::{Found, Lookup, Page, Query, ReadError};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::joint_lookup::{JointLookup, Reply};

/// Reads that may wait: callers, each with a page or a lookup.
const WAITING_MAX: usize = 1_000;
/// If the first read has waited this long, further ones are rejected: waiting would only add delay.
const REJECT_AFTER: Duration = Duration::from_secs(1);
/// A read that has waited this long is rejected.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A waiting read.
pub(super) struct Job {
    asked: Instant,
    wanted: Wanted,
}

enum Wanted {
    Page(Query, Vec<Reply<Page>>),
    Events(Lookup, Reply<Found>),
}

/// A read that begins, with those who asked for it.
pub(super) enum Work {
    Page(Query, Vec<Reply<Page>>),
    Events(JointLookup),
}

impl Job {
    pub(super) fn page(query: Query, reply: Reply<Page>) -> Self {
        Self { asked: Instant::now(), wanted: Wanted::Page(query, vec![reply]) }
    }

    pub(super) fn lookup(lookup: Lookup, reply: Reply<Found>) -> Self {
        Self { asked: Instant::now(), wanted: Wanted::Events(lookup, reply) }
    }

    /// Whether all callers have gone.
    fn is_abandoned(&self) -> bool {
        match &self.wanted {
            Wanted::Page(_, replies) => replies.iter().all(Reply::is_closed),
            Wanted::Events(_, reply) => reply.is_closed(),
        }
    }

    fn reject(self) {
        match self.wanted {
            Wanted::Page(_, replies) => answer_all(replies, Err(ReadError::Busy)),
            Wanted::Events(_, reply) => drop(reply.send(Err(ReadError::Busy))),
        }
    }
}

/// Gives each caller a copy of the page.
pub(super) fn answer_all(mut replies: Vec<Reply<Page>>, answer: Result<Page, ReadError>) {
    let Some(last) = replies.pop() else { return };
    for reply in replies {
        drop(reply.send(answer.clone()));
    }
    drop(last.send(answer));
}

/// The waiting reads in the order in which they came.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl Queue {
    /// Adds a read. A closed queue returns it.
    fn push(&mut self, job: Job, now: Instant) -> Result<Option<Job>, ReadError> {
        if self.is_closed {
            return Ok(Some(job));
        }
        self.skip_abandoned();
        let is_late = self.jobs.front().is_some_and(|first| now.duration_since(first.asked) > REJECT_AFTER);
        if is_late || self.callers() >= WAITING_MAX {
            return Err(ReadError::Busy);
        }
        let Job { asked, wanted } = job;
        match wanted {
            Wanted::Page(query, replies) => match self.same_page(&query) {
                Some(others) => others.extend(replies),
                None => self.jobs.push_back(Job { asked, wanted: Wanted::Page(query, replies) }),
            },
            wanted @ Wanted::Events(..) => self.jobs.push_back(Job { asked, wanted }),
        }
        Ok(None)
    }

    /// The callers of an equal page that waits.
    fn same_page(&mut self, query: &Query) -> Option<&mut Vec<Reply<Page>>> {
        self.jobs.iter_mut().find_map(|job| match &mut job.wanted {
            Wanted::Page(other, replies) if other == query => Some(replies),
            _ => None,
        })
    }

    fn callers(&self) -> usize {
        let callers = |job: &Job| match &job.wanted {
            Wanted::Page(_, replies) => replies.len(),
            Wanted::Events(..) => 1,
        };
        self.jobs.iter().map(callers).sum()
    }

    fn skip_abandoned(&mut self) {
        while self.jobs.front().is_some_and(Job::is_abandoned) {
            self.jobs.pop_front();
        }
    }

    /// Rejects the reads that have waited too long. Returns when the first of the others will have.
    fn reject_late(&mut self, now: Instant) -> Option<Instant> {
        loop {
            self.skip_abandoned();
            let until = self.jobs.front()?.asked + WAIT_MAX;
            if now < until {
                return Some(until);
            }
            if let Some(late) = self.jobs.pop_front() {
                late.reject();
            }
        }
    }

    /// The next read to begin. A lookup takes along those that wait and for which one call has room.
    fn next(&mut self, now: Instant) -> Option<Work> {
        self.reject_late(now);
        let (first, reply) = match self.jobs.pop_front()?.wanted {
            Wanted::Page(query, replies) => return Some(Work::Page(query, replies)),
            Wanted::Events(first, reply) => (first, reply),
        };
        let mut joint = JointLookup::new(first, reply);
        for Job { asked, wanted } in std::mem::take(&mut self.jobs) {
            let wanted = match wanted {
                Wanted::Events(_, reply) if reply.is_closed() => continue,
                Wanted::Events(lookup, reply) => match joint.add(lookup, reply) {
                    None => continue,
                    Some((lookup, reply)) => Wanted::Events(lookup, reply),
                },
                page @ Wanted::Page(..) => page,
            };
            self.jobs.push_back(Job { asked, wanted });
        }
        Some(Work::Events(joint))
    }
}

/// The queue, for the callers and the thread.
#[derive(Clone, Default)]
pub(super) struct SharedQueue(Arc<Inner>);

#[derive(Default)]
struct Inner {
    queue: Mutex<Queue>,
    changed: Notify,
}

impl SharedQueue {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a read. A closed queue returns it.
    ///
    /// # Errors
    /// Too many reads wait, or one has waited for too long.
    pub(super) fn push(&self, job: Job, now: Instant) -> Result<Option<Job>, ReadError> {
        let returned = self.queue().push(job, now)?;
        self.0.changed.notify_one();
        Ok(returned)
    }

    pub(super) fn next(&self, now: Instant) -> Option<Work> {
        self.queue().next(now)
    }

    pub(super) fn reject_late(&self, now: Instant) -> Option<Instant> {
        self.queue().reject_late(now)
    }

    /// Takes no further reads. Those that wait end with an error: their replies are dropped.
    pub(super) fn close(&self) {
        let jobs = {
            let mut queue = self.queue();
            queue.is_closed = true;
            std::mem::take(&mut queue.jobs)
        };
        drop(jobs);
        self.0.changed.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue().is_closed
    }

    /// Waits for a new read or the close.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }
}
