//! A disk between the journal and the simulated one: it kills the process at an operation, and can leave out a sync.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::disk::{Disk, DiskFile, Space};
use journal::simulated_disk::SimulatedDisk;

/// A process's access to the disk. Its writes stay in the page cache when it is killed.
#[derive(Clone)]
pub(crate) struct FaultInjector {
    disk: SimulatedDisk,
    /// Operations until the process is killed; 0 is dead, `u64::MAX` is never.
    left: Arc<AtomicU64>,
    /// A mutant of the state files: they aren't synced before they get their name.
    unsynced_state: bool,
}

impl FaultInjector {
    pub(crate) fn new(disk: SimulatedDisk, unsynced_state: bool) -> Self {
        Self { disk, left: Arc::new(AtomicU64::new(u64::MAX)), unsynced_state }
    }

    /// Lets the process be killed instead of doing the `operations`-th operation from now, from 1.
    pub(crate) fn kill_at(&self, operations: u64) {
        self.left.store(operations, Ordering::Relaxed);
    }

    /// Takes back a kill that hasn't come.
    pub(crate) fn spare(&self) {
        self.kill_at(u64::MAX);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn act(&self) -> io::Result<()> {
        match self.left.load(Ordering::Relaxed) {
            0 => return Err(killed()),
            u64::MAX => {}
            left => self.left.store(left - 1, Ordering::Relaxed),
        }
        if self.is_dead() { Err(killed()) } else { Ok(()) }
    }

    fn file(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let unsynced = self.unsynced_state && path.extension().is_some_and(|extension| extension == "new");
        Box::new(FaultInjectorFile { fault_injector: self.clone(), file, unsynced })
    }
}

fn killed() -> io::Error {
    io::Error::other("the process was killed")
}

impl Disk for FaultInjector {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.act()?;
        Ok(self.file(path, self.disk.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.act()?;
        Ok(self.file(path, self.disk.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act()?;
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.act()?;
        self.disk.remove(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.act()?;
        self.disk.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.act()?;
        self.disk.remove_directory(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.act()?;
        self.disk.list(directory)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.act()?;
        self.disk.sync_directory(directory)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.act()?;
        self.disk.lock(path)
    }

    fn space(&self, directory: &Path) -> io::Result<Space> {
        self.disk.space(directory)
    }
}

struct FaultInjectorFile {
    fault_injector: FaultInjector,
    file: Box<dyn DiskFile>,
    unsynced: bool,
}

impl DiskFile for FaultInjectorFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.fault_injector.act()?;
        self.file.read_at(buffer, offset)
    }

    /// A process that is killed while it writes has written a part.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let was_dead = self.fault_injector.is_dead();
        let acted = self.fault_injector.act();
        if acted.is_err() && !was_dead {
            self.file.write_at(&bytes[..bytes.len() / 2], offset)?;
        }
        acted?;
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.fault_injector.act()?;
        if self.unsynced { Ok(()) } else { self.file.sync() }
    }

    fn length(&self) -> io::Result<u64> {
        self.fault_injector.act()?;
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.fault_injector.act()?;
        self.file.set_length(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.fault_injector.act()?;
        self.file.allocate(length)
    }
}
