//! Clients that send single events on a schedule and record the result of each by its number. They send no event twice, so the system under
//! test has doubled a number that is stored twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::http::{self, Connection};

/// The most requests in flight. If all clients wait for answers, the schedule is late.
const CLIENTS: u64 = 32;
const SHOWN_MAX: usize = 5;

/// Running clients. They are stopped when the value is dropped.
pub(super) struct Traffic {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Sent>>,
}

struct Shared {
    server: SocketAddr,
    begun: Instant,
    pause: Duration,
    next: AtomicU64,
    is_over: AtomicBool,
}

/// The clients' records.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The events that were answered 200.
    pub(super) acknowledged: BTreeSet<u64>,
    /// The other events, with their errors.
    pub(super) failed: BTreeMap<u64, String>,
}

impl Traffic {
    /// Starts clients that together send `per_second` events a second, with numbers from `first` on.
    pub(super) fn start(server: SocketAddr, per_second: u32, first: u64) -> Result<Self> {
        let pause = Duration::from_secs(1) / per_second;
        // The schedule begins with the first event.
        let begun = Instant::now().checked_sub(pause * u32::try_from(first)?).context("a clock that has just begun")?;
        let shared =
            Arc::new(Shared { server, begun, pause, next: AtomicU64::new(first), is_over: AtomicBool::new(false) });
        let client = |number| {
            let shared = shared.clone();
            thread::Builder::new().spawn(move || shared.client(number)).context("starting a client")
        };
        Ok(Self { threads: (0..CLIENTS).map(client).collect::<Result<_>>()?, shared })
    }

    /// Waits until all requests are answered.
    pub(super) fn finish(mut self) -> Result<Sent> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let mut all = Sent::default();
        for thread in self.threads.drain(..) {
            let sent = thread.join().map_err(|_| anyhow!("a client panicked"))?;
            all.acknowledged.extend(sent.acknowledged);
            all.failed.extend(sent.failed);
        }
        Ok(all)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// Half of the clients keep their connection, the others open one for each event.
    fn client(&self, number: u64) -> Sent {
        let (mut sent, mut kept) = (Sent::default(), None);
        loop {
            let event = self.next.fetch_add(1, Ordering::Relaxed);
            let due = self.pause * u32::try_from(event).unwrap_or(u32::MAX);
            thread::sleep(due.saturating_sub(self.begun.elapsed()));
            if self.is_over.load(Ordering::Relaxed) {
                return sent;
            }
            match self.send(&mut kept, event) {
                Ok(()) => drop(sent.acknowledged.insert(event)),
                Err(error) => drop(sent.failed.insert(event, format!("{error:#}"))),
            }
            if number.is_multiple_of(2) {
                kept = None;
            }
        }
    }

    fn send(&self, kept: &mut Option<Connection>, event: u64) -> Result<()> {
        let body = format!("{{\"n\":{event}}}");
        let request = http::post("/ingest/event", &["Content-Type: application/json"], body.as_bytes());
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => Connection::open(self.server).context("connecting")?,
        };
        let answer = connection.send(&request).context("sending")?;
        if answer.status != 200 {
            bail!("answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        *kept = Some(connection);
        Ok(())
    }
}

impl Sent {
    /// Fails if any request failed.
    pub(super) fn expect_none_failed(&self) -> Result<()> {
        let shown: Vec<_> = self.failed.iter().take(SHOWN_MAX).map(|(event, why)| format!("{event}: {why}")).collect();
        if self.failed.is_empty() {
            Ok(())
        } else {
            bail!("{} requests failed: {}", self.failed.len(), shown.join("; "))
        }
    }
}

/// The stored numbers, each with its count.
pub(super) fn stored(rows: &mut dyn BufRead) -> Result<BTreeMap<u64, u32>> {
    let mut found = BTreeMap::new();
    for row in rows.lines() {
        let row = row.context("reading what is stored")?;
        let number = serde_json::from_str::<serde_json::Value>(&row).ok().and_then(|event| event["n"].as_u64());
        *found.entry(number.with_context(|| format!("stored, but never sent: {row}"))?).or_default() += 1;
    }
    Ok(found)
}

/// Fails if an event is stored more than once.
pub(super) fn expect_none_doubled(stored: &BTreeMap<u64, u32>) -> Result<()> {
    let doubled: Vec<u64> = stored.iter().filter(|(_, times)| **times > 1).map(|(event, _)| *event).collect();
    if doubled.is_empty() { Ok(()) } else { bail!("stored more than once: {}", ranges(doubled)) }
}

/// Numbers in ascending order as ranges: `3-7, 9`.
pub(super) fn ranges(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(shown).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_shown() {
        let mut rows = &b"{\"n\":3}\n{\"n\": 4}\n{\"n\":3}\n"[..];
        let found = stored(&mut rows).unwrap();
        assert_eq!(found, BTreeMap::from([(3, 2), (4, 1)]));
        assert!(expect_none_doubled(&found).unwrap_err().to_string().contains("more than once: 3"));
        assert!(stored(&mut &b"{}\n"[..]).is_err());
        assert_eq!(ranges([1, 2, 3, 5, 8, 9]), "1-3, 5, 8-9");
    }
}
