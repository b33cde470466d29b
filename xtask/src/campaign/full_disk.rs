//! A disk that is full repeatedly while clients send: by the journal itself, whose store is locked; by another program; by files instead of
//! bytes. The clients get 507, acknowledged events are stored once, and once there is space the same process accepts events again,
//! without an operator. And small disks that hold the store too, with
//! the process killed when they are full.

mod small;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::frame::{FrameOptions, short_as_root};
use super::kills::clients::Shared;
use super::kills::oracle::Oracle;
use super::kills::{judge, send_while};
use super::memory_disk::MemoryDisk;
use crate::wait::until;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often the disk is filled.
    #[arg(long, default_value_t = 30)]
    cycles: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    #[command(flatten)]
    frame: FrameOptions,
}

/// A small file system in memory: the journal alone fills it within seconds.
const DISK_OPTIONS: &str = "size=160m,nr_inodes=2000";
/// Longer than any wait here, unless it never ends.
const HANGS: Duration = Duration::from_secs(120);
/// After the first answer that the disk is full, so many more must follow.
const ANSWERS: usize = 200;

/// A few cycles with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    short_as_root(&["sqlite3"], || {
        let frame = FrameOptions::short();
        fill_again_and_again(&Options { cycles: 3, connections: 16, frame: frame.clone() })?;
        small::run(frame.begin("a small disk")?, small::DISKS[0])
    })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    for disk in small::DISKS {
        small::run(options.frame.begin("a small disk")?, disk)?;
    }
    fill_again_and_again(options)
}

/// The cycles on one disk, whose store is elsewhere.
fn fill_again_and_again(options: &Options) -> Result<()> {
    let Options { cycles: count, connections, .. } = *options;
    let frame = options.frame.begin(format!("full disk: {count} cycles, {connections} connections"))?;
    let disk = MemoryDisk::mount(frame.folder.join("disk"), DISK_OPTIONS)?;
    let store = frame.folder.join("events.db");
    // The backlog has no limit but the disk: else its types would be rejected with 503 before that is full.
    let config = format!(
        "[journal]\nkeep_free = \"16MiB\"\n\n[types.\"*\"]\nroutes = [\"store\"]\n\n\
         [sinks.store]\nkind = \"sqlite\"\npath = \"{}\"\nmax_backlog = \"1TiB\"\n",
        store.display()
    );
    let mut launch = frame.launch(Some(&config))?;
    launch.data = disk.path.join("data");
    // The process that was started serves to the end.
    let (known, ()) = send_while(&Shared::new(launch.intake, frame.seed), connections, |shared| {
        let server = launch.ready()?;
        shared.server_is_up();
        cycles(count, frame.random(), &disk.path, &store, shared)?;
        Ok((server, ()))
    })?;
    judge(&store, Oracle::new(frame.seed, known), &frame.folder)?;
    drop(disk);
    frame.end()
}

fn cycles(count: u32, mut random: Random, disk: &Path, store: &Path, shared: &Shared) -> Result<()> {
    for cycle in 1..=count {
        let began = Instant::now();
        let taken = shared.taken();
        // The first three are one of each kind.
        let kind = if cycle <= 3 { u64::from(cycle - 1) } else { random.below(3) };
        let filled = match kind {
            0 => Filled::ByItself(Lock::take(store)?),
            1 => Filled::ByOthers(fill_with_bytes(disk)?),
            _ => Filled::WithFiles(fill_with_files(disk)?),
        };
        let before = shared.disk_full();
        until("clients get 507", HANGS, || Ok(shared.disk_full() >= before + ANSWERS))
            .with_context(|| format!("cycle {cycle}, {}", filled.name()))?;
        let full_after = began.elapsed();
        let name = filled.name();
        filled.undo()?;
        let freed = Instant::now();
        let taken_when_freed = shared.taken();
        until("events are accepted again", HANGS, || Ok(shared.taken() > taken_when_freed + ANSWERS))
            .with_context(|| format!("cycle {cycle}, {name}"))?;
        println!(
            "cycle {cycle}, {name}: {} events accepted; full after {:.1} s, accepted again {:.1} s after there was space",
            taken_when_freed - taken,
            full_after.as_secs_f64(),
            freed.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// The cause of the full disk, and how it is undone.
enum Filled {
    /// The store takes nothing, so the journal grows.
    ByItself(Lock),
    /// A large file of another program.
    ByOthers(PathBuf),
    /// Many empty files.
    WithFiles(PathBuf),
}

impl Filled {
    const fn name(&self) -> &'static str {
        match self {
            Self::ByItself(_) => "by itself",
            Self::ByOthers(_) => "by others",
            Self::WithFiles(_) => "out of files",
        }
    }

    fn undo(self) -> Result<()> {
        match self {
            Self::ByItself(lock) => lock.release(),
            Self::ByOthers(file) => Ok(std::fs::remove_file(file)?),
            Self::WithFiles(folder) => Ok(std::fs::remove_dir_all(folder)?),
        }
    }
}

/// A program that keeps a write transaction of the store open.
struct Lock(Child);

impl Lock {
    fn take(store: &Path) -> Result<Self> {
        let mut sqlite = Command::new("sqlite3");
        sqlite.arg(store).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut sqlite = sqlite.spawn().context("sqlite3 is missing: `cargo xtask services` installs it")?;
        let input = sqlite.stdin.as_mut().context("sqlite3 reads commands")?;
        writeln!(input, ".timeout 60000\nbegin immediate;")?;
        Ok(Self(sqlite))
    }

    /// Its input ends, and so does it, and its transaction is undone.
    fn release(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        self.0.wait()?;
        Ok(())
    }
}

/// Writes until nothing more fits.
fn fill_with_bytes(disk: &Path) -> Result<PathBuf> {
    let path = disk.join("others");
    let mut file = File::create(&path)?;
    let block = vec![1; 64 * 1024];
    loop {
        match file.write_all(&block) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(path),
            Err(error) => bail!("filling the disk: {error}"),
        }
    }
}

/// Creates files until there is no room for another.
fn fill_with_files(disk: &Path) -> Result<PathBuf> {
    let folder = disk.join("others");
    std::fs::create_dir(&folder)?;
    for number in 0.. {
        match File::create(folder.join(format!("{number}"))) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => break,
            Err(error) => bail!("filling the disk with files: {error}"),
        }
    }
    Ok(folder)
}
