//! `forebay top`: rates, latencies and backlogs of a process, live in a terminal.

mod screen;
mod terminal;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use config::Role;
use settings::Environment;
use text::escape_control;

use crate::admin_client::AdminClient;
use crate::errors::cannot;
use crate::flags::TopFlags;
use crate::output::print;
use crate::table::terminal_width;
use crate::{interrupt, output};
use admin_api::overview::OverviewJson;
use admin_api::paths::{API_LIVE, API_OVERVIEW};
use screen::screen;
use terminal::Terminal;

/// For one overview.
const LIMIT: Duration = Duration::from_secs(10);
/// Between two attempts to ask a process that doesn't answer.
const RETRY: Duration = Duration::from_secs(1);

/// Shows a process until the user ends it, or once if the output is no terminal.
///
/// # Errors
/// The process can't be asked, or rejects the request.
pub(crate) fn run(flags: &TopFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let process = AdminClient::find(&flags.at, flags.role.or(role).unwrap_or(Role::Serve), environment)?;
    if flags.output.is_json() {
        return lines(&process);
    }
    if !io::stdout().is_terminal() {
        let overview: OverviewJson =
            process.ask("GET", API_OVERVIEW, &[], Some(LIMIT))?.map_err(|problem| process.refused(problem))?;
        let text = screen(&overview, terminal_width(), None);
        print(|output| output.write_all(text.as_bytes()))?;
        return Ok(0);
    }
    live(&process)
}

/// Prints each overview as it comes.
fn lines(process: &AdminClient) -> anyhow::Result<u8> {
    let mut written = Ok(());
    let mut take = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        if !line.starts_with("{\"beat\"") {
            written = writeln!(output::Output::lock(), "{}", escape_control(&line));
        }
        written.is_ok()
    };
    let ended = process.lines(API_LIVE, &AtomicBool::new(false), &mut take)?;
    written.map_err(cannot("write to the standard output"))?;
    ended.map_err(|problem| process.refused(problem))?;
    Err(anyhow!("the process at {} has ended the stream, because it stops: repeat the command", process.address()))
}

/// Redraws the screen with each overview. A process that is gone may come back: its last overview stays, and the screen says since when.
fn live(process: &AdminClient) -> anyhow::Result<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::sets(stop.clone()).map_err(cannot("wait for signals"))?;
    // Asked before the terminal is changed: a mistake in the command is printed as usual.
    let first: OverviewJson =
        process.ask("GET", API_OVERVIEW, &[], Some(LIMIT))?.map_err(|problem| process.refused(problem))?;
    let terminal = Terminal::take(&stop).map_err(cannot("use the terminal"))?;
    let mut last = first;
    terminal.draw(&last, None)?;
    while !stop.load(Ordering::Relaxed) {
        let mut drawn = Ok(());
        let mut take = |line: &[u8]| {
            if let Ok(overview) = serde_json::from_slice(line) {
                last = overview;
                drawn = terminal.draw(&last, None);
            }
            drawn.is_ok()
        };
        let ended = process.lines(API_LIVE, &stop, &mut take);
        drawn?;
        let why = match ended {
            Ok(Ok(())) => "the process has ended the stream".to_owned(),
            Ok(Err(problem)) => problem.detail,
            Err(error) => error.to_string(),
        };
        if !stop.load(Ordering::Relaxed) {
            terminal.draw(&last, Some(&why))?;
            std::thread::sleep(RETRY);
        }
    }
    drop(terminal);
    Ok(0)
}
