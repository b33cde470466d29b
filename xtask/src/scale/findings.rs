//! Causes of slowness in containers: each is found within a minute, and is gone a minute after its end. An idle container shows what the machine
//! itself causes.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Setup;
use super::container::{Container, Site};
use crate::http;
use crate::report::{Bar, Row};
use crate::server::NULL_SINK;

/// A finding is about the last minute.
const FOUND_WITHIN: Duration = Duration::from_secs(60);
const GONE_WITHIN: Duration = Duration::from_secs(75);
const POLL: Duration = Duration::from_secs(1);
const CONNECTIONS: usize = 60;
/// The longest that a load runs: it is ended when its cause was found.
const LOAD_SECONDS: &str = "120";

/// Options of `cargo xtask scale findings`.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// The code of the only finding to provoke [default: all of them]
    #[arg(long, value_name = "CODE", value_parser = code)]
    only: Option<&'static str>,
}

impl Options {
    /// Provokes all findings.
    pub(super) const ALL: Self = Self { only: None };
}

/// What happens to a container.
struct Cause {
    name: &'static str,
    code: &'static str,
    options: fn(&Path) -> Result<Vec<String>>,
    begin: fn(&Site, &Container, &Path) -> Result<Running>,
}

/// The code of a cause.
fn code(text: &str) -> Result<&'static str, String> {
    let codes: Vec<&'static str> = CAUSES.iter().map(|cause| cause.code).collect();
    let known = codes.iter().copied().find(|code| *code == text);
    known.ok_or_else(|| format!("the codes are {}", codes.join(", ")))
}

/// What ends a cause when it is dropped.
#[derive(Default)]
struct Running {
    processes: Vec<Child>,
    _connections: Vec<TcpStream>,
    neighbour: bool,
}

const CAUSES: &[Cause] = &[
    Cause {
        name: "CPU limit of 0.2",
        code: "cpu_throttled",
        options: |_| Ok(words(&["--cpus", "0.2"])),
        begin: |_, server, folder| post(server.address, folder, 64, 100),
    },
    Cause {
        name: "neighbour on all CPUs",
        code: "cpu_busy",
        options: |_| Ok(words(&["--cpu-shares", "64"])),
        begin: |site, server, folder| {
            site.burn("burning", &[])?;
            Ok(Running { neighbour: true, ..post(server.address, folder, 64, 100)? })
        },
    },
    Cause {
        name: "disk of 4 writes a second",
        code: "disk_slow",
        options: |data| Ok(vec!["--device-write-iops".into(), format!("{}:4", device(data)?)]),
        begin: |_, server, folder| post(server.address, folder, 2, 100),
    },
    Cause {
        name: "memory limit of 64 MB",
        code: "memory",
        options: |_| Ok(words(&["--memory", "64m", "--memory-swap", "64m"])),
        begin: |_, server, folder| post(server.address, folder, 128, 900_000),
    },
    Cause {
        name: "64 file descriptors",
        code: "descriptors",
        options: |_| Ok(words(&["--ulimit", "nofile=64:64"])),
        begin: |_, server, _| {
            let connections = (0..CONNECTIONS).map(|_| TcpStream::connect(server.address));
            Ok(Running { _connections: connections.collect::<Result<_, _>>()?, ..Running::default() })
        },
    },
];

/// Provokes each cause, and measures how long it takes until it is found, and until it is gone.
pub(super) fn run(setup: &Setup, options: Options) -> Result<Vec<Row>> {
    let site = Site::start(&setup.binary)?;
    let idle_folder = site.folder(&setup.folder, "idle")?;
    let idle = site.serve("idle", &idle_folder, NULL_SINK, &[])?;
    let mut rows = Vec::new();
    for cause in CAUSES.iter().filter(|cause| options.only.is_none_or(|only| only == cause.code)) {
        let folder = site.folder(&setup.folder, "caused")?;
        let options = (cause.options)(&folder)?;
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let server = site.serve("caused", &folder, NULL_SINK, &options)?;
        rows.extend(cause.measure(&site, &server, &idle, &setup.folder)?);
        server.remove(&site.docker)?;
    }
    Ok(rows)
}

