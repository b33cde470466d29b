//! The suite that every sink must pass, for each codec.

use std::marker::PhantomData;

use event::EventId;
use objects::{Codec, ObjectFormat};
use sink::Sink;
use testkit::proxy::FaultGuard;
use testkit::swift::SwiftServer;

use super::{ContainerFixture, MakeSink};
use crate::conformance::SinkHarness;
use crate::through_writer::Offers;

/// The number of positions at which the proxy cuts the answers, and the bytes between them.
const CUTS: usize = 24;
const CUT_STEP: usize = 61;

/// A store in containers of the server.
pub trait ContainerStore: 'static {
    /// The name of its kind.
    const KIND: &'static str;
    /// Creates a sink.
    const MAKE_SINK: MakeSink;
}

/// A container of such a store, with objects of the codec of this index.
pub struct TestedContainer<S, const CODEC: usize> {
    fixture: ContainerFixture<'static>,
    store: PhantomData<S>,
}

impl<S: ContainerStore, const CODEC: usize> SinkHarness for TestedContainer<S, CODEC> {
    const COMPARES: bool = false;
    const RECOGNISES_IDS: bool = false;
    const REJECTS: bool = false;
    type Fault = FaultGuard;

    async fn fresh() -> Self {
        let server = SwiftServer::shared().expect("asked before");
        let fixture = ContainerFixture::with(server, S::MAKE_SINK, Codec::ALL[CODEC]);
        Self { fixture, store: PhantomData }
    }

    fn sink(&self) -> Sink {
        self.fixture.sink()
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.fixture.events()
    }

    async fn poison(&self, _: EventId) {
        unreachable!("a store of objects refuses nothing")
    }

    async fn outage(&self, stage: usize) -> Option<FaultGuard> {
        (stage < CUTS).then(|| self.fixture.proxy.cut_after(stage * CUT_STEP))
    }

    async fn stall(&self) -> FaultGuard {
        self.fixture.proxy.freeze_after(0)
    }
}

impl<S: ContainerStore, const CODEC: usize> Offers for TestedContainer<S, CODEC> {
    const STORE: &'static str = S::KIND;
    const READS: bool = false;

    fn rules(&self) -> Option<ObjectFormat> {
        Some(self.fixture.rules.clone())
    }
}
