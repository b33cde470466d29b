//! `forebay report`: what a colleague needs to help, in one file. It has no payload and no secret.

mod archive;
mod redact;

use std::fs::{OpenOptions, remove_file};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use admin_api::dead::ListJson;
use admin_api::paths;
use anyhow::{anyhow, bail};
use cli::errors::at;
use cli::output::Output;
use cli::{AdminPort, EXIT_CONFIGURATION, ReportFlags};
use config::Role;
use settings::Environment;
use text::rfc3339;

use super::doctor::{Subject, diagnose};

/// The folder within the archive.
const FOLDER: &str = "forebay-report";
/// The list of all files.
const CONTENTS: &str = "CONTENTS.txt";
/// The limit of a request.
const LIMIT: Duration = Duration::from_secs(10);
/// The limit of a request that takes the time of a profile.
const PROFILE_LIMIT: Duration = Duration::from_secs(30);
/// The time between the two readings of the metrics.
const BETWEEN_METRICS: Duration = Duration::from_secs(10);
/// The dead letters that are counted.
const DEAD_LETTERS_MAX: usize = 10_000;
/// The owner may read the file: it has names of hosts and sinks.
const OWNER_ONLY: u32 = 0o600;

/// A file that is the answer to a request.
struct Part {
    file: &'static str,
    what: &'static str,
    method: &'static str,
    path: &'static str,
    limit: Duration,
}

const fn part(file: &'static str, what: &'static str, path: &'static str) -> Part {
    Part { file, what, method: "GET", path, limit: LIMIT }
}

const fn profile(file: &'static str, what: &'static str, path: &'static str) -> Part {
    Part { file, what, method: "POST", path, limit: PROFILE_LIMIT }
}

const METRICS: Part = part("metrics-1.txt", "the metrics", paths::METRICS);
/// They are read during the time between the two readings of the metrics.
const BETWEEN: [Part; 6] = [
    part("health.json", "what slows the process down", paths::API_HEALTH),
    part("config.json", "the configuration, with stars instead of secrets", paths::CONFIG),
    part("log.json", "the last lines of the log", "/api/log"),
    part("memory.json", "the memory of each part", "/debug/memory"),
    part("shards.json", "connections, bytes and open requests of each shard", "/debug/shards"),
    profile("profile.folded", "a CPU profile of 10 s, as folded stacks", "/debug/profile?seconds=10&format=folded"),
];
const METRICS_AGAIN: Part = part("metrics-2.txt", "the metrics, 10 s or more later", paths::METRICS);
const FLAME_GRAPH: Part =
    profile("profile.svg", "another CPU profile of 10 s, as a flame graph", "/debug/profile?seconds=10&format=svg");

/// Writes the report. Returns the exit code.
///
/// # Errors
/// The flags can't be used, or the file can't be written.
pub(crate) fn run(flags: &ReportFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let role = flags.examined().role.or(role).unwrap_or(Role::Serve);
    let mut output = Target::open(&flags.file)?;
    let Some(subject) = Subject::load(flags.examined(), role, environment) else {
        output.discard();
        return Ok(EXIT_CONFIGURATION);
    };
    let admin = AdminPort::find(flags.examined(), role, environment).inspect_err(|_| output.discard())?;
    let mut report = Report::default();
    report.ask_all(&admin);
    let diagnosis = diagnose(subject, AdminPort::find(flags.examined(), role, environment)?, false)?;
    report.add(
        "doctor.json",
        "what forebay doctor finds",
        serde_json::to_vec_pretty(&redact::diagnosis(serde_json::to_value(&diagnosis)?))?,
    );
    let (contents, now) = (report.contents(), clock::since_1970().as_secs());
    report.files.insert(0, (CONTENTS.to_owned(), contents.clone().into_bytes()));
    let written = archive::write(&mut output, FOLDER, &report.files, now);
    written.inspect_err(|_| output.discard()).map_err(at(&flags.file))?;
    write!(io::stderr(), "{contents}")?;
    Ok(0)
}

/// The file, or the standard output.
enum Target<'p> {
    StandardOutput(Output),
    File(std::fs::File, &'p Path),
}

impl<'p> Target<'p> {
    fn open(path: &'p Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            if io::stdout().is_terminal() {
                bail!("the report isn't text: redirect the output, as in forebay report - > report.tar.gz");
            }
            return Ok(Self::StandardOutput(Output::lock()));
        }
        let file = OpenOptions::new().create_new(true).write(true).mode(OWNER_ONLY).open(path);
        file.map(|file| Self::File(file, path)).map_err(|error| {
            anyhow!(
                "can't create {}: {error}. Name another file, or - for the standard output (containers may be read-only)",
                path.display()
            )
        })
    }

    /// Removes an incomplete file.
    fn discard(&self) {
        if let Self::File(_, path) = self {
            let _ = remove_file(path);
        }
    }
}

