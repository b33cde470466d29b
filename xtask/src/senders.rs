//! `cargo xtask senders`: programs of others, unchanged, send 1,000 events each while Forebay is killed twice. Each acknowledged event is
//! stored once, and senders that retry lose none.
//!
//! An event is acknowledged when a recording proxy has passed a success to the sender. To add a sender: a function in
//! `xtask/senders`, its pinned package, and a row in its language's file here.

mod account;
mod browser;
mod debian;
mod feed;
mod go;
mod installed;
mod marks;
mod message;
mod node;
mod proxy;
mod python;
mod run;
mod sender;
mod settings;
mod signed;
mod tally;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::chromium;
use crate::workspace::{has_program, scratch_directory, skipped, tested_binary};
use sender::Sender;

/// Options of `cargo xtask senders`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Whose senders.
    language: Language,
    /// Only the senders whose name contains this text.
    #[arg(long)]
    only: Option<String>,
    /// Only install their packages into target/senders.
    #[arg(long)]
    install: bool,
    /// The server; without it the one that the tests were built with.
    #[arg(long)]
    binary: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Packages of PyPI.
    Python,
    /// Packages of npm.
    Node,
    /// Modules of Go: the OpenTelemetry Collector, and a client of Elasticsearch.
    Go,
    /// Syslog daemons of Debian.
    Debian,
    /// Segment's library for web pages, in Chromium.
    Browser,
    /// Webhooks that the SDKs of providers sign. Nothing is killed.
    Signed,
    /// The first calls of programs that no registry has: Filebeat, Logstash, Vector.
    Calls,
}

/// What a language needs, how it is installed, and its senders.
type Parts = (&'static [&'static str], fn() -> Result<()>, &'static [Sender]);

impl Language {
    /// What it needs, how it is installed, and its senders.
    const fn parts(self) -> Parts {
        match self {
            Self::Python => (&["python3"], python::install, python::SENDERS),
            Self::Node => (&["node", "npm"], node::install, node::SENDERS),
            Self::Go => (&["go"], go::install, go::SENDERS),
            Self::Debian => (&["apt-get", "dpkg-deb"], debian::install, debian::SENDERS),
            Self::Browser => (&["node", "npm", chromium::PROGRAM], browser::install, browser::SENDERS),
            Self::Signed => (&["python3", "node", "npm"], signed::install, &[]),
            Self::Calls => (&["python3"], || Ok(()), python::FIRST_CALLS),
        }
    }
}

/// Runs the senders of a language.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (programs, install, senders) = arguments.language.parts();
    if let Some(missing) = programs.iter().find(|program| !has_program(program)) {
        return skipped(&format!("senders: {missing} is missing"));
    }
    install()?;
    if arguments.install {
        return Ok(());
    }
    if arguments.language == Language::Signed {
        return run_signed(arguments);
    }
    let is_wanted = |sender: &&Sender| arguments.only.as_ref().is_none_or(|only| sender.name.contains(only));
    let senders: Vec<&Sender> = senders.iter().filter(is_wanted).collect();
    run_all(&senders, arguments)
}

fn run_signed(arguments: &Arguments) -> Result<()> {
    let binary = tested_binary(arguments.binary.as_deref())?;
    let folder = scratch_directory("senders-run")?;
    signed::run_scripts(&binary, &folder)?;
    std::fs::remove_dir_all(&folder).map_err(Into::into)
}

fn run_all(senders: &[&Sender], arguments: &Arguments) -> Result<()> {
    let binary = tested_binary(arguments.binary.as_deref())?;
    let folder = scratch_directory("senders-run")?;
    let begun = Instant::now();
    let mut failed = Vec::new();
    println!("{}", account::HEADING);
    for sender in senders {
        let faults = match run::run(sender, &binary, &folder) {
            Ok(account) => {
                println!("{}", account.line());
                account.faults()
            }
            Err(error) => {
                println!("{}", sender.name);
                vec![format!("{error:#}")]
            }
        };
        faults.iter().for_each(|fault| println!("    {fault}"));
        if !faults.is_empty() {
            failed.push(sender.name);
        }
    }
    println!("{} senders in {:.0} s", senders.len(), begun.elapsed().as_secs_f64());
    if failed.is_empty() {
        return std::fs::remove_dir_all(&folder).map_err(Into::into);
    }
    bail!("{} of {} failed: {}; the files are in {}", failed.len(), senders.len(), failed.join(", "), folder.display())
}
