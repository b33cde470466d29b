//! Clients that send single events on a schedule and record the result of each by its number. They send no event twice, so the system under
//! test has doubled a number that is stored twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::clients::with_clients;
use crate::http::{self, Client};

/// The most requests in flight. If all clients wait for answers, the schedule is late.
const CLIENTS: u32 = 32;
const SHOWN_MAX: usize = 5;

/// The clients' records.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The events that were answered 200.
    pub(super) acknowledged: BTreeSet<u64>,
    /// The other events, with their errors.
    pub(super) failed: BTreeMap<u64, String>,
}

/// The schedule of all clients.
struct Schedule {
    begun: Instant,
    pause: Duration,
    next: AtomicU64,
    is_over: AtomicBool,
}

/// Sends `per_second` events a second while `act` runs, with numbers from `first` on. Returns when all requests are answered.
pub(super) fn send_during<T>(
    server: SocketAddr,
    per_second: u32,
    first: u64,
    act: impl FnOnce() -> Result<T>,
) -> Result<(Sent, T)> {
    let pause = Duration::from_secs(1) / per_second;
    // The schedule begins with the first event.
    let begun = Instant::now().checked_sub(pause * u32::try_from(first)?).context("a clock that has just begun")?;
    let schedule = Schedule { begun, pause, next: AtomicU64::new(first), is_over: AtomicBool::new(false) };
    let stop = || schedule.is_over.store(true, Ordering::Relaxed);
    let (clients, done) = with_clients(CLIENTS, |number| Ok(send_until_over(&schedule, server, number)), act, stop)?;
    let mut all = Sent::default();
    for sent in clients {
        all.acknowledged.extend(sent.acknowledged);
        all.failed.extend(sent.failed);
    }
    Ok((all, done))
}

/// One client. Half of them keep their connection, the others open one for each event.
fn send_until_over(schedule: &Schedule, server: SocketAddr, number: u32) -> Sent {
    let (mut sent, mut client) = (Sent::default(), Client::new(server));
    loop {
        let event = schedule.next.fetch_add(1, Ordering::Relaxed);
        let due = schedule.pause * u32::try_from(event).unwrap_or(u32::MAX);
        thread::sleep(due.saturating_sub(schedule.begun.elapsed()));
        if schedule.is_over.load(Ordering::Relaxed) {
            return sent;
        }
        let request =
            http::post("/ingest/event", &["Content-Type: application/json"], format!("{{\"n\":{event}}}").as_bytes());
        match client.send(&request) {
            Ok(answer) if answer.status == 200 => drop(sent.acknowledged.insert(event)),
            Ok(answer) => {
                let error = format!("answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
                sent.failed.insert(event, error);
                client.disconnect();
            }
            Err(error) => drop(sent.failed.insert(event, error.to_string())),
        }
        if number.is_multiple_of(2) {
            client.disconnect();
        }
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
