//! The receiver of StatsD: datagrams, of which none waits for an answer.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use config::StatsdConfig;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::Collect;
use super::statsd_lines::{Known, Lines};
use crate::metrics::push::PushCounters;

/// The time of a whole push.
const PUSH_MAX: Duration = Duration::from_secs(5);
/// The time between two messages about failures.
const SILENCE: Duration = Duration::from_secs(60);

/// Collects the metrics as datagrams. Also returns what the next push must know.
fn collected(config: &StatsdConfig, collect: &Collect, known: Known) -> (Vec<Vec<u8>>, Known) {
    let mut lines = Lines::new(&config.prefix, known);
    collect(&mut lines);
    lines.finish()
}

/// Starts to send the metrics, until the runtime ends.
pub(super) fn start(config: StatsdConfig, counters: Arc<PushCounters>, collect: Collect) {
    // What was counted before the start, as the ledger's figures, is no increase.
    let (_, known) = collected(&config, &collect, Known::Nothing);
    tokio::spawn(push(config, counters, collect, known));
}

async fn push(config: StatsdConfig, counters: Arc<PushCounters>, collect: Collect, mut known: Known) {
    let mut ticks = interval_at(Instant::now() + config.interval, config.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut logged: Option<Instant> = None;
    loop {
        ticks.tick().await;
        let datagrams;
        (datagrams, known) = collected(&config, &collect, known);
        let mut sent = 0;
        let outcome = timeout(PUSH_MAX, send(&config.address, &datagrams, &mut sent)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        counters.datagrams.add(sent as u64);
        counters.failed_datagrams.add((datagrams.len() - sent) as u64);
        if let Err(error) = outcome
            && logged.is_none_or(|last| last.elapsed() >= SILENCE)
        {
            logged = Some(Instant::now());
            tracing::warn!(
                "metrics were not sent to the StatsD receiver {}: {error}. Check the receiver and [statsd]; events are not affected",
                config.address
            );
        }
    }
}

/// Sends the datagrams, and counts those that were sent.
async fn send(address: &str, datagrams: &[Vec<u8>], sent: &mut usize) -> io::Result<()> {
    let receiver = lookup_host(address).await?.next().ok_or(io::ErrorKind::NotFound)?;
    let own: SocketAddr = match receiver {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(own).await?;
    socket.connect(receiver).await?;
    for datagram in datagrams {
        socket.send(datagram).await?;
        *sent += 1;
    }
    Ok(())
}
