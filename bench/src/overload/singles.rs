//! One event a POST, sent by the program's own `bench`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Load, Pace, Sent};

const CONNECTIONS: u32 = 1_000;

pub(super) struct Singles<'a> {
    pub(super) binary: &'a Path,
}

impl Load for Singles<'_> {
    const WHAT: &'static str = "single events";

    fn send(&self, server: SocketAddr, pace: Pace, duration: Duration) -> Result<Sent> {
        let mut command = Command::new(self.binary);
        command.args(["bench", "--kind", "job", "--json", "--url", &format!("http://{server}")]);
        command.args(["--connections", &CONNECTIONS.to_string(), "--duration", &format!("{}s", duration.as_secs())]);
        if let Pace::Scheduled(rate) = pace {
            command.args(["--rate", &format!("{rate:.0}")]);
        }
        // It exits with 3 if a request was rejected, which is normal in an overload.
        let output = command.output().context("starting bench")?;
        let report: Value = serde_json::from_slice(&output.stdout).context("reading what bench prints")?;
        let answers = report["answers"].as_object().context("bench prints the answers")?;
        if let Some((status, count)) = answers.iter().find(|(status, _)| !matches!(status.as_str(), "200" | "503")) {
            bail!("{count} requests were answered {status}");
        }
        let events = report["events_per_second"].as_f64().context("bench prints a rate")?;
        let refused = answers.get("503").and_then(Value::as_f64).unwrap_or_default() / duration.as_secs_f64();
        let p99 = report["latency_us"].as_array().into_iter().flatten().find(|pair| pair[0] == "p99");
        let p99_ms = p99.and_then(|pair| pair[1].as_f64()).context("bench prints the 99th percentile")? / 1e3;
        Ok(Sent { events, requests: events, refused, p99_ms })
    }
}
