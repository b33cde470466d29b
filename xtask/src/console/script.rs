//! A script of `xtask/console`: a process of Node that orders, clicks and reports.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::figure::Figure;
use super::host::Host;
use super::order::{Answer, Line, MARK};
use crate::workspace::{copy, root, target_directory};
use crate::{chromium, npm, report};

/// A script with its inputs.
pub(super) struct Script<'a> {
    /// Its name without its extension.
    pub(super) part: &'a str,
    /// The server, for its commands.
    pub(super) binary: &'a Path,
    /// A folder for its files.
    pub(super) folder: &'a Path,
    /// Its other inputs, as variables of its environment.
    pub(super) inputs: &'a [(&'a str, OsString)],
    /// How long it may take.
    pub(super) limit: Duration,
}

impl Script<'_> {
    /// Runs it to its end, and prints the table. Fails if the script fails, reports nothing, or a figure misses its bar.
    pub(super) fn run(&self, host: &mut Host) -> Result<()> {
        let mut node = self.command()?;
        let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("starting node")?;
        let figures = self.serve(&mut child, host).inspect_err(|_| {
            // It may have ended before.
            let _ = child.kill();
        });
        let status = child.wait().context("waiting for node")?;
        let rows: Vec<_> = figures?.iter().map(Figure::row).collect();
        let judged = report::print(&rows);
        if rows.is_empty() || !status.success() {
            bail!("the script {} failed: {status}", self.part);
        }
        judged
    }

    /// The scripts are copied to their packages: Node looks for those next to a script.
    fn command(&self) -> Result<Command> {
        let sources = root()?.join("xtask").join("console");
        let packages = target_directory()?.join("tools").join("console");
        npm::ensure_installed(&packages, &sources.join("package.json"))?;
        for entry in std::fs::read_dir(&sources).with_context(|| format!("reading {}", sources.display()))? {
            let path = entry?.path();
            if let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|kind| kind == "mjs")) {
                copy(&path, &packages.join(name))?;
            }
        }
        let mut node = Command::new("node");
        node.arg(packages.join(self.part).with_extension("mjs"));
        node.env("CHROMIUM", chromium::path()?).env("BINARY", self.binary).env("FOLDER", self.folder);
        node.envs(self.inputs.iter().map(|(name, value)| (name, value)));
        Ok(node)
    }

    /// Answers its orders until it ends. Returns its figures.
    fn serve(&self, child: &mut Child, host: &mut Host) -> Result<Vec<Figure>> {
        let mut answers = child.stdin.take().context("node has a standard input")?;
        let lines = lines_of(child)?;
        let (begun, mut figures) = (Instant::now(), Vec::new());
        loop {
            let line = match lines.recv_timeout(self.limit.saturating_sub(begun.elapsed())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Ok(figures),
                Err(RecvTimeoutError::Timeout) => {
                    bail!("the script {} has not ended after {:?}", self.part, self.limit)
                }
            };
            let Some(json) = line.strip_prefix(MARK) else {
                println!("{line}");
                continue;
            };
            match serde_json::from_str(json).with_context(|| format!("the script's line {json}"))? {
                Line::Figure(figure) => figures.push(figure),
                Line::Order(order) => answer(&mut answers, &host.obey(order))?,
            }
        }
    }
}

fn lines_of(child: &mut Child) -> Result<Receiver<String>> {
    let stdout = child.stdout.take().context("node has a standard output")?;
    let (line, lines) = channel();
    thread::spawn(move || {
        // The receiver is gone after the limit.
        let _ = BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|text| line.send(text));
    });
    Ok(lines)
}

fn answer(answers: &mut ChildStdin, answer: &Answer) -> Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    answers.write_all(line.as_bytes()).context("answering the script")
}
