//! Single POSTs as fast as `wrk` can send them.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// A status document of a job, 114 bytes: sent to the loops and to the server.
pub const BODY: &str = r#"{"data":"{'job_id':'7f03a1c2e994','container_id':'51dd0e6b7a38','status':'Success: process exited with code 0.'}"}"#;

/// How much load.
#[derive(Clone, Copy, Debug)]
pub struct WrkLoad {
    /// Connections, each with one request at a time.
    pub connections: u32,
    /// How long it sends.
    pub duration: Duration,
    /// Each request has a separate Idempotency-Key.
    pub is_keyed: bool,
}

/// The results of `wrk`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrkReport {
    /// Answered requests.
    pub requests: u64,
    /// The rate that `wrk` prints.
    pub requests_per_second: f64,
}

/// Runs `wrk` with one thread against a server. An answer other than 200, or a broken connection, is an error:
/// a server that refuses is quick.
pub fn run(server: SocketAddr, load: WrkLoad, folder: &Path) -> Result<WrkReport> {
    run_on(&format!("http://{server}/ingest/event"), load, folder)
}

/// The same against any URL.
pub fn run_on(url: &str, load: WrkLoad, folder: &Path) -> Result<WrkReport> {
    let script = folder.join("post.lua");
    std::fs::write(&script, script_text(load.is_keyed)).with_context(|| format!("writing {}", script.display()))?;
    let mut command = wrk(load.connections, load.duration);
    command.arg("-s").arg(&script).arg(url);
    report(&mut command)
}

/// GETs of a URL.
pub fn get(url: &str, connections: u32, duration: Duration) -> Result<WrkReport> {
    report(wrk(connections, duration).arg(url))
}

fn wrk(connections: u32, duration: Duration) -> Command {
    let mut command = Command::new("wrk");
    command.args(["-t1", "--timeout", "10s"]);
    command.args([format!("-c{connections}"), format!("-d{}", duration.as_secs().max(1))]);
    command
}

fn report(command: &mut Command) -> Result<WrkReport> {
    parse(&workspace::output(command).context("wrk is missing: `cargo xtask services` installs it")?)
}

fn script_text(is_keyed: bool) -> String {
    let fixed = format!(
        "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\nwrk.body = [==[{BODY}]==]\n"
    );
    if !is_keyed {
        return fixed;
    }
    // Unlike those of every other run.
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    fixed
        + &format!(
            "local number = 0\nrequest = function()\n  number = number + 1\n  \
             wrk.headers[\"Idempotency-Key\"] = \"{run}-\" .. number\n  return wrk.format()\nend\n"
        )
}

fn parse(printed: &str) -> Result<WrkReport> {
    for trouble in ["Non-2xx or 3xx responses", "Socket errors"] {
        if printed.contains(trouble) {
            bail!("not every request was answered with 200:\n{printed}");
        }
    }
    let requests = printed.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok());
    let rate = printed.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    match (requests, rate) {
        (Some(requests @ 1..), Some(requests_per_second)) => Ok(WrkReport { requests, requests_per_second }),
        _ => bail!("no figures in what wrk printed:\n{printed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_and_trouble_is_seen() {
        let good = "  1 threads and 2 connections\n  500 requests in 2.00s, 1.1MB read\nRequests/sec:    250.50\n";
        assert_eq!(parse(good).unwrap(), WrkReport { requests: 500, requests_per_second: 250.5 });
        assert!(parse(&format!("{good}  Non-2xx or 3xx responses: 7\n")).is_err());
        assert!(parse(&format!("{good}  Socket errors: connect 1, read 0\n")).is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn body_has_the_documented_size() {
        assert_eq!(BODY.len(), 114);
        assert!(serde_json::from_str::<serde_json::Value>(BODY).is_ok());
    }
}
