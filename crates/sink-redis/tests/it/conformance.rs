//! The suite that every sink must pass, for the structures whose stored values identify an event.

use event::EventId;
use sink::Sink;
use sink_redis::Structure;
use sink_testing::conformance::{SinkHarness, check, sequences};

use crate::fixture::{Fixture, STREAM, server};
use sink_testing::through_writer::{Offers, Through};
use testkit::proxy::FaultGuard;
use testkit::redis::RedisReply;

/// Random sequences for each structure.
const SEQUENCES: u32 = 48;
/// The proxy cuts after multiples of this many bytes of responses, up to this many times.
const CUTS: usize = 24;
const CUT_STEP: usize = 3;
/// The value that makes the server reject an event with its key.
const POISON: &str = "spoilt";

/// The structures, by number.
const STREAMS: u8 = 0;
const HASHES: u8 = 1;
const STRINGS: u8 = 2;

struct TestedSink<const OF: u8>(Fixture<'static>);

impl<const OF: u8> SinkHarness for TestedSink<OF> {
    const COMPARES: bool = true;
    const RECOGNISES_IDS: bool = OF != STREAMS;
    const REJECTS: bool = OF != STREAMS;
    type Fault = FaultGuard;

    async fn fresh() -> Self {
        let structure = match OF {
            STREAMS => STREAM,
            HASHES => Structure::Hash,
            _ => Structure::Strings,
        };
        Self(Fixture::new(server().expect("asked before"), structure))
    }

    fn sink(&self) -> Sink {
        self.0.sink()
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        match OF {
            STREAMS => self.0.entries(),
            HASHES => fields(&self.0),
            _ => strings(&self.0),
        }
    }

    async fn poison(&self, id: EventId) {
        let Fixture { server, key, .. } = &self.0;
        match OF {
            HASHES => server.ask(&["HSET", key, &id.to_string(), POISON]),
            // A string can't replace a list.
            _ => server.ask(&["RPUSH", &format!("{key}:{id}"), POISON]),
        };
    }

    async fn outage(&self, stage: usize) -> Option<FaultGuard> {
        (stage < CUTS).then(|| self.0.proxy.cut_after(stage * CUT_STEP))
    }

    async fn stall(&self) -> FaultGuard {
        self.0.proxy.freeze_after(0)
    }
}

fn fields(fixture: &Fixture<'_>) -> Vec<(EventId, Vec<u8>)> {
    let all = fixture.server.ask(&["HGETALL", &fixture.key]).list();
    let row = |pair: &[RedisReply]| (pair[0].clone().text().parse().unwrap(), pair[1].clone().bytes());
    all.chunks(2).map(row).filter(|(_, payload)| payload != POISON.as_bytes()).collect()
}

fn strings(fixture: &Fixture<'_>) -> Vec<(EventId, Vec<u8>)> {
    let mut client = fixture.server.client();
    let keys = client.ask(&["KEYS", &format!("{}:*", fixture.key)]).list();
    let mut rows = Vec::new();
    for key in keys {
        let key = key.text();
        if let Ok(payload) = client.try_ask(&["GET", &key]) {
            rows.push((key.rsplit(':').next().unwrap().parse().unwrap(), payload.bytes()));
        }
    }
    rows
}

impl<const OF: u8> Offers for TestedSink<OF> {
    const STORE: &'static str = "redis";
    const READS: bool = false;
}

#[test]
fn streams_and_strings_pass_each_case_through_writers() {
    if server().is_some() {
        check::<Through<TestedSink<STREAMS>>>();
        check::<Through<TestedSink<STRINGS>>>();
    }
}

#[test]
fn streams_pass_each_case_and_follow_the_model() {
    if server().is_some() {
        check::<TestedSink<STREAMS>>();
        sequences::<TestedSink<STREAMS>>(SEQUENCES);
    }
}

#[test]
fn hashes_pass_each_case_and_follow_the_model() {
    if server().is_some() {
        check::<TestedSink<HASHES>>();
        sequences::<TestedSink<HASHES>>(SEQUENCES);
    }
}

#[test]
fn strings_pass_each_case_and_follow_the_model() {
    if server().is_some() {
        check::<TestedSink<STRINGS>>();
        sequences::<TestedSink<STRINGS>>(SEQUENCES);
    }
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    if server().is_some() {
        sink_testing::odd_frames::are_rejected::<TestedSink<STRINGS>>().await;
    }
}
