//! The simulated disk as the journal sees it.

use std::io;
use std::path::Path;
use std::sync::MutexGuard;

use super::SimulatedDisk;
use super::content::PAGE_BYTES;
use super::faults::{Operation, OperationOutcome, SimulatedError, power_is_off};
use super::namespace::FileId;
use super::state::{State, file_offset};
use crate::disk::{Disk, DiskFile, Space};

impl Disk for SimulatedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.handle(Operation::Create, |state| state.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.1.pass(path);
        self.handle(Operation::Open, |state| state.names.file(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        perform(&mut self.state(), Operation::Rename, |state| state.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        perform(&mut self.state(), Operation::Remove, |state| state.remove(path))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        perform(&mut self.state(), Operation::CreateDirectory, |state| state.names.create_directory(path))
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        perform(&mut self.state(), Operation::RemoveDirectory, |state| state.remove_directory(path))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        perform(&mut self.state(), Operation::List, |state| state.names.list(directory))
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        match state.faults.begin(Operation::SyncDirectory)? {
            OperationOutcome::Proceed | OperationOutcome::Short => state.sync_directory(directory),
            OperationOutcome::Fail(failure) => {
                state.names.fail_sync(directory)?;
                Err(failure.into())
            }
            OperationOutcome::PowerFails => Err(power_is_off()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut state = self.state();
        let file = perform(&mut state, Operation::Lock, |state| state.lock(path))?;
        Ok(Box::new(SimulatedLock { disk: self.clone(), file, cuts: state.cuts() }))
    }

    fn space(&self, _directory: &Path) -> io::Result<Space> {
        let state = self.state();
        let bytes_all = state.capacity.unwrap_or(u64::MAX);
        let used = state.pages_used() * PAGE_BYTES as u64;
        Ok(Space { bytes: bytes_all.saturating_sub(used), bytes_all, files: u64::MAX, files_all: u64::MAX })
    }
}

impl SimulatedDisk {
    /// A handle of the file that `find` finds.
    fn handle(
        &self,
        operation: Operation,
        find: impl FnOnce(&mut State) -> io::Result<FileId>,
    ) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        let file = perform(&mut state, operation, find)?;
        state.open(file);
        Ok(Box::new(SimulatedFile { disk: self.clone(), file, cuts: state.cuts() }))
    }
}

/// Does an operation that the plan lets pass. One in which the power fails is done or not, by chance.
fn perform<T>(state: &mut State, operation: Operation, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
    match state.faults.begin(operation)? {
        OperationOutcome::Proceed | OperationOutcome::Short => act(state),
        OperationOutcome::Fail(failure) => Err(failure.into()),
        OperationOutcome::PowerFails => {
            if state.random.once_in(2) {
                drop(act(state));
            }
            Err(power_is_off())
        }
    }
}

/// A lock, until it is dropped or the power is cut.
struct SimulatedLock {
    disk: SimulatedDisk,
    file: FileId,
    cuts: u64,
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.cuts() == self.cuts {
            state.unlock(self.file);
        }
    }
}

/// An open file, until it is dropped or the power is cut.
struct SimulatedFile {
    disk: SimulatedDisk,
    file: FileId,
    cuts: u64,
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.cuts() == self.cuts {
            state.close(self.file);
        }
    }
}

impl SimulatedFile {
    /// The disk, if this handle is of its present life.
    fn live(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.cuts() == self.cuts {
            Ok(state)
        } else {
            Err(io::Error::other("this file was opened before the simulated power cut: open it again"))
        }
    }
}

impl DiskFile for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        perform(&mut *self.live()?, Operation::ReadAt, |state| match file_offset(offset) {
            Ok(offset) => Ok(state.file(self.file).read(buffer, offset)),
            Err(_) => Ok(0),
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.live()?;
        let verdict = state.faults.begin(Operation::WriteAt)?;
        let written = match verdict {
            OperationOutcome::Proceed => bytes.len(),
            OperationOutcome::Short => bytes.len().min(1 + state.random.index(bytes.len().saturating_sub(1))),
            OperationOutcome::Fail(SimulatedError::NoSpace | SimulatedError::Unsupported) => 0,
            OperationOutcome::Fail(SimulatedError::Io) | OperationOutcome::PowerFails => {
                state.random.index(bytes.len() + 1)
            }
        };
        let written = state.write(self.file, &bytes[..written], offset)?;
        match verdict {
            OperationOutcome::Proceed | OperationOutcome::Short => Ok(written),
            OperationOutcome::Fail(failure) => Err(failure.into()),
            OperationOutcome::PowerFails => Err(power_is_off()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.live()?;
        match state.faults.begin(Operation::Sync)? {
            OperationOutcome::Proceed | OperationOutcome::Short => {
                state.sync(self.file);
                Ok(())
            }
            OperationOutcome::Fail(failure) => {
                state.file_mut(self.file).fail_sync();
                Err(failure.into())
            }
            OperationOutcome::PowerFails => Err(power_is_off()),
        }
    }

    fn length(&self) -> io::Result<u64> {
        perform(&mut *self.live()?, Operation::Length, |state| Ok(state.file(self.file).visible().length() as u64))
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        perform(&mut *self.live()?, Operation::SetLength, |state| state.set_length(self.file, length))
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        perform(&mut *self.live()?, Operation::Allocate, |state| state.allocate(self.file, length))
    }
}
