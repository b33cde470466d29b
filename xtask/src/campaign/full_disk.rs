//! A disk that is full, again and again, while clients send: by the journal itself, whose store doesn't take anything;
//! by another program; by files instead of bytes. The clients are told 507, what was acknowledged is stored once, and
//! once there is space the same process takes events again, without anybody's help. And small disks that hold the store too, with
//! the process killed when they are full.

mod small;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::any_seed;
use super::kills::clients::{self, Shared};
use super::kills::judge;
use super::kills::oracle::{Acknowledged, Oracle};
use crate::server::{Launch, Server};
use crate::workspace;
use random::Random;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often the disk is filled.
    #[arg(long, default_value_t = 30)]
    cycles: u32,
    /// Clients, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Repeats a run: the same events, and the same ways to fill the disk.
    #[arg(long)]
    seed: Option<u64>,
    /// A server to test; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// A small file system in memory: the journal alone fills it within seconds.
const DISK_OPTIONS: &str = "size=160m,nr_inodes=2000";
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Nothing here takes this long, unless it never ends.
const HANGS: Duration = Duration::from_secs(120);
/// After it has said that the disk is full, so many more answers must say so.
const ANSWERS: usize = 200;

/// A few cycles with the server that the tests were built with.
pub(crate) fn short() -> Result<()> {
    let missing = ["sqlite3", "mount", "umount"].into_iter().find(|program| !workspace::has_program(program));
    if let Some(program) = missing {
        workspace::skipped(&format!("it needs {program}"))?;
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        workspace::skipped("to mount a small disk it must be run by root")?;
        return Ok(());
    }
    let binary = workspace::tested_binary(None)?;
    cycles_of(&Options { cycles: 3, connections: 16, seed: Some(1), binary: None }, &binary)?;
    small::run(&binary, small::DISKS[0])
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    for disk in small::DISKS {
        small::run(&binary, disk)?;
    }
    cycles_of(options, &binary)
}

/// The cycles on one disk, whose store is elsewhere.
fn cycles_of(options: &Options, binary: &Path) -> Result<()> {
    let seed = options.seed.unwrap_or_else(any_seed);
    println!("full disk: {} cycles, {} connections, --seed {seed}", options.cycles, options.connections);
    let folder = workspace::scratch_directory("full-disk")?;
    let disk = SmallDisk::mount(folder.join("disk"), DISK_OPTIONS)?;
    let store = folder.join("events.db");
    // The backlog has no limit but the disk: else its types would be refused with 503 before that is full.
    let config = format!(
        "[journal]\nkeep_free = \"16MiB\"\n\n[types.\"*\"]\nroutes = [\"store\"]\n\n\
         [sinks.store]\nkind = \"sqlite\"\npath = \"{}\"\nmax_backlog = \"1TiB\"\n",
        store.display()
    );
    let mut launch = Launch::new(binary, &folder, Some(&config))?;
    launch.data = disk.path.join("data");
    let known = send_and_fill(&launch, options, seed, &disk, &store)?;
    judge(&store, Oracle::new(seed, known), &folder)?;
    drop(disk);
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

/// A file system of its own, until this is dropped.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    fn mount(path: PathBuf, options: &str) -> Result<Self> {
        std::fs::create_dir_all(&path)?;
        let mount = ["-t", "tmpfs", "-o", options, "tmpfs"];
        workspace::run(Command::new("mount").args(mount).arg(&path)).context("mounting a small disk needs root")?;
        Ok(Self { path })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: whoever still has files there, after a failure, keeps them.
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}

fn send_and_fill(
    launch: &Launch,
    options: &Options,
    seed: u64,
    disk: &SmallDisk,
    store: &Path,
) -> Result<Vec<Acknowledged>> {
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    let shared = Arc::new(Shared::new(launch.intake, seed));
    let spawned: Result<Vec<_>> = (0..options.connections).map(|client| clients::spawn(&shared, client)).collect();
    let outcome = spawned.and_then(|clients| {
        shared.server_is_up();
        let filled = cycles(options.cycles, seed, disk, store, &shared);
        shared.stop();
        let known: Result<Vec<_>> = clients.into_iter().map(clients::join).collect();
        filled?;
        finish(server)?;
        known
    });
    shared.stop();
    outcome
}

/// It is the process that was started: nothing has ended it, and nothing is pending.
fn finish(server: Server) -> Result<()> {
    server.wait_stored()?;
    server.stop()?;
    Ok(())
}

fn cycles(count: u32, seed: u64, disk: &SmallDisk, store: &Path, shared: &Shared) -> Result<()> {
    let mut random = Random::new(seed);
    for cycle in 1..=count {
        let began = Instant::now();
        let taken = shared.taken();
        // The first three are one of each kind.
        let kind = if cycle <= 3 { u64::from(cycle - 1) } else { random.below(3) };
        let filled = match kind {
            0 => Filled::ByItself(Lock::take(store)?),
            1 => Filled::ByOthers(fill_with_bytes(&disk.path)?),
            _ => Filled::WithFiles(fill_with_files(&disk.path)?),
        };
        let told = shared.disk_full();
        wait(|| shared.disk_full() >= told + ANSWERS)
            .with_context(|| format!("cycle {cycle}, {}: 507", filled.name()))?;
        let full_after = began.elapsed();
        let name = filled.name();
        filled.undo()?;
        let freed = Instant::now();
        let taken_when_freed = shared.taken();
        wait(|| shared.taken() > taken_when_freed + ANSWERS)
            .with_context(|| format!("cycle {cycle}, {name}: taken again"))?;
        println!(
            "cycle {cycle}, {name}: {} events taken; full after {:.1} s, taken again {:.1} s after there was space",
            taken_when_freed - taken,
            full_after.as_secs_f64(),
            freed.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// What has filled the disk, and how it is undone.
enum Filled {
    /// The store takes nothing, so the journal grows.
    ByItself(Lock),
    /// A large file of somebody else.
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

/// Somebody who writes to the store and doesn't come to an end.
struct Lock(Child);

impl Lock {
    fn take(store: &Path) -> Result<Self> {
        let mut sqlite = Command::new("sqlite3");
        sqlite.arg(store).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut sqlite = sqlite.spawn().context("sqlite3 locks the store: `cargo xtask services` installs it")?;
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

/// Makes files until there can be no more.
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

fn wait(holds: impl Fn() -> bool) -> Result<()> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > HANGS {
            bail!("it didn't come to that within {HANGS:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
