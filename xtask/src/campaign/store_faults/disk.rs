//! A disk in memory that becomes full, read-only or faulty while a process has files open on it.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::fs::statvfs;
use rustix::process::Signal;

use crate::campaign::memory_disk::{MemoryDisk, mount, unmount};
use crate::server::Process;
use crate::wait::until;

/// What faults of a disk need in addition to root.
pub(super) const PROGRAMS: &[&str] = &["strace", "sqlite3"];
/// The size of a disk that isn't full: more than any campaign stores.
const ROOMY: &str = "size=8g,rw";
/// How long to retry a change of the disk, or the tracing of a process.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(20);

/// A separate disk, until this is dropped.
pub(super) struct FaultyDisk {
    disk: MemoryDisk,
    is_read_only: bool,
    tracer: Option<Process>,
}

impl FaultyDisk {
    pub(super) fn mount(path: PathBuf) -> Result<Self> {
        Ok(Self { disk: MemoryDisk::mount(path, ROOMY)?, is_read_only: false, tracer: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.disk.path
    }

    /// Lets the owner of another folder write to it.
    pub(super) fn give_to(&self, owner_of: &Path) -> Result<()> {
        let owner = std::fs::metadata(owner_of)?;
        Ok(chown(self.path(), Some(owner.uid()), Some(owner.gid()))?)
    }

    /// Leaves room for so many more bytes.
    pub(super) fn fill(&self, room: u64) -> Result<()> {
        let begun = Instant::now();
        loop {
            let disk = statvfs(self.path())?;
            let used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize;
            let size = format!("remount,rw,size={}", used + room);
            // More was written in the meantime.
            match mount(&["-o", &size], self.path()) {
                Err(error) if begun.elapsed() > ATTEMPT_LIMIT => return Err(error),
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
    }

    /// A process that opens a file from now on finds a read-only disk.
    pub(super) fn make_read_only(&mut self) -> Result<()> {
        mount(&["--bind", &self.path().display().to_string()], self.path())?;
        self.is_read_only = true;
        // A file that was opened in this time blocks the remount until it is closed.
        let path = self.path();
        until("the disk is read-only", ATTEMPT_LIMIT, || Ok(mount(&["-o", "remount,bind,ro"], path).is_ok()))
    }

    /// The process gets EIO from these system calls on this file, beginning with the `first`-th.
    pub(super) fn fail(&mut self, process: u32, file: &Path, calls: &str, first: u32) -> Result<()> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-q", "-p", &process.to_string(), "-P"]).arg(file);
        strace.args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error=EIO:when={first}+")]);
        strace.args(["-o", "/dev/null"]).stdin(Stdio::null()).stderr(Stdio::null());
        self.tracer = Some(Process::start(&mut strace)?);
        // strace is at work when the kernel names a tracer for the process's threads.
        until("strace is attached", ATTEMPT_LIMIT, || {
            let threads = std::fs::read_dir(format!("/proc/{process}/task"))?;
            let is_traced = |status: String| !status.contains("TracerPid:\t0\n");
            let statuses = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("status")));
            Ok(statuses.flatten().all(is_traced))
        })
    }

    /// Ends every fault.
    pub(super) fn repair(&mut self) -> Result<()> {
        if let Some(mut tracer) = self.tracer.take() {
            // strace detaches from the process when it is asked to end.
            tracer.signal(Signal::TERM)?;
            until("strace ends", ATTEMPT_LIMIT, || Ok(tracer.ended()?.is_some()))?;
        }
        if std::mem::take(&mut self.is_read_only) {
            unmount(self.path())?;
        }
        mount(&["-o", &format!("remount,{ROOMY}")], self.path())
    }
}

impl Drop for FaultyDisk {
    fn drop(&mut self) {
        let _ = self.repair();
    }
}
