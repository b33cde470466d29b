//! The conformance suite on the memory store, fenced and keyed, also through real writers.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use event::EventId;
use sink::Sink;
use sink_testing::MemoryHandle;
use sink_testing::conformance::{SinkHarness, check, sequences};

use sink_testing::through_writer::{Offers, Through};

/// Random sequences for each sink.
const SEQUENCES: u32 = 48;
/// The same through writers, which takes longer.
const SEQUENCES_THROUGH: u32 = 16;

/// The memory store, fenced or keyed.
struct Memory<const FENCED: bool>(MemoryHandle);

/// Ends the faults of the store.
struct Healed(MemoryHandle);

impl Drop for Healed {
    fn drop(&mut self) {
        self.0.heal();
        self.0.release();
    }
}

impl<const FENCED: bool> SinkHarness for Memory<FENCED> {
    const COMPARES: bool = true;
    type Fault = Healed;

    async fn fresh() -> Self {
        Self(if FENCED { MemoryHandle::fenced() } else { MemoryHandle::keyed() })
    }

    fn sink(&self) -> Sink {
        Sink::new(self.0.clone())
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.0.events().into_iter().map(|event| (event.id, event.payload)).collect()
    }

    async fn poison(&self, id: EventId) {
        self.0.refuse_id(id);
    }

    async fn outage(&self, stage: usize) -> Option<Healed> {
        match stage {
            0 => self.0.fail_next(usize::MAX),
            1 => self.0.lose_answers(usize::MAX),
            _ => return None,
        }
        Some(Healed(self.0.clone()))
    }

    async fn stall(&self) -> Healed {
        self.0.block();
        Healed(self.0.clone())
    }
}

impl<const FENCED: bool> Offers for Memory<FENCED> {
    const STORE: &'static str = "memory";
    const READS: bool = true;
}

#[test]
fn memory_passes_each_case_through_writers() {
    check::<Through<Memory<true>>>();
    sequences::<Through<Memory<true>>>(SEQUENCES_THROUGH);
    check::<Through<Memory<false>>>();
    sequences::<Through<Memory<false>>>(SEQUENCES_THROUGH);
}

#[test]
fn fenced_memory_passes_each_case() {
    check::<Memory<true>>();
}

#[test]
fn fenced_memory_follows_the_model() {
    sequences::<Memory<true>>(SEQUENCES);
}

#[test]
fn keyed_memory_passes_each_case() {
    check::<Memory<false>>();
}

#[test]
fn keyed_memory_follows_the_model() {
    sequences::<Memory<false>>(SEQUENCES);
}
