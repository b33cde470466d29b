//! The steps of `cargo xtask test` and `cargo xtask ci`: one after the other, or several at a time in separate processes.

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::workspace::{begin_step, skipped_list};

/// One named part of a longer run.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
    /// Whether other steps may run at the same time: it measures no times, and shares no files or servers with them.
    is_parallel: bool,
}

impl Step {
    /// A step that needs the machine for itself.
    pub(crate) const fn alone(name: &'static str, run: fn() -> Result<()>) -> Self {
        Self { name, run, is_parallel: false }
    }

    /// A step that may run at the same time as others.
    pub(crate) const fn parallel(name: &'static str, run: fn() -> Result<()>) -> Self {
        Self { name, run, is_parallel: true }
    }

    fn run(&self) -> Result<()> {
        begin_step(self.name);
        (self.run)()
    }

    /// Runs it in a separate process, which prints nothing to the terminal.
    fn run_apart(&self) -> Result<(f64, Output)> {
        let begun = Instant::now();
        let own = std::env::current_exe().context("finding this program")?;
        let output = Command::new(own).args(["step", self.name]).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("starting the step {}", self.name))?;
        Ok((begun.elapsed().as_secs_f64(), output))
    }
}

/// Runs the step of this name, as the process that `run_apart` starts.
pub(crate) fn run_one(steps: &[Step], name: &str) -> Result<()> {
    steps.iter().find(|step| step.name == name).with_context(|| format!("{name} is not a step"))?.run()
}

/// Runs the steps, and ends with the first failure. The closing lines name each with its time, and the skipped tests.
pub(crate) fn run_all(steps: &[Step]) -> Result<()> {
    let (begun, list) = (Instant::now(), skipped_list()?);
    if list.exists() {
        std::fs::remove_file(&list).with_context(|| format!("removing {}", list.display()))?;
    }
    let mut closing = Vec::new();
    for group in steps.chunk_by(|one, next| one.is_parallel && next.is_parallel) {
        match group {
            [step] => {
                println!("── {}", step.name);
                let step_begun = Instant::now();
                step.run().with_context(|| format!("{} (after {:.0} s)", step.name, begun.elapsed().as_secs_f64()))?;
                closing.push((step.name, step_begun.elapsed().as_secs_f64()));
            }
            several => closing.extend(run_several(several)?),
        }
    }
    println!("── all passed in {:.0} s", begun.elapsed().as_secs_f64());
    closing.iter().for_each(|(name, seconds)| println!("   ok {seconds:>5.0} s  {name}"));
    let skipped = std::fs::read_to_string(&list).unwrap_or_default();
    let skipped: BTreeSet<&str> = skipped.lines().collect();
    println!("── skipped: {}", skipped.len());
    skipped.iter().for_each(|line| println!("   {line}"));
    Ok(())
}

/// Runs as many steps at a time as there are cores, and prints the output of each when it has ended.
fn run_several(steps: &[Step]) -> Result<Vec<(&'static str, f64)>> {
    let (queue, ended) = (Mutex::new(steps.iter()), Mutex::new(Vec::new()));
    let worker = || -> Result<()> {
        loop {
            let Some(step) = queue.lock().unwrap_or_else(PoisonError::into_inner).next() else { return Ok(()) };
            let (seconds, output) = step.run_apart()?;
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            println!("── {}\n{}{errors}", step.name, printed);
            if !output.status.success() {
                bail!("{} failed: {}", step.name, output.status);
            }
            ended.push((step.name, seconds));
        }
    };
    let cores = thread::available_parallelism()?.get();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(_) => bail!("a step ended with a panic"),
        })
    })?;
    Ok(ended.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_is_found_by_its_name() {
        let steps = [Step::alone("good", || Ok(())), Step::parallel("bad", || bail!("as planned"))];
        assert!(run_one(&steps, "good").is_ok());
        assert_eq!(run_one(&steps, "bad").unwrap_err().to_string(), "as planned");
        assert!(run_one(&steps, "other").is_err());
    }
}
