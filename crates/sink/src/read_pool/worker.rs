//! The thread of a pool: it gives waiting reads to readers.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use event::read::ReadError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use limits::READ_TIMEOUT;
use tokio::time::{Instant, sleep_until, timeout};

use super::queue::{SharedQueue, Work, answer_all};
use super::{MakeReader, PooledReader};

/// Idle readers are closed after this time.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// How long a connection may take to close.
const HANG_UP_MAX: Duration = Duration::from_secs(1);
/// How long the thread sleeps if nothing waits and nothing is open.
const SLEEP: Duration = Duration::from_hours(24);

type Reader = Box<dyn PooledReader>;
/// A reader at work. It ends with the reader, unless that was its last call.
type Serving = Pin<Box<dyn Future<Output = Option<Reader>>>>;

pub(super) struct Worker {
    queue: SharedQueue,
    make: MakeReader,
    readers_max: usize,
    /// Readers with work.
    busy: FuturesUnordered<Serving>,
    /// Readers without, and since when; the one used last is the last.
    idle: VecDeque<(Instant, Reader)>,
}

impl Drop for Worker {
    /// Also after a panic: otherwise callers would wait for ever.
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Worker {
    pub(super) fn new(queue: SharedQueue, make: MakeReader, readers_max: usize) -> Self {
        Self { queue, make, readers_max, busy: FuturesUnordered::new(), idle: VecDeque::new() }
    }

    /// Works until the queue is closed. Then it drops what is being read.
    pub(super) async fn run(mut self) {
        while !self.queue.is_closed() {
            self.begin();
            self.wait().await;
        }
        self.busy.clear();
        for (_, reader) in std::mem::take(&mut self.idle) {
            hang_up(reader).await;
        }
    }

    /// Begins reads while a reader is free, and closes those that were idle for long.
    fn begin(&mut self) {
        while self.busy.len() < self.readers_max
            && let Some(work) = self.queue.next(Instant::now())
        {
            let reader = self.idle.pop_back().map_or_else(|| (self.make)(), |(_, reader)| reader);
            self.busy.push(Box::pin(serve(reader, work)));
        }
        while let Some((since, _)) = self.idle.front()
            && since.elapsed() >= IDLE_MAX
            && let Some((_, reader)) = self.idle.pop_front()
        {
            self.busy.push(Box::pin(hang_up(reader)));
        }
    }

    /// Waits until there may be something to do.
    async fn wait(&mut self) {
        let now = Instant::now();
        let rejection = self.queue.reject_late(now);
        let idle = self.idle.front().map(|(since, _)| *since + IDLE_MAX);
        let until = rejection.into_iter().chain(idle).min().unwrap_or(now + SLEEP);
        let (mut timer, mut changed) = (pin!(sleep_until(until)), pin!(self.queue.changed()));
        let (busy, idle) = (&mut self.busy, &mut self.idle);
        poll_fn(|context| {
            let mut is_over = changed.as_mut().poll(context).is_ready() | timer.as_mut().poll(context).is_ready();
            while let Poll::Ready(Some(reader)) = busy.poll_next_unpin(context) {
                idle.extend(reader.map(|reader| (Instant::now(), reader)));
                is_over = true;
            }
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

async fn hang_up(mut reader: Reader) -> Option<Reader> {
    let _ = timeout(HANG_UP_MAX, reader.hang_up()).await;
    None
}

/// Reads. A reader that takes too long is dropped, with its connection.
async fn serve(mut reader: Reader, work: Work) -> Option<Reader> {
    let is_usable = match work {
        Work::Page(query, replies) => {
            let page = timeout(READ_TIMEOUT, reader.read(&query)).await;
            let is_usable = page.is_ok();
            answer_all(replies, page.unwrap_or_else(|_| Err(no_answer())));
            is_usable
        }
        Work::Events(joint) => {
            let found = timeout(READ_TIMEOUT, reader.get(joint.lookup())).await;
            let is_usable = found.is_ok();
            joint.answer(found.unwrap_or_else(|_| Err(no_answer())));
            is_usable
        }
    };
    is_usable.then_some(reader)
}

fn no_answer() -> ReadError {
    let text = format!(
        "the store hasn't answered a read within {} s: check the network to it, its load, and locks that others hold",
        READ_TIMEOUT.as_secs()
    );
    ReadError::Unavailable(text.into())
}
