//! A disk in memory that fails as real ones do. A seed decides everything that is left to chance: the same seed and the
//! same operations give the same disk, byte for byte.
//!
//! The model:
//!
//! * A process reads what it wrote. A power cut always keeps a file's content and length at its last sync, under the
//!   names that its directory had at *its* last sync. A new directory is a new name in its parent directory, which
//!   needs a sync too.
//! * Of the writes since then any 512-byte sectors survive, in any order, one in 64 of them torn: its first bytes new,
//!   the others old. A sector that survives has the content that it had right after its write, which includes older
//!   writes to the same sector. The length is any one that the file had since; missing bytes read as zeros.
//! * Of the changes of names any subset survives whose members are possible: each needs those before it at the same
//!   names. A rename, including one that replaces a file, is there as a whole or not at all; the sync of the directory
//!   of its new name makes it durable. A sync includes the changes that its changes build on.
//! * A failed sync leaves the writes visible, and a later sync succeeds without making them durable, as Linux does: a
//!   program that trusts it loses data at the next power cut. A failed sync of a directory is similar: its changes
//!   become durable only if later ones at the same names do.
//! * A power cut ends all handles and locks. The name of a locked file is as unsure as any other.
//! * A file takes space by pages of 4 KiB that were written (with zeros too), until it has neither name nor
//!   handle.
//!
//! Only files can be renamed, and paths have no `..`. Relative paths begin at the root.

mod content;
mod crash;
mod disk_impl;
mod faults;
mod file;
mod hang;
mod inspect;
mod namespace;
mod state;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crash::CutStyle;
pub use faults::{Operation, SimulatedError};
pub use hang::HangingFile;
pub use random::Random;

use hang::Hang;
use state::State;

/// The simulated disk. Clones are the same disk; [`SimulatedDisk::fork`] makes another one.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(Arc<Mutex<State>>, Arc<Hang>);

impl SimulatedDisk {
    /// An empty disk whose chances `seed` decides.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State::new(seed))), Arc::default())
    }

    /// Another disk in the state that this one has now, with all undurable changes, its faults, counts and switches,
    /// but without its handles, locks and hanging file. From here on `seed` decides its chances. It is cheap: the two share unchanged
    /// pages.
    #[must_use]
    pub fn fork(&self, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(self.state().fork(seed))), Arc::default())
    }

    /// Cuts the power and restores it: some of the undurable changes survive, handles are dead, locks are free. A
    /// planned failure of the power is over; failures planned for calls, the capacity and the switches stay. Returns
    /// how the survivors were chosen.
    pub fn power_cut(&self) -> CutStyle {
        let style = CutStyle::any(&mut self.state().random);
        self.power_cut_in_style(style);
        style
    }

    /// As [`SimulatedDisk::power_cut`], but with survivors chosen in this style.
    pub fn power_cut_in_style(&self, style: CutStyle) {
        self.state().power_cut(style);
    }

    /// Lets the power fail in the `operations`-th operation from now, from 1. That operation may be done, in
    /// part or not at all; it and all later ones are errors until [`SimulatedDisk::power_cut`].
    pub fn fail_power_at(&self, operations: u64) {
        self.state().faults.fail_power_at(operations);
    }

    /// Whether the power has failed as [`SimulatedDisk::fail_power_at`] planned it.
    #[must_use]
    pub fn power_is_off(&self) -> bool {
        self.state().faults.power_is_off()
    }

    /// Lets the `call`-th call of this operation from now fail, from 1, once.
    pub fn fail_call(&self, operation: Operation, call: u64, failure: SimulatedError) {
        self.state().faults.fail_call(operation, call, failure);
    }

    /// Lets the `call`-th call of this operation from now fail, from 1, and all later ones.
    pub fn fail_from_call(&self, operation: Operation, call: u64, failure: SimulatedError) {
        self.state().faults.fail_from_call(operation, call, failure);
    }

    /// Lets the `call`-th write from now, from 1, write less than it was given, but at least a byte.
    pub fn shorten_write(&self, call: u64) {
        self.state().faults.shorten_write(call);
    }

    /// Drops all planned failures; power that has failed stays off.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Lets calls that open this file wait until the returned value is dropped. Only one file hangs at a time.
    #[must_use]
    pub fn hang(&self, path: impl AsRef<Path>) -> HangingFile {
        HangingFile::new(&self.1, path.as_ref())
    }

    /// Limits the bytes that files may take, in whole pages of 4 KiB; `None` is no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// The bytes that files take.
    #[must_use]
    pub fn bytes_used(&self) -> u64 {
        self.state().pages_used() * content::PAGE_BYTES as u64
    }

    /// Makes every sync of a file succeed without effect: a campaign must notice.
    pub fn ignore_sync(&self, ignore: bool) {
        self.state().ignore_sync = ignore;
    }

    /// Makes every sync of a directory succeed without effect: a campaign must notice.
    pub fn ignore_sync_directory(&self, ignore: bool) {
        self.state().ignore_sync_directory = ignore;
    }

    /// Operations so far, of all kinds; those rejected because the power was off or the handle dead don't count.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().faults.total()
    }

    /// Calls of one operation so far.
    #[must_use]
    pub fn calls(&self, operation: Operation) -> u64 {
        self.state().faults.calls(operation)
    }

    /// The state. A test that panicked while it held the lock has failed already; others may continue.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
