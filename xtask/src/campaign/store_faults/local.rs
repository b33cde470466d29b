//! The stores on a disk of this machine: SQLite and `directory`.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::Result;

use super::disk::{FaultyDisk, PROGRAMS};
use crate::campaign::frame::can_mount;
use crate::campaign::sqlite;
use crate::server::Server;
use crate::store::{CampaignStore, FaultyStore, StoreServer};
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
    if !can_mount(PROGRAMS)? {
        return Ok(None);
    }
    FaultyDisk::mount(workspace::scratch_directory("faulty-disk")?).map(Some)
}

/// How much room a full disk leaves in a round.
fn room(round: u32) -> u64 {
    u64::from(round) % ROOM_STEPS * ROOM_STEP
}

/// A file of SQLite on a separate disk.
pub(super) struct SqliteOnDisk(FaultyDisk);

impl SqliteOnDisk {
    fn file(&self) -> PathBuf {
        self.0.path().join("events.db")
    }
}

impl StoreServer for SqliteOnDisk {
    fn sink(&self) -> String {
        format!("kind = \"sqlite\"\npath = \"{}\"\nmax_backlog = \"1TiB\"\n", self.file().display())
    }

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        sqlite::write_payloads(&self.file(), out.get_ref().try_clone()?)
    }
}

impl CampaignStore for SqliteOnDisk {
    const NAME: &'static str = "SQLite";

    fn start() -> Result<Option<Self>> {
        Ok(start()?.map(Self))
    }
}

impl FaultyStore for SqliteOnDisk {
    const FAULTS: &'static [&'static str] = &[FULL, EIO, READ_ONLY];

    fn begin(&mut self, fault: &str, round: u32, server: &Server) -> Result<()> {
        match fault {
            FULL => self.0.fill(room(round)),
            EIO => {
                let log = self.0.path().join("events.db-wal");
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
        self.0.repair()
    }
}

/// A directory of files on a separate disk.
pub(super) struct DirectoryOnDisk(FaultyDisk);

impl DirectoryOnDisk {
    fn folder(&self) -> PathBuf {
        self.0.path().join("archive")
    }
}

impl StoreServer for DirectoryOnDisk {
    /// Small objects: each fault meets some of them.
    fn sink(&self) -> String {
        let limits = "codec = \"none\"\nmax_age = \"1s\"\nmax_records = 200\nmax_backlog = \"1TiB\"\n";
        format!("kind = \"directory\"\npath = \"{}\"\n{limits}", self.folder().display())
    }

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        for entry in std::fs::read_dir(self.folder())? {
            let file = entry?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(".ndjson") && !name.starts_with('.') {
                std::io::copy(&mut File::open(&file)?, out)?;
            }
        }
        Ok(())
    }
}

impl CampaignStore for DirectoryOnDisk {
    const NAME: &'static str = "directory";

    fn start() -> Result<Option<Self>> {
        Ok(start()?.map(Self))
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
        self.0.repair()
    }
}