impl Write for Target<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::StandardOutput(output) => output.write(bytes),
            Self::File(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::StandardOutput(output) => output.flush(),
            Self::File(file, _) => file.flush(),
        }
    }
}

/// The files so far, and what was left out.
#[derive(Default)]
struct Report {
    files: Vec<(String, Vec<u8>)>,
    /// A line for each file.
    listed: Vec<String>,
    /// A line for each part that is missing, with the reason.
    missing: Vec<String>,
}

impl Report {
    fn add(&mut self, file: &str, what: &str, content: Vec<u8>) {
        self.listed.push(format!("{file:<20}{what}"));
        self.files.push((file.to_owned(), content));
    }

    fn leave_out(&mut self, file: &str, why: &str) {
        self.missing.push(format!("{file:<20}{why}"));
    }

    /// Asks the process for everything. Without a process, one line says so.
    fn ask_all(&mut self, admin: &AdminPort) {
        let status = part("status.json", "the state of the process and its sinks", paths::STATUS);
        match admin.ask(status.method, status.path, status.limit) {
            Err(error) => {
                let why = format!("no process answers at {}: {error}", admin.address());
                self.leave_out("all but doctor.json", &why);
                return;
            }
            Ok(answer) => self.take(&status, answer.status, answer.body, cut_status),
        }
        self.ask(admin, &METRICS);
        let begun = Instant::now();
        BETWEEN.iter().for_each(|part| self.ask(admin, part));
        self.count_dead_letters(admin);
        sleep(BETWEEN_METRICS.saturating_sub(begun.elapsed()));
        self.ask(admin, &METRICS_AGAIN);
        self.ask(admin, &FLAME_GRAPH);
    }

    fn ask(&mut self, admin: &AdminPort, part: &Part) {
        match admin.ask(part.method, part.path, part.limit) {
            Ok(answer) => self.take(part, answer.status, answer.body, Some),
            Err(error) => self.leave_out(part.file, &error.to_string()),
        }
    }

    fn count_dead_letters(&mut self, admin: &AdminPort) {
        let part = part("dead-letters.json", "dead letters by sink, type and reason, without payloads", paths::DEAD);
        match admin.ask(part.method, &format!("{}?limit={DEAD_LETTERS_MAX}", part.path), part.limit) {
            Ok(answer) => self.take(&part, answer.status, answer.body, group),
            Err(error) => self.leave_out(part.file, &error.to_string()),
        }
    }

    /// Adds an answer as `change` makes it.
    fn take(&mut self, part: &Part, status: u16, body: Vec<u8>, change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) {
        let why = match status {
            200 => match change(body) {
                Some(content) => return self.add(part.file, part.what, content),
                None => "the answer has another form than this version knows".to_owned(),
            },
            404 => "not available: the process has another role or version".to_owned(),
            401 | 403 => "the request needs a token with the scope admin: set FOREBAY_TOKEN_FILE".to_owned(),
            status => format!("the process responded with {status}"),
        };
        self.leave_out(part.file, &why);
    }

    /// The text of the list.
    fn contents(&self) -> String {
        let now = rfc3339::format(clock::unix_microseconds());
        let mut text = format!("Report of Forebay {}, written at {now}\n\n", env!("CARGO_PKG_VERSION"));
        self.listed.iter().for_each(|line| text += &format!("{line}\n"));
        if !self.missing.is_empty() {
            text += "\nLeft out:\n";
            self.missing.iter().for_each(|line| text += &format!("{line}\n"));
        }
        text + "\nPayloads, headers, queries and secrets are never part of a report. Names of hosts, sinks and types are.\n"
    }
}

fn cut_status(body: Vec<u8>) -> Option<Vec<u8>> {
    serde_json::to_vec_pretty(&redact::status(serde_json::from_slice(&body).ok()?)).ok()
}

/// The groups of a list of dead letters.
fn group(body: Vec<u8>) -> Option<Vec<u8>> {
    let list: ListJson = serde_json::from_slice(&body).ok()?;
    let json = serde_json::json!({"groups": redact::groups(&list), "more": list.more, "lost": list.lost});
    serde_json::to_vec_pretty(&json).ok()
}
