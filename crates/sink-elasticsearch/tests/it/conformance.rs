//! The suite that every sink must pass, for both shapes of documents.

use std::any::Any;

use event::EventId;
use serde_json::Value;
use sink::Sink;
use sink_testing::conformance::{SinkHarness, check, sequences};

use crate::fixture::{Fixture, server};
use crate::gate::Gate;
use sink_testing::through_writer::{Offers, Through};

/// Random sequences for each shape.
const SEQUENCES: u32 = 24;
/// The proxy cuts after multiples of this many bytes of responses, up to this many times.
const CUTS: usize = 24;
const CUT_STEP: usize = 23;
/// The beginning of every document without an envelope.
const BEGINNING: &str = r#"{"@timestamp":"2025-10-09T08:53:20.000001Z""#;

/// With the payload in an envelope, or not.
struct TestedSink<const ENVELOPE: bool> {
    fixture: Fixture<'static>,
    /// The gate that is closed in a stall. It lets reads pass, as the store itself does while it rejects writes.
    gate: Gate,
}

impl<const ENVELOPE: bool> SinkHarness for TestedSink<ENVELOPE> {
    const COMPARES: bool = true;
    const HAS_OWN_MARK: bool = false;
    type Fault = Box<dyn Any>;

    /// On one line, and without spaces after the brace, where the document has other members.
    fn as_kept(payload: &[u8]) -> Vec<u8> {
        let text = std::str::from_utf8(payload).unwrap().trim().replace(['\r', '\n'], " ");
        match text.strip_prefix('{') {
            Some(members) if !ENVELOPE => format!("{{{}", members.trim_start()).into_bytes(),
            _ => text.into_bytes(),
        }
    }

    async fn fresh() -> Self {
        let server = server().expect("asked before");
        let mut fixture = if ENVELOPE { Fixture::envelopes(server) } else { Fixture::new(server) };
        let gate = Gate::to(fixture.proxy.address());
        fixture.config.nodes = format!("http://{}", gate.address()).parse().unwrap();
        Self { fixture, gate }
    }

    fn sink(&self) -> Sink {
        self.fixture.sink()
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let documents = self.fixture.documents().into_iter().filter(|(_, _, source)| !source.contains("spoilt"));
        let row = |(_, id, source): (_, String, String)| (id.parse().unwrap(), payload(&source).into_bytes());
        documents.map(row).collect()
    }

    async fn poison(&self, id: EventId) {
        let Fixture { server, index, .. } = &self.fixture;
        server.done("PUT", &format!("/{index}/_create/{id}"), r#"{"spoilt": true}"#);
    }

    async fn outage(&self, stage: usize) -> Option<Box<dyn Any>> {
        (stage < CUTS).then(|| Box::new(self.fixture.proxy.cut_after(stage * CUT_STEP)) as Box<dyn Any>)
    }

    async fn stall(&self) -> Box<dyn Any> {
        Box::new(self.gate.close())
    }
}

/// The payload in a document, as text.
fn payload(source: &str) -> String {
    let rest = &source[BEGINNING.len()..];
    if let Some(value) = rest.split_once(r#","payload":"#).map(|(_, value)| value.strip_suffix('}').unwrap()) {
        serde_json::from_str::<Value>(value).unwrap();
        return value.to_owned();
    }
    format!("{{{}", rest.strip_prefix(',').unwrap_or(rest))
}

impl<const ENVELOPE: bool> Offers for TestedSink<ENVELOPE> {
    const STORE: &'static str = "elasticsearch";
    const READS: bool = true;
}

#[test]
fn documents_with_envelopes_pass_each_case_through_writers() {
    if server().is_some() {
        check::<Through<TestedSink<true>>>();
    }
}

#[test]
fn documents_of_members_pass_the_suite() {
    if server().is_some() {
        check::<TestedSink<false>>();
        sequences::<TestedSink<false>>(SEQUENCES);
    }
}

#[test]
fn documents_with_envelopes_pass_the_suite() {
    if server().is_some() {
        check::<TestedSink<true>>();
        sequences::<TestedSink<true>>(SEQUENCES / 4);
    }
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    if server().is_some() {
        sink_testing::odd_frames::are_rejected::<TestedSink<true>>().await;
    }
}
