//! The stores on a disk of this machine: SQLite and `directory`.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::disk::{self, FaultyDisk};
use crate::server::Server;
use crate::store::{CampaignStore, FaultyStore};
use crate::workspace;

const FULL: &str = "full disk";
const EIO: &str = "EIO";
const READ_ONLY: &str = "read-only";
/// Room that is left on a full disk, in steps: SQLite meets its end within a batch or in the commit.
const ROOM_STEPS: u64 = 12;
const ROOM_STEP: u64 = 128 * 1024;
/// The writes that succeed before the first that fails, in steps.
const WRITES_STEPS: u32 = 10;
const WRITES_STEP: u32 = 60;

fn start() -> Result<Option<FaultyDisk>> {
    if !disk::can_mount()? {
        return Ok(None);
    }
    let folder = workspace::scratch_directory("faulty-disk")?;
    FaultyDisk::mount(folder).map(Some)
}

/// How much room a full disk leaves in a round.
fn room(round: u32) -> u64 {
    u64::from(round) % ROOM_STEPS * ROOM_STEP
}

/// A file of SQLite on a separate disk.
pub(super) struct SqliteOnDisk(FaultyDisk);

impl SqliteOnDisk {
    fn file(&self) -> PathBuf {
        self.0.path.join("events.db")
    }
}

impl CampaignStore for SqliteOnDisk {
    const NAME: &'static str = "SQLite";

    fn start() -> Result<Option<Self>> {
        Ok(start()?.map(Self))
    }

    fn sink(&self) -> String {
        format!("kind = \"sqlite\"\npath = \"{}\"\nmax_backlog = \"1TiB\"\n", self.file().display())
    }

    fn run(&mut self) -> Result<()> {
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        bail!("an embedded store has no process")
    }

    fn stored(&mut self) -> u64 {
        0
    }

    fn read_payloads(&mut self, _: &Path, read: impl FnOnce(&mut dyn BufRead) -> Result<()>) -> Result<()> {
        let mut sqlite = Command::new("sqlite3");
        sqlite.arg("-readonly").arg(self.file()).arg("select payload from events").stdout(Stdio::piped());
        let mut sqlite = sqlite.spawn().context("sqlite3 reads what is stored: `cargo xtask services` installs it")?;
        let rows = sqlite.stdout.take().context("sqlite3 prints rows")?;
        read(&mut BufReader::new(rows))?;
        if sqlite.wait()?.success() { Ok(()) } else { bail!("sqlite3 couldn't read {}", self.file().display()) }
    }
}

impl FaultyStore for SqliteOnDisk {
    const FAULTS: &'static [&'static str] = &[FULL, EIO, READ_ONLY];

    fn begin(&mut self, fault: &str, round: u32, server: &Server) -> Result<()> {
        match fault {
            FULL => self.0.fill(room(round)),
            EIO => {
                let log = self.0.path.join("events.db-wal");
                self.0.fail(server.process.id(), &log, "pwrite64", 1 + round % WRITES_STEPS * WRITES_STEP)
            }
            _ => {
                // A full disk makes the store open its file again.
                self.0.fill(0)?;
                self.0.make_read_only()
            }
        }
    }

    fn end(&mut self, _: &str) -> Result<()> {
        self.0.mend()
    }
}

/// A directory of files on a separate disk.
pub(super) struct DirectoryOnDisk(FaultyDisk);

impl DirectoryOnDisk {
    fn folder(&self) -> PathBuf {
        self.0.path.join("archive")
    }
}

impl CampaignStore for DirectoryOnDisk {
    const NAME: &'static str = "directory";

    fn start() -> Result<Option<Self>> {
        Ok(start()?.map(Self))
    }

    /// Small objects: each fault meets some of them.
    fn sink(&self) -> String {
        let limits = "codec = \"none\"\nmax_age = \"1s\"\nmax_records = 200\nmax_backlog = \"1TiB\"\n";
        format!("kind = \"directory\"\npath = \"{}\"\n{limits}", self.folder().display())
    }

    fn run(&mut self) -> Result<()> {
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        bail!("a directory has no process")
    }

    fn stored(&mut self) -> u64 {
        0
    }

    fn read_payloads(&mut self, folder: &Path, read: impl FnOnce(&mut dyn BufRead) -> Result<()>) -> Result<()> {
        let path = folder.join("payloads");
        let mut all = BufWriter::new(File::create(&path)?);
        for entry in std::fs::read_dir(self.folder())? {
            let file = entry?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(".ndjson") && !name.starts_with('.') {
                std::io::copy(&mut File::open(&file)?, &mut all)?;
            }
        }
        all.flush()?;
        read(&mut BufReader::new(File::open(path)?))
    }
}

impl FaultyStore for DirectoryOnDisk {
    const FAULTS: &'static [&'static str] = &[FULL, EIO, READ_ONLY];

    fn begin(&mut self, fault: &str, round: u32, server: &Server) -> Result<()> {
        let folder = self.folder();
        match fault {
            FULL => self.0.fill(room(round) / 4),
            EIO => self.0.fail(server.process.id(), &folder, "fsync,fdatasync", 1),
            _ => self.0.make_read_only(),
        }
    }

    fn end(&mut self, _: &str) -> Result<()> {
        self.0.mend()
    }
}
