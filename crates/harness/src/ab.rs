//! A fixed number of single POSTs by `ab`, as the articles on the system before this one measured it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// Requests, and how many of them are in flight at a time.
#[derive(Clone, Copy, Debug)]
pub struct AbLoad {
    /// Requests in all.
    pub requests: u64,
    /// Requests in flight at a time.
    pub connections: u32,
}

/// The results of `ab`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbReport {
    /// The rate that `ab` prints.
    pub requests_per_second: f64,
    /// Requests without an answer, or with another status than 2xx.
    pub failed: u64,
}

/// Posts the body in `file` with kept connections. Answers may differ in their lengths.
pub fn run(url: &str, load: AbLoad, file: &Path) -> Result<AbReport> {
    let mut command = Command::new("ab");
    command.args(["-q", "-k", "-l", "-n", &load.requests.to_string(), "-c", &load.connections.to_string(), "-p"]);
    command.arg(file).args(["-T", "application/json", url]);
    parse(&workspace::output(&mut command)?, load.requests)
}

fn parse(printed: &str, requests: u64) -> Result<AbReport> {
    let text = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let count = |name: &str| text(name).and_then(|count| count.parse::<u64>().ok());
    let needed = |name: &str| format!("ab printed no figure {name}\n{printed}");
    let [complete, failed] =
        ["Complete requests:", "Failed requests:"].map(|name| count(name).with_context(|| needed(name)));
    let other = count("Non-2xx responses:").unwrap_or(0);
    let failed = requests.saturating_sub(complete?) + failed? + other;
    let rate = text("Requests per second:").and_then(|rate| rate.parse().ok());
    Ok(AbReport { requests_per_second: rate.with_context(|| needed("Requests per second:"))?, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_all_failures_are_counted() {
        let good =
            "Complete requests:      100\nFailed requests:        0\nRequests per second:    250.50 [#/sec] (mean)\n";
        assert_eq!(parse(good, 100).unwrap(), AbReport { requests_per_second: 250.5, failed: 0 });
        assert_eq!(parse(good, 110).unwrap().failed, 10);
        assert_eq!(parse(&good.replace("        0", "        3"), 100).unwrap().failed, 3);
        assert_eq!(parse(&format!("{good}Non-2xx responses:      7\n"), 100).unwrap().failed, 7);
        assert!(parse("apr_socket_recv: Connection refused (111)", 100).is_err());
    }
}
