//! The suite that every sink must pass.

use event::EventId;
use sink::Sink;
use sink_testing::conformance::{LARGE, SinkHarness, check, sequences};

use crate::fixture::{Fixture, server};
use sink_testing::through_writer::{Offers, Through};
use testkit::proxy::FaultGuard;

/// Random sequences.
const SEQUENCES: u32 = 48;
/// The proxy cuts after multiples of this many bytes of responses, up to this many times.
const CUTS: usize = 24;
const CUT_STEP: usize = 3;

struct Stream(Fixture<'static>);

impl SinkHarness for Stream {
    const COMPARES: bool = false;
    const RECOGNISES_IDS: bool = false;
    type Fault = FaultGuard;

    async fn fresh() -> Self {
        Self(Fixture::new(server().expect("asked before")))
    }

    fn sink(&self) -> Sink {
        self.0.sink()
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.0.messages()
    }

    async fn poison(&self, _: EventId) {
        let limit = format!(",\"max_msg_size\":{}", LARGE);
        let answer = self.0.server.client().stream("UPDATE", &self.0.stream, &self.0.description(&limit));
        assert!(answer.contains("max_msg_size"), "{answer}");
    }

    async fn outage(&self, stage: usize) -> Option<FaultGuard> {
        (stage < CUTS).then(|| self.0.proxy.cut_after(stage * CUT_STEP))
    }

    async fn stall(&self) -> FaultGuard {
        self.0.proxy.freeze_after(0)
    }
}

impl Offers for Stream {
    const STORE: &'static str = "nats";
    const READS: bool = false;
}

#[test]
fn stream_passes_each_case_through_writers() {
    if server().is_some() {
        check::<Through<Stream>>();
    }
}

#[test]
fn stream_passes_each_case_and_follows_the_model() {
    if server().is_some() {
        check::<Stream>();
        sequences::<Stream>(SEQUENCES);
    }
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    if server().is_some() {
        sink_testing::odd_frames::are_rejected::<Stream>().await;
    }
}
