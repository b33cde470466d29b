//! The suite that every sink must pass.

use event::EventId;
use sink::Sink;
use sink_testing::conformance::{SinkHarness, check, sequences};

use crate::receiver::Receiver;
use testkit::proxy::{FaultGuard, Proxy};

const SEQUENCES: u32 = 24;
/// The proxy cuts after multiples of this many bytes of responses, up to this many times.
const CUTS: usize = 24;
const CUT_STEP: usize = 7;

struct TestedSink {
    receiver: Receiver,
    proxy: Proxy,
}

impl SinkHarness for TestedSink {
    const COMPARES: bool = true;
    type Fault = FaultGuard;

    async fn fresh() -> Self {
        let receiver = Receiver::start();
        let proxy = Proxy::to(receiver.address());
        Self { receiver, proxy }
    }

    fn sink(&self) -> Sink {
        crate::sink(crate::config(&format!("http://{}/hook", self.proxy.address())))
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.receiver.events()
    }

    async fn poison(&self, id: EventId) {
        self.receiver.poison(id);
    }

    async fn outage(&self, stage: usize) -> Option<FaultGuard> {
        (stage < CUTS).then(|| self.proxy.cut_after(stage * CUT_STEP))
    }

    async fn stall(&self) -> FaultGuard {
        self.proxy.freeze_after(0)
    }
}

#[test]
fn receiver_with_ids_gets_each_event_once() {
    check::<TestedSink>();
    sequences::<TestedSink>(SEQUENCES);
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    sink_testing::odd_frames::are_rejected::<TestedSink>().await;
}
