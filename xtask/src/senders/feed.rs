//! Events for senders that forward: lines for syslog daemons, records for the OpenTelemetry Collector.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::marks::{EVENTS, mark};
use crate::http;
use crate::wait::until;

/// Events are fed in so many parts, so the kills fall between them.
const PARTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// A sender that listens later hangs.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How a sender gets events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feed {
    /// Lines of syslog over TCP.
    Syslog(SocketAddr),
    /// Requests of OTLP/JSON.
    Otlp(SocketAddr),
}

impl Feed {
    /// Feeds all events.
    pub(super) fn run(self) -> Result<()> {
        let (Self::Syslog(address) | Self::Otlp(address)) = self;
        until("the sender listens", START_LIMIT, || Ok(TcpStream::connect(address).is_ok()))?;
        let mut stream = TcpStream::connect(address).context("connecting with the sender")?;
        let numbers: Vec<usize> = (0..EVENTS).collect();
        for part in numbers.chunks(EVENTS / PARTS) {
            match self {
                Self::Syslog(_) => stream.write_all(lines(part).as_bytes()).context("feeding the sender")?,
                Self::Otlp(_) => post(address, &records(part))?,
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn lines(numbers: &[usize]) -> String {
    let line = |number: &usize| format!("<13>Nov 28 10:00:00 campaign app: order {} arrived\n", mark(*number));
    numbers.iter().map(line).collect()
}

fn records(numbers: &[usize]) -> String {
    let record = |number: &usize| {
        let mark = mark(*number);
        format!(
            "{{\"timeUnixNano\":\"1795168800000000000\",\"severityText\":\"INFO\",\"body\":{{\"stringValue\":\"{mark}\"}}}}"
        )
    };
    let records = numbers.iter().map(record).collect::<Vec<_>>().join(",");
    format!("{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{records}]}}]}}]}}")
}

fn post(collector: SocketAddr, body: &str) -> Result<()> {
    let request = http::post("/v1/logs", &["Content-Type: application/json"], body.as_bytes());
    let answer = http::Client::new(collector).send(&request).context("feeding the collector")?;
    if answer.status != 200 {
        bail!("the collector answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    Ok(())
}
