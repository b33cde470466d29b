//! What the campaign knows about a sender.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::feed::Feed;
use super::settings::{Extra, Place};

/// A sender of others, which isn't changed for Forebay.
#[derive(Clone, Copy)]
pub(super) struct Sender {
    /// Its package and what is special about it.
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) extra: Extra,
    /// Events of the 1,000 that must be stored.
    pub(super) least: usize,
    /// Creates its process.
    pub(super) start: fn(&Start<'_>) -> Result<Started>,
}

/// All events of a sender that retries are stored.
pub(super) const ALL: usize = super::marks::EVENTS;
/// A sender that doesn't retry loses the events that it sends while the server is down.
pub(super) const MOST: usize = 900;

/// What a sender is started with.
pub(super) struct Start<'a> {
    pub(super) name: &'static str,
    /// The URL of the intake, without a slash at its end.
    pub(super) url: &'a str,
    /// For its files; the data of Forebay is in it too.
    pub(super) folder: &'a Path,
    /// The server.
    pub(super) binary: &'a Path,
}

/// A command, and how it gets its events.
pub(super) struct Started {
    pub(super) command: Command,
    /// A program that runs until it is stopped gets its events from here. Without it the program has its own and ends.
    pub(super) feed: Option<Feed>,
}

impl Start<'_> {
    /// A program of `xtask/senders` that ends when it has sent its events.
    pub(super) fn program(&self, mut command: Command) -> Started {
        command.arg(self.name).env("FOREBAY_URL", self.url).env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        Started { command, feed: None }
    }

    /// The data directory of the server, which doesn't run yet.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Writes a file into the sender's folder.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}

impl Started {
    /// Has the output go to a file of the folder.
    pub(super) fn logged(mut self, folder: &Path) -> Result<Self> {
        let path = folder.join("sender.log");
        let log = std::fs::File::create(&path).with_context(|| format!("writing {}", path.display()))?;
        self.command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(self)
    }
}
