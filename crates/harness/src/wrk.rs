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

/// The results of [`requests`], which counts refusals instead of failing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestsReport {
    /// The rate of answers with 2xx or 3xx.
    pub answered_per_second: f64,
    /// Other answers.
    pub refused: u64,
    /// The 99th percentile of all answers, in milliseconds.
    pub p99_ms: f64,
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

/// Sends random ones of the requests in `file`: on each line a path, and after a blank the body of a POST. All are built before the first
/// is sent, so each costs the client as much as the same request repeated.
pub fn requests(server: SocketAddr, file: &Path, connections: u32, duration: Duration) -> Result<RequestsReport> {
    let script = file.with_extension("lua");
    std::fs::write(&script, requests_script(file)).with_context(|| format!("writing {}", script.display()))?;
    let mut command = wrk(connections, duration);
    command.arg("--latency").arg("-s").arg(&script).arg(format!("http://{server}"));
    parse_requests(&output(&mut command)?)
}

fn requests_script(file: &Path) -> String {
    format!(
        r#"local requests = {{}}
init = function()
  for line in io.lines("{}") do
    local path, body = line:match("^(%S+) ?(.*)$")
    requests[#requests + 1] = body == "" and wrk.format("GET", path) or wrk.format("POST", path, nil, body)
  end
end
request = function() return requests[math.random(#requests)] end
"#,
        file.display()
    )
}

fn wrk(connections: u32, duration: Duration) -> Command {
    let mut command = Command::new("wrk");
    command.args(["-t1", "--timeout", "10s"]);
    command.args([format!("-c{connections}"), format!("-d{}", duration.as_secs().max(1))]);
    command
}

fn report(command: &mut Command) -> Result<WrkReport> {
    parse(&output(command)?)
}

fn output(command: &mut Command) -> Result<String> {
    workspace::output(command).context("wrk is missing: `cargo xtask services` installs it")
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

const REFUSED: &str = "Non-2xx or 3xx responses";

fn parse(printed: &str) -> Result<WrkReport> {
    if printed.contains(REFUSED) {
        bail!("not every request was answered with 200:\n{printed}");
    }
    parse_all(printed)
}

fn parse_all(printed: &str) -> Result<WrkReport> {
    if printed.contains("Socket errors") {
        bail!("not every request was answered:\n{printed}");
    }
    let requests = printed.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok());
    let rate = printed.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    match (requests, rate) {
        (Some(requests @ 1..), Some(requests_per_second)) => Ok(WrkReport { requests, requests_per_second }),
        _ => bail!("no figures in what wrk printed:\n{printed}"),
    }
}

fn parse_requests(printed: &str) -> Result<RequestsReport> {
    let all = parse_all(printed)?;
    let after = |name: &str| printed.lines().find_map(|line| line.trim().strip_prefix(name).map(str::trim));
    let refused = after(&format!("{REFUSED}:")).and_then(|count| count.parse().ok()).unwrap_or(0);
    let p99_ms = after("99%").and_then(milliseconds).with_context(|| format!("no 99th percentile in\n{printed}"))?;
    let share = 1.0 - refused as f64 / all.requests as f64;
    Ok(RequestsReport { answered_per_second: all.requests_per_second * share, refused, p99_ms })
}

/// A duration as `wrk` prints it: `870.00us`, `3.10ms`, `1.20s`, `1.50m`.
fn milliseconds(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let factor = match &text[digits.len()..] {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 6e4,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_apart_from_answers() {
        let printed = "  Latency Distribution\n     50%    2.00ms\n     99%    3.10ms\n  \
                       500 requests in 2.00s, 1.1MB read\n  Non-2xx or 3xx responses: 100\nRequests/sec:    250.00\n";
        let report = parse_requests(printed).unwrap();
        assert!((report.answered_per_second - 200.0).abs() < 1e-9 && report.refused == 100, "{report:?}");
        assert!((report.p99_ms - 3.1).abs() < 1e-9, "{report:?}");
        assert!(parse_requests(&printed.replace("99%", "98%")).is_err());
        let durations = ["870.00us", "1.20s", "1.50m", "7"].map(milliseconds);
        assert_eq!(durations, [Some(0.87), Some(1200.0), Some(90_000.0), None]);
    }

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
