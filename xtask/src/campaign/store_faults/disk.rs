//! A disk in memory that becomes full, read-only or faulty while a process has files open on it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::statvfs;
use rustix::process::{Pid, Signal, kill_process};

use crate::workspace;

/// The size of a disk that isn't full: more than any campaign stores.
const ROOMY: &str = "size=8g,rw";
/// So long a disk is tried to be changed, and a process to be traced.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(20);

/// Whether this process can mount disks and make system calls fail.
pub(super) fn can_mount() -> Result<bool> {
    let programs = ["mount", "umount", "strace", "sqlite3"];
    if let Some(program) = programs.into_iter().find(|program| !workspace::has_program(program)) {
        workspace::skipped(&format!("it needs {program}"))?;
        return Ok(false);
    }
    if !rustix::process::geteuid().is_root() {
        workspace::skipped("to mount a small disk it must be run by root")?;
        return Ok(false);
    }
    Ok(true)
}

/// A separate disk, until this is dropped.
pub(super) struct FaultyDisk {
    pub(super) path: PathBuf,
    is_read_only: bool,
    tracer: Option<Child>,
}

impl FaultyDisk {
    pub(super) fn mount(path: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&path)?;
        mount(&["-t", "tmpfs", "-o", ROOMY, "tmpfs"], &path)?;
        Ok(Self { path, is_read_only: false, tracer: None })
    }

    /// Lets the owner of another folder write to it.
    pub(super) fn give_to(&self, owner_of: &Path) -> Result<()> {
        let owner = std::fs::metadata(owner_of)?;
        std::os::unix::fs::chown(&self.path, Some(owner.uid()), Some(owner.gid()))?;
        Ok(())
    }

    /// Leaves room for so many more bytes.
    pub(super) fn fill(&self, room: u64) -> Result<()> {
        let begun = Instant::now();
        loop {
            let disk = statvfs(&self.path)?;
            let used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize;
            let size = format!("remount,rw,size={}", used + room);
            // More was written in the meantime.
            match mount(&["-o", &size], &self.path) {
                Err(error) if begun.elapsed() > ATTEMPT_LIMIT => return Err(error),
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
    }

    /// A process that opens a file from now on finds a read-only disk.
    pub(super) fn make_read_only(&mut self) -> Result<()> {
        let path = self.path.clone();
        mount(&["--bind", &path.display().to_string()], &path)?;
        self.is_read_only = true;
        // A file that was opened in this time blocks the remount until it is closed.
        let begun = Instant::now();
        while let Err(error) = mount(&["-o", "remount,bind,ro"], &path) {
            if begun.elapsed() > ATTEMPT_LIMIT {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The process gets EIO from these system calls on this file, beginning with the `first`-th.
    pub(super) fn fail(&mut self, process: u32, file: &Path, calls: &str, first: u32) -> Result<()> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-q", "-p", &process.to_string(), "-P"]).arg(file);
        strace.args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error=EIO:when={first}+")]);
        strace.args(["-o", "/dev/null"]).stdin(Stdio::null()).stderr(Stdio::null());
        self.tracer = Some(strace.spawn().context("starting strace")?);
        wait_until_traced(process)
    }

    /// Ends every fault.
    pub(super) fn mend(&mut self) -> Result<()> {
        if let Some(mut tracer) = self.tracer.take() {
            end(&mut tracer)?;
        }
        if std::mem::take(&mut self.is_read_only) {
            workspace::run(Command::new("umount").arg("--lazy").arg(&self.path))?;
        }
        mount(&["-o", &format!("remount,{ROOMY}")], &self.path)
    }
}

impl Drop for FaultyDisk {
    fn drop(&mut self) {
        let _ = self.mend();
        // Lazily: a process that still has files there, after a failure, keeps them.
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}

fn mount(options: &[&str], path: &Path) -> Result<()> {
    workspace::run(Command::new("mount").args(options).arg(path).stderr(Stdio::null()))
}

/// strace is at work when the kernel names a tracer for the process's threads.
fn wait_until_traced(process: u32) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < ATTEMPT_LIMIT {
        let threads = std::fs::read_dir(format!("/proc/{process}/task"))?;
        let is_traced = |status: String| !status.contains("TracerPid:\t0\n");
        let statuses = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("status")));
        if statuses.flatten().all(is_traced) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    }
    bail!("strace wasn't attached within {ATTEMPT_LIMIT:?}")
}

/// strace detaches from the process when it is asked to end.
fn end(tracer: &mut Child) -> Result<()> {
    let pid = i32::try_from(tracer.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
    kill_process(pid, Signal::TERM)?;
    tracer.wait()?;
    Ok(())
}