impl Cause {
    fn measure(&self, site: &Site, server: &Container, idle: &Container, folder: &Path) -> Result<[Row; 3]> {
        let mut others = Vec::new();
        let mut running = (self.begin)(site, server, folder)?;
        let found = wait(FOUND_WITHIN, || {
            let (codes, machine) = (codes(server.admin)?, codes(idle.admin)?);
            others.extend(codes.iter().filter(|code| **code != self.code && !machine.contains(code)).cloned());
            Ok(codes.iter().any(|code| code == self.code))
        })?;
        running.end(site)?;
        let gone = wait(GONE_WITHIN, || Ok(!codes(server.admin)?.iter().any(|code| code == self.code)))?;
        others.sort_unstable();
        others.dedup();
        println!("{}: {} after {found:.0} s, gone after {gone:.0} s; others: {others:?}", self.name, self.code);
        let row = |what: &str, unit, measured, most| {
            Row::alone(&format!("{}: {what}", self.name), unit, measured, Bar::AtMost(most))
        };
        Ok([
            row("found after", "s", found, FOUND_WITHIN.as_secs_f64()),
            row("gone after", "s", gone, GONE_WITHIN.as_secs_f64()),
            row("other findings", "", count(others.len()), 0.0),
        ])
    }
}

impl Running {
    fn end(&mut self, site: &Site) -> Result<()> {
        for process in &mut self.processes {
            process.kill()?;
            process.wait()?;
        }
        self._connections.clear();
        if self.neighbour {
            site.docker.run(["rm", "--force", "burning"])?;
        }
        Ok(())
    }
}

/// Seconds until something holds; infinite if it doesn't within `limit`.
fn wait(limit: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<f64> {
    let begun = Instant::now();
    while begun.elapsed() <= limit {
        if holds()? {
            return Ok(begun.elapsed().as_secs_f64());
        }
        thread::sleep(POLL);
    }
    Ok(f64::INFINITY)
}

/// The codes of a process's findings.
fn codes(admin: SocketAddr) -> Result<Vec<String>> {
    let answer = http::get(admin, "/api/health")?;
    let health: serde_json::Value = serde_json::from_slice(&answer.body).context("reading /api/health")?;
    let findings = health["findings"].as_array().into_iter().flatten();
    Ok(findings.filter_map(|finding| finding["code"].as_str().map(str::to_owned)).collect())
}

/// Posts events of so many bytes, and ignores the answers.
fn post(server: SocketAddr, folder: &Path, connections: u32, bytes: usize) -> Result<Running> {
    let script = folder.join("events.lua");
    let body = format!("{{\\\"text\\\":\\\"{}\\\"}}", "x".repeat(bytes));
    let text = format!("wrk.method = \"POST\"\nwrk.body = \"{body}\"\n");
    fs::File::create(&script)?.write_all(text.as_bytes())?;
    let mut wrk = Command::new("wrk");
    wrk.args(["-t", "1", "-c", &connections.to_string(), "-d", LOAD_SECONDS, "-s"]).arg(&script);
    let wrk = wrk.arg(format!("http://{server}/ingest/event")).stdout(Stdio::null()).spawn().context("starting wrk")?;
    Ok(Running { processes: vec![wrk], ..Running::default() })
}

/// The disk of a folder, as Docker needs it.
fn device(folder: &Path) -> Result<String> {
    let number = fs::metadata(folder)?.dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let link = format!("/sys/dev/block/{major}:{minor}");
    let name = fs::canonicalize(&link).with_context(|| format!("reading {link}"))?;
    let name = name.file_name().and_then(|name| name.to_str()).context("a disk has a name")?.to_owned();
    Ok(format!("/dev/{name}"))
}

fn words(options: &[&str]) -> Vec<String> {
    options.iter().map(|&option| option.to_owned()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a few findings")]
const fn count(findings: usize) -> f64 {
    findings as f64
}
