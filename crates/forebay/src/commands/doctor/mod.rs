//! `forebay doctor`: checks what a process needs, with and without one that runs. It changes nothing, unless the operator allows it.

mod check;
mod credentials;
mod disk;
mod limits;
mod process;
mod stores;
mod subject;

use std::sync::Arc;
use std::time::Duration;

use cli::errors::cannot;
use cli::output::print;
use cli::{AdminPort, DoctorFlags, EXIT_CONFIGURATION};
use config::Role;
use serde::Serialize;
use settings::Environment;
use text::counted;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use check::{Check, State};
use limits::Limits;
use process::{Answers, Process};
pub(crate) use subject::Subject;

/// The exit code if there is a problem.
const EXIT_PROBLEM: u8 = 3;
/// Checks of this machine that take longer don't end: a file system of the network may hang.
const LIMIT: Duration = Duration::from_secs(20);

const NO_ANSWER: &str = "it took longer than 20 s: a file system may hang";

/// All checks, and the process that answered.
#[derive(Serialize)]
pub(crate) struct Diagnosis {
    version: &'static str,
    role: &'static str,
    process: Option<Process>,
    checks: Vec<Check>,
}

/// Prints the diagnosis. Returns the exit code.
///
/// # Errors
/// The flags can't be used, or the output can't be written.
pub(crate) fn run(flags: &DoctorFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let role = flags.examined().role.or(role).unwrap_or(Role::Serve);
    let Some(subject) = Subject::load(flags.examined(), role, environment) else { return Ok(EXIT_CONFIGURATION) };
    let admin = AdminPort::find(flags.examined(), role, environment)?;
    let diagnosis = diagnose(subject, admin, flags.write)?;
    let text = if flags.is_json() { serde_json::to_string(&diagnosis)? + "\n" } else { diagnosis.text() };
    print(|output| std::io::Write::write_all(output, text.as_bytes()))?;
    Ok(if diagnosis.count(State::Problem) > 0 { EXIT_PROBLEM } else { 0 })
}

/// Does all checks at the same time.
///
/// # Errors
/// The operating system refuses a runtime.
pub(crate) fn diagnose(subject: Subject, admin: AdminPort, may_write: bool) -> anyhow::Result<Diagnosis> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot("start"))?;
    let role = subject.role;
    let (process, checks) = runtime.block_on(all(Arc::new(subject), admin, may_write));
    // A check of a disk may hang.
    runtime.shutdown_background();
    Ok(Diagnosis { version: env!("CARGO_PKG_VERSION"), role: role.name(), process, checks })
}

async fn all(subject: Arc<Subject>, admin: AdminPort, may_write: bool) -> (Option<Process>, Vec<Check>) {
    let sinks = subject.sinks.iter().cloned();
    let stores: Vec<_> = sinks.map(|(name, config)| tokio::spawn(stores::checks(name, config, may_write))).collect();
    let (role, of_disk, of_files) = (subject.role, Arc::clone(&subject), Arc::clone(&subject));
    let (answers, disk, files) = tokio::join!(
        blocking(move || process::ask(&admin, role)),
        blocking(move || disk::checks(&of_disk, may_write)),
        blocking(move || credentials::checks(&of_files, clock::unix_microseconds())),
    );
    let Answers { process, limits, checks: said } = answers.unwrap_or_default();
    let limits = limits.unwrap_or_else(Limits::of_this_command);
    let mut checks = said;
    checks.extend(disk.unwrap_or_else(|| vec![Check::skipped("disk", NO_ANSWER)]));
    checks.extend(limits::checks(&limits, &subject));
    checks.extend(limits::of_kernel(&host::kernel_settings()));
    checks.extend(files.unwrap_or_else(|| vec![Check::skipped("token", NO_ANSWER)]));
    for (store, (name, _)) in stores.into_iter().zip(&subject.sinks) {
        checks.extend(store.await.unwrap_or_else(|_| vec![Check::skipped("sink", NO_ANSWER).about(name)]));
    }
    (process, checks)
}

/// Works on a thread that may block. `None` if it takes too long.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    timeout(LIMIT, spawn_blocking(work)).await.ok()?.ok()
}

impl Diagnosis {
    fn count(&self, state: State) -> usize {
        self.checks.iter().filter(|check| check.state == state).count()
    }

    /// A line for each check, and the sum.
    fn text(&self) -> String {
        let lines: String = self.checks.iter().map(Check::line).collect();
        let count = |state, what| counted(self.count(state) as u64, what);
        format!("{lines}\n{}, {}\n", count(State::Problem, "problem"), count(State::Warning, "warning"))
    }
}
