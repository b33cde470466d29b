//! The test programs of all crates: built together, and run several at a time, since most of them wait for processes and disks, and the
//! longest tests keep one core busy.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use testkit::skipped::LIST;

use crate::shared_servers::SharedServers;
use crate::workspace::{cargo_test, output, skipped_list, target_directory};

/// Tests of a program at a time, for each core: most of them wait for processes and disks.
const THREADS_PER_CORE: usize = 2;
/// The program that takes longest.
const LONGEST: &str = "forebay it";
/// Where the seconds of the last run are kept: the longest programs begin first.
const TIMES: &str = "test-times.json";

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    /// Its crate and its target.
    name: String,
    path: PathBuf,
    /// The folder of its crate.
    folder: PathBuf,
}

/// Builds and runs all of them. Examples are left to clippy, and there are no tests in documentation.
pub(crate) fn run_all() -> Result<()> {
    let mut build = cargo_test()?;
    build.args(["--lib", "--bins", "--tests", "--no-run", "--message-format", "json-render-diagnostics"]);
    let begun = Instant::now();
    let mut programs: Vec<Program> = output(&mut build)?.lines().filter_map(program).collect();
    println!("{} test programs, built in {:.0} s", programs.len(), begun.elapsed().as_secs_f64());
    if programs.is_empty() {
        bail!("cargo built no tests");
    }
    let times = target_directory()?.join(TIMES);
    let before = std::fs::read_to_string(&times).ok();
    let before: BTreeMap<String, f64> = before.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    // Without a last run, the tests of the whole program begin first.
    let unknown = |program: &Program| if program.name == LONGEST { f64::MAX } else { f64::MAX / 2.0 };
    let seconds = |program: &Program| before.get(&program.name).copied().unwrap_or_else(|| unknown(program));
    programs.sort_by(|one, other| seconds(one).total_cmp(&seconds(other)));
    let servers = SharedServers::start()?;
    let environment = [servers.environment(), vec![(LIST, skipped_list()?.into())]].concat();
    let taken = run_each(programs, &environment)?;
    std::fs::write(&times, serde_json::to_string_pretty(&taken)?)
        .with_context(|| format!("writing {}", times.display()))
}

/// A message of cargo about a test program.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let name = format!("{} {}", folder.file_name()?.to_string_lossy(), message["target"]["name"].as_str()?);
    Some(Program { name, path, folder })
}

/// Runs them, the last first. Returns the seconds that each took.
fn run_each(programs: Vec<Program>, environment: &[(&str, OsString)]) -> Result<BTreeMap<String, f64>> {
    let cores = thread::available_parallelism()?.get();
    let mut environment = environment.to_vec();
    environment.push(("RUST_TEST_THREADS", (THREADS_PER_CORE * cores).to_string().into()));
    let queue = Mutex::new(programs);
    let (done, results) = channel();
    thread::scope(|scope| {
        for _ in 0..cores {
            let (queue, environment, done) = (&queue, &environment[..], done.clone());
            scope.spawn(move || run_from(queue, environment, &done));
        }
        drop(done);
        let (mut taken, mut failed) = (BTreeMap::new(), Vec::new());
        for (program, seconds, output) in results {
            if report(&program, seconds, output)? {
                taken.insert(program.name, seconds);
            } else {
                failed.push(program.name);
            }
        }
        if !failed.is_empty() {
            bail!("tests failed in: {}", failed.join(", "));
        }
        Ok(taken)
    })
}

/// The result of a program.
type Done = (Program, f64, std::io::Result<Output>);

fn run_from(queue: &Mutex<Vec<Program>>, environment: &[(&str, OsString)], done: &Sender<Done>) {
    while let Some(program) = queue.lock().ok().and_then(|mut queue| queue.pop()) {
        let begun = Instant::now();
        let mut command = Command::new(&program.path);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
        let output = command.envs(environment.iter().map(|(name, value)| (name, value))).output();
        if done.send((program, begun.elapsed().as_secs_f64(), output)).is_err() {
            return;
        }
    }
}

/// Prints how a program ended, and its output if it failed. Returns whether its tests passed.
fn report(program: &Program, seconds: f64, output: std::io::Result<Output>) -> Result<bool> {
    let output = output.with_context(|| format!("starting {}", program.path.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let summary = printed.lines().rev().find(|line| line.starts_with("test result: ")).unwrap_or("no result");
    println!("{:>5.0} s  {}: {summary}", seconds, program.name);
    if !output.status.success() {
        println!("{printed}\n{}\n{}: {}", String::from_utf8_lossy(&output.stderr), program.name, output.status);
    }
    Ok(output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_program_is_found_among_messages() {
        let message = |test: bool| {
            format!(
                r#"{{"manifest_path":"/w/crates/a/Cargo.toml","target":{{"name":"it"}},"profile":{{"test":{test}}},"executable":"/t/it-1"}}"#
            )
        };
        let expected = Program { name: "a it".into(), path: "/t/it-1".into(), folder: "/w/crates/a".into() };
        assert_eq!(program(&message(true)), Some(expected));
        assert_eq!(program(&message(false)), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn failing_program_fails_the_run_at_end() {
        let program = |name: &str, path: &str| Program { name: name.into(), path: path.into(), folder: "/".into() };
        let good = || vec![program("one", "/bin/true"), program("two", "/bin/true")];
        assert_eq!(run_each(good(), &[]).unwrap().len(), 2);
        let bad = [good(), vec![program("three", "/bin/false")]].concat();
        assert!(run_each(bad, &[]).unwrap_err().to_string().ends_with("three"));
        assert!(run_each(vec![program("none", "/nowhere")], &[]).is_err());
    }
}
