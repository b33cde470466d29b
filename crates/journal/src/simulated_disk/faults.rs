//! The faults that a test has planned, and the count of operations by which it planned them.

use std::io;

use rustix::io::Errno;

/// The kinds of disk operations, each of which can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `Disk::create`.
    Create,
    /// `Disk::open`.
    Open,
    /// `Disk::rename`.
    Rename,
    /// `Disk::remove`.
    Remove,
    /// `Disk::create_directory`.
    CreateDirectory,
    /// `Disk::remove_directory`.
    RemoveDirectory,
    /// `Disk::list`.
    List,
    /// `Disk::sync_directory`.
    SyncDirectory,
    /// `Disk::lock`.
    Lock,
    /// `DiskFile::read_at`.
    ReadAt,
    /// `DiskFile::write_at`.
    WriteAt,
    /// `DiskFile::sync`.
    Sync,
    /// `DiskFile::length`.
    Length,
    /// `DiskFile::set_length`.
    SetLength,
    /// `DiskFile::allocate`.
    Allocate,
}

impl Operation {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::Create,
        Self::Open,
        Self::Rename,
        Self::Remove,
        Self::CreateDirectory,
        Self::RemoveDirectory,
        Self::List,
        Self::SyncDirectory,
        Self::Lock,
        Self::ReadAt,
        Self::WriteAt,
        Self::Sync,
        Self::Length,
        Self::SetLength,
        Self::Allocate,
    ];
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedError {
    /// `EIO`. A write may still have been done in part.
    Io,
    /// `ENOSPC`.
    NoSpace,
    /// `EOPNOTSUPP`.
    Unsupported,
}

impl From<SimulatedError> for io::Error {
    fn from(failure: SimulatedError) -> Self {
        match failure {
            SimulatedError::Io => Errno::IO.into(),
            SimulatedError::NoSpace => Errno::NOSPC.into(),
            SimulatedError::Unsupported => Errno::OPNOTSUPP.into(),
        }
    }
}

/// The effect on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationOutcome {
    Proceed,
    /// A write is done in part, and says so.
    Short,
    Fail(SimulatedError),
    /// The power fails in the middle of it.
    PowerFails,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Only(u64),
    From(u64),
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    operation: Operation,
    calls: Calls,
    verdict: OperationOutcome,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Power {
    #[default]
    On,
    /// It fails in the operation with this number, counted over all kinds.
    FailsAt(u64),
    Off,
}

/// The plans and the counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    power: Power,
    plans: Vec<Plan>,
    total: u64,
    calls: [u64; Operation::ALL.len()],
}

impl Faults {
    /// Counts an operation and says what happens to it.
    ///
    /// # Errors
    /// The power is off.
    pub(super) fn begin(&mut self, operation: Operation) -> io::Result<OperationOutcome> {
        if self.power == Power::Off {
            return Err(power_is_off());
        }
        self.total += 1;
        self.calls[operation as usize] += 1;
        if self.power == Power::FailsAt(self.total) {
            self.power = Power::Off;
            return Ok(OperationOutcome::PowerFails);
        }
        let call = self.calls[operation as usize];
        let hit = |plan: &&Plan| {
            plan.operation == operation
                && match plan.calls {
                    Calls::Only(planned) => planned == call,
                    Calls::From(first) => first <= call,
                }
        };
        Ok(self.plans.iter().find(hit).map_or(OperationOutcome::Proceed, |plan| plan.verdict))
    }

    pub(super) fn fail_power_at(&mut self, operations: u64) {
        self.power = Power::FailsAt(self.total + operations);
    }

    pub(super) fn restore_power(&mut self) {
        self.power = Power::On;
    }

    pub(super) const fn power_is_off(&self) -> bool {
        matches!(self.power, Power::Off)
    }

    pub(super) fn fail_call(&mut self, operation: Operation, call: u64, failure: SimulatedError) {
        let calls = Calls::Only(self.calls(operation) + call);
        self.plans.push(Plan { operation, calls, verdict: OperationOutcome::Fail(failure) });
    }

    pub(super) fn fail_from_call(&mut self, operation: Operation, call: u64, failure: SimulatedError) {
        let calls = Calls::From(self.calls(operation) + call);
        self.plans.push(Plan { operation, calls, verdict: OperationOutcome::Fail(failure) });
    }

    pub(super) fn shorten_write(&mut self, call: u64) {
        let operation = Operation::WriteAt;
        let calls = Calls::Only(self.calls(operation) + call);
        self.plans.push(Plan { operation, calls, verdict: OperationOutcome::Short });
    }

    pub(super) fn clear(&mut self) {
        self.plans.clear();
        if let Power::FailsAt(_) = self.power {
            self.power = Power::On;
        }
    }

    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    pub(super) const fn calls(&self, operation: Operation) -> u64 {
        self.calls[operation as usize]
    }
}

pub(super) fn power_is_off() -> io::Error {
    io::Error::other("the simulated power is off: call power_cut")
}
