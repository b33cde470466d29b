//! One sender: a server with an empty store, the sender before a recording proxy, two kills, and the contents of the store afterwards.

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::account::Account;
use super::marks::EVENTS;
use super::proxy::Recorder;
use super::sender::{Sender, Start, Started};
use super::settings::Settings;
use crate::server::{Launch, Process, ProcessRole, Server, tail};
use crate::workspace::empty_directory;

/// A sender that takes longer hangs. The longest pause of one after an error is a minute.
const SENDER_LIMIT: Duration = Duration::from_secs(200);
/// A daemon without progress for so long has lost events.
const PROGRESS_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// Runs a sender in a folder of its name.
pub(super) fn run(sender: &Sender, binary: &Path, folder: &Path) -> Result<Account> {
    let folder = &folder.join(sender.name);
    empty_directory(folder)?;
    let settings = Settings::new(sender.extra);
    let launch = Launch::of_role(ProcessRole::Serve, binary, folder, Some(&settings.text))?;
    let (target, path) = settings.address(sender.place, launch.intake);
    let (kill, kills) = mpsc::channel();
    let (recorder, proxy) = Recorder::open(target, kill)?;
    let start = Start { name: sender.name, url: &format!("http://{proxy}{path}"), folder, binary };
    let started = (sender.start)(&start)?.logged(folder)?;
    let server = launch.ready()?;
    let begun = Instant::now();
    let mut site = Site { launch, server: Some(server), kills, recorder: &recorder };
    let end = site.run(started).with_context(|| format!("the sender logged:\n{}", tail(&folder.join("sender.log"))))?;
    let seconds = begun.elapsed().as_secs_f64();
    site.stop()?;
    Account::read(sender, &recorder.tally(), end, seconds, folder)
}

struct Site<'a> {
    launch: Launch,
    server: Option<Server>,
    kills: Receiver<()>,
    recorder: &'a Recorder,
}

impl Site<'_> {
    /// Runs a sender to its end. Returns why it failed, if it did.
    fn run(&mut self, mut started: Started) -> Result<Option<String>> {
        let mut process = Process::start(&mut started.command)?;
        match started.feed {
            None => self.until_it_ends(&mut process),
            Some(feed) => {
                let feeding = std::thread::spawn(move || feed.run());
                let end = self.until_acknowledged(&mut process)?;
                match feeding.join() {
                    Ok(fed) => fed?,
                    Err(_) => bail!("the feed panicked"),
                }
                process.signal(Signal::TERM)?;
                // A daemon that hangs is killed: all its events are counted.
                let _ = process.wait_success(STOP_LIMIT);
                Ok(end)
            }
        }
    }

    fn until_it_ends(&mut self, process: &mut Process) -> Result<Option<String>> {
        let begun = Instant::now();
        loop {
            self.kill_if_due()?;
            match process.ended()? {
                Some(status) if status.success() => return Ok(None),
                Some(status) => return Ok(Some(format!("the sender ended with {status}"))),
                None if begun.elapsed() > SENDER_LIMIT => return Ok(Some(format!("no end after {SENDER_LIMIT:?}"))),
                None => {}
            }
        }
    }

    fn until_acknowledged(&mut self, process: &mut Process) -> Result<Option<String>> {
        let (mut most, mut since) = (0, Instant::now());
        loop {
            self.kill_if_due()?;
            let acknowledged = self.recorder.tally().acknowledged.len();
            if acknowledged > most {
                (most, since) = (acknowledged, Instant::now());
            }
            if acknowledged == EVENTS {
                return Ok(None);
            }
            if let Some(status) = process.ended()? {
                return Ok(Some(format!("the sender ended with {status}")));
            }
            if since.elapsed() > PROGRESS_LIMIT {
                return Ok(Some(format!("{acknowledged} events acknowledged, and none for {PROGRESS_LIMIT:?}")));
            }
        }
    }

    /// Waits a moment for a due kill. A killed server is started again immediately.
    fn kill_if_due(&mut self) -> Result<()> {
        if self.kills.recv_timeout(POLL).is_ok() {
            self.server.take().context("the server was killed before")?.kill()?;
            self.server = Some(self.launch.ready().context("the start after a kill")?);
        }
        Ok(())
    }

    fn stop(mut self) -> Result<()> {
        while self.kills.try_recv().is_ok() {}
        let server = self.server.take().context("the server was killed before")?;
        // Without events there is no metric of pending ones.
        if !self.recorder.tally().acknowledged.is_empty() {
            server.wait_stored()?;
        }
        server.stop()
    }
}
