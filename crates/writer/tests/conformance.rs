//! The suite of all sinks through a real writer over HTTP: on the memory store in both of its ways, and on SQLite.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

#[path = "../../sink/tests/free_port/mod.rs"]
mod free_port;
#[path = "../../sink/tests/objects/lines.rs"]
mod lines;
mod objects;
#[path = "../../sink/tests/postgres_server/proxy.rs"]
#[allow(dead_code, unreachable_pub, reason = "another test's proxy, of which this one takes what it needs")]
mod proxy;
#[path = "../../sink/tests/objects/stand.rs"]
#[allow(dead_code, reason = "another test's containers, of which this one takes what it needs")]
mod stand;
#[path = "../../sink/tests/swift_server/mod.rs"]
mod swift_server;

use event::EventId;
use sink::conformance::{Case, Subject, check, sequences};
use sink::remote::RemoteStore;
use sink::{MemoryHandle, Sink, SinkConfig};

#[path = "../../sink/tests/through_writer/mod.rs"]
mod through_writer;

use through_writer::Running;

/// Random sequences for each store.
const SEQUENCES: u32 = 16;

/// The memory store behind a writer, fenced or keyed.
struct Memory<const FENCED: bool> {
    handle: MemoryHandle,
    writer: Running,
}

/// Takes back what the store was told.
struct Healed(MemoryHandle);

impl Drop for Healed {
    fn drop(&mut self) {
        self.0.heal();
        self.0.release();
    }
}

impl<const FENCED: bool> Subject for Memory<FENCED> {
    const COMPARES: bool = true;
    type Hindrance = Healed;

    async fn fresh() -> Self {
        let handle = if FENCED { MemoryHandle::fenced() } else { MemoryHandle::keyed() };
        let kind = if FENCED { RemoteStore::Memory } else { RemoteStore::Webhook };
        let writer = Running::start(kind.as_str(), Sink::new(SinkConfig::Memory(handle.clone())));
        Self { handle, writer }
    }

    fn sink(&self) -> Sink {
        self.writer.remote(if FENCED { RemoteStore::Memory } else { RemoteStore::Webhook })
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.handle.events().into_iter().map(|event| (event.id, event.payload)).collect()
    }

    async fn spoil(&self, id: EventId) {
        self.handle.refuse_id(id);
    }

    async fn outage(&self, stage: usize) -> Option<Healed> {
        match stage {
            0 => self.handle.fail_next(usize::MAX),
            1 => self.handle.lose_answers(usize::MAX),
            _ => return None,
        }
        Some(Healed(self.handle.clone()))
    }

    async fn stall(&self) -> Healed {
        self.handle.block();
        Healed(self.handle.clone())
    }
}

#[test]
fn fenced_memory_passes_each_case() {
    Case::ALL.into_iter().for_each(check::<Memory<true>>);
}

#[test]
fn fenced_memory_follows_the_model() {
    sequences::<Memory<true>>(SEQUENCES);
}

#[test]
fn keyed_memory_passes_each_case() {
    Case::ALL.into_iter().for_each(check::<Memory<false>>);
}

#[test]
fn keyed_memory_follows_the_model() {
    sequences::<Memory<false>>(SEQUENCES);
}
