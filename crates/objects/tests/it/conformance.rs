//! The suite that every sink must pass, for both protocols and each coding.

use event::EventId;
use objects::Codec;
use sink::Sink;
use sink_testing::conformance::{SinkHarness, check, sequences};

use crate::fixture::{Fixture, Protocol, server};
use testkit::proxy::FaultGuard;

/// Random sequences for each protocol.
const SEQUENCES: u32 = 6;
/// Places at which the proxy cuts: behind so many times so many bytes of answers.
const CUTS: usize = 24;
const CUT_STEP: usize = 61;

pub(crate) struct TestedSink<const IS_S3: bool, const CODEC: usize>(pub(crate) Fixture<'static>);

impl<const IS_S3: bool, const CODEC: usize> SinkHarness for TestedSink<IS_S3, CODEC> {
    const COMPARES: bool = false;
    const KNOWS_IDS: bool = false;
    const REFUSES: bool = false;
    type Fault = FaultGuard;

    async fn fresh() -> Self {
        let protocol = if IS_S3 { Protocol::S3 } else { Protocol::Swift };
        Self(Fixture::with(server().expect("asked before"), protocol, Codec::ALL[CODEC]))
    }

    fn sink(&self) -> Sink {
        self.0.sink()
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.0.events()
    }

    async fn poison(&self, _: EventId) {
        unreachable!("a store of objects refuses nothing")
    }

    async fn outage(&self, stage: usize) -> Option<FaultGuard> {
        (stage < CUTS).then(|| self.0.proxy.cut_after(stage * CUT_STEP))
    }

    async fn stall(&self) -> FaultGuard {
        self.0.proxy.freeze_after(0)
    }
}

#[test]
fn swift_passes_each_case_and_follows_the_model() {
    if server().is_some() {
        check::<TestedSink<false, 0>>();
        check::<TestedSink<false, 1>>();
        check::<TestedSink<false, 2>>();
        sequences::<TestedSink<false, 2>>(SEQUENCES);
    }
}

#[test]
fn s3_passes_each_case_and_follows_the_model() {
    if server().is_some() {
        check::<TestedSink<true, 0>>();
        sequences::<TestedSink<true, 2>>(SEQUENCES);
    }
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    if server().is_some() {
        sink_testing::odd_frames::are_rejected::<TestedSink<false, 0>>().await;
        sink_testing::odd_frames::are_rejected::<TestedSink<true, 0>>().await;
    }
}
