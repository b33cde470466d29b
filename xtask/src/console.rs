//! `cargo xtask console`: scripts drive the console in Debian's Chromium, against a running system of gateways, writers and stores.
//!
//! A script of `xtask/console` decides everything: it orders processes from this program, clicks, reads visible text and reports figures.
//! To add a check, add it to the script of its part.

mod clock;
mod figure;
mod host;
mod order;
pub(crate) mod page;
mod script;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::chromium;
use crate::workspace::{dist_binary, existing, has_program, scratch_directory, skipped, tested_binary};
use host::Host;
use script::Script;

/// Options of `cargo xtask console`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The part.
    part: Part,
    /// The server; without it the one that the tests were built with, or for `speed` one of the profile `dist`.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Events of `stories`.
    #[arg(long, default_value_t = 1_000_000)]
    events: u32,
    /// The server of an older release, which `fleet` runs as one of the writers.
    #[arg(long, value_name = "PATH")]
    older: Option<PathBuf>,
    /// A folder for a picture of each page, which `pages` writes.
    #[arg(long)]
    pictures: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Ten questions of an operator, each answered after at most three clicks.
    Questions,
    /// Every page and action; an outage; a stopped lane; 5,000 dead letters.
    Actions,
    /// Stories of 200 events after an outage and an hour that the clock was moved, compared with PostgreSQL.
    Stories,
    /// axe on each page, light and dark, wide and narrow; all of it by keyboard.
    Pages,
    /// Hostile payloads, names, hosts and sessions.
    Hostile,
    /// Size, first paint, clicks, streams that are cut, rate and memory.
    Speed,
    /// One published port for all instances; one of them killed, one older.
    Fleet,
    /// Opens every page once: a part of `cargo xtask ci`.
    Smoke,
}

/// The programs that every part needs.
const PROGRAMS: [&str; 3] = ["node", "npm", chromium::PROGRAM];
/// A part that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(10);

/// Runs a part. Fails if a figure misses its bar.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(missing) = PROGRAMS.iter().find(|program| !has_program(program)) {
        return skipped(&format!("console: {missing} is missing"));
    }
    let folder = scratch_directory("console")?;
    let binary = match arguments.part {
        Part::Speed => dist_binary(arguments.binary.as_deref())?,
        _ => tested_binary(arguments.binary.as_deref())?,
    };
    let part = arguments.part.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let pictures = arguments.pictures.as_deref().map(std::path::absolute).transpose()?.unwrap_or_default();
    let older = arguments.older.as_deref().map(existing).transpose()?.unwrap_or_default();
    let inputs = [
        ("EVENTS", arguments.events.to_string().into()),
        ("PICTURES", pictures.into_os_string()),
        ("OLDER", older.into_os_string()),
    ];
    let script = Script { part: &part, binary: &binary, folder: &folder, inputs: &inputs, limit: LIMIT };
    let mut host = Host::new(&binary, &folder);
    let done = script.run(&mut host);
    drop(host);
    done?;
    std::fs::remove_dir_all(&folder).map_err(Into::into)
}

/// The part of `cargo xtask ci`, with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    run(&Arguments { part: Part::Smoke, binary: None, events: 0, older: None, pictures: None })
}
