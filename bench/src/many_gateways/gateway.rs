//! A gateway as its writer sees it: one lane with a separate gateway id, and the client that gateways use.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use event::{EventId, Lane, Origin};
use limits::RESPONSE_TIMEOUT;
use sink::{Batch, Claim, Record, Sink, Takeover, Write, WriteOutcome};
use sink_remote::{Remote, RemoteConfig, Spread, Upstream, UpstreamConfig, Writers};

use super::SINK;
use random::Random;

/// Most events of a batch.
const EVENTS_MAX: u64 = 5;
/// One batch of so many is sent twice, as after a lost answer.
const REPEATED: u64 = 8;
/// One event of so many is large: a connection that has had one must not keep a large buffer.
const LARGE: u64 = 200;
const LARGE_BYTES: usize = 256 * 1024;
const TYPE: &str = "event";
/// Microseconds since 1970: any time will do.
const RECEIVED_AT: i64 = 1_700_000_000_000_000;

/// A gateway with its progress. It is connected between [`Self::connect`] and [`Self::disconnect`].
pub(super) struct Gateway {
    number: u64,
    pub(super) lane: Lane,
    claims: Vec<Claim>,
    sink: Option<Sink>,
    random: Random,
    /// The last position that is stored. Each position has an event.
    pub(super) position: u64,
}

impl Gateway {
    /// A gateway that has sent nothing yet. Its number and the seed decide on all that it sends.
    pub(super) fn new(number: u64, seed: u64) -> Self {
        let mut random = Random::new(seed ^ number.rotate_left(32));
        let origin = Origin(bits(&mut random));
        let lane = Lane { origin, shard: 0, sink: SINK.into() };
        Self { number, lane, claims: Vec::new(), sink: None, random, position: 0 }
    }

    /// Restarts, as a process does: with new connections and a new claim. The store must have the lane's last state.
    pub(super) async fn connect(&mut self, writer: SocketAddr, store: &'static str) -> Result<()> {
        let writers = Writers::Listed(vec![format!("http://{writer}").parse()?]);
        let (name, spread, response_timeout) = ("back".into(), Spread::Lane, RESPONSE_TIMEOUT);
        let (sends_to_all, token, ca) = (false, None, None);
        let upstream =
            Upstream::new(UpstreamConfig { name, writers, sends_to_all, spread, token, ca, response_timeout });
        let sink = SINK.into();
        let parts = BTreeMap::new();
        let config = RemoteConfig {
            upstream,
            server: None,
            sink,
            store,
            is_fenced: true,
            parts,
            reads: false,
            recognises_ids: false,
        };
        let sink = Sink::new(Remote::new(config));
        sink.connect().await?;
        let claim = Claim(bits(&mut self.random));
        let known = Takeover::Known(self.claims.as_slice().into());
        let held = sink.claim(&self.lane, claim, known).await?.context("the store keeps no cursors")?;
        if (held.position, held.claims.as_slice()) != (self.position, &[claim]) {
            bail!("{} is at {}, and the store holds {held:?}", self.lane, self.position);
        }
        self.claims.push(claim);
        self.sink = Some(sink);
        Ok(())
    }

    /// Ends its connections.
    pub(super) async fn disconnect(&mut self) -> Result<()> {
        self.sink.take().context("a gateway that isn't connected")?.close().await?;
        Ok(())
    }

    /// Sends a batch of a few events, and some of the batches once more.
    pub(super) async fn send(&mut self) -> Result<()> {
        let floor = self.position;
        let events = 1 + self.random.below(EVENTS_MAX);
        let is_repeated = self.random.below(REPEATED) == 0;
        let batch = self.batch(floor + events).sent_after(floor, floor);
        self.write(&batch).await?;
        if is_repeated {
            self.write(&batch.sent_after(floor, floor + events)).await?;
        }
        self.position += events;
        Ok(())
    }

    async fn write(&self, batch: &Batch) -> Result<()> {
        let sink = self.sink.as_ref().context("a gateway that isn't connected")?;
        match sink.write(batch).await? {
            WriteOutcome::Committed => Ok(()),
            other => bail!("{} to {} of {}: {other:?}", batch.first(), batch.last(), self.lane),
        }
    }

    fn batch(&self, last: u64) -> Batch {
        let mut batch = Batch::new(self.lane.clone(), self.position + 1);
        for sequence in batch.first()..=last {
            let payload = payload(self.number, sequence);
            let block = Bytes::from(format!("{TYPE}{payload}"));
            let (type_name, payload) = block.split_at(TYPE.len());
            let record = Record {
                sequence,
                id: EventId((u128::from(self.number) << 64 | u128::from(sequence)).to_be_bytes()),
                type_name: std::str::from_utf8(type_name).unwrap_or_default(),
                source: "",
                received_at: RECEIVED_AT,
                event_time: None,
                write: Write::Insert,
                payload,
            };
            batch.push(&block, &record);
        }
        let claim = self.claims.last().copied();
        claim.map_or_else(|| batch.clone(), |claim| batch.clone().claimed_by(claim))
    }

    /// The payloads of all that it has sent.
    pub(super) fn payloads(&self) -> impl Iterator<Item = String> {
        (1..=self.position).map(|sequence| payload(self.number, sequence))
    }
}

fn payload(gateway: u64, sequence: u64) -> String {
    let is_large = (gateway + sequence).is_multiple_of(LARGE);
    let fill = "x".repeat(if is_large { LARGE_BYTES } else { 0 });
    format!("{{\"gateway\":{gateway},\"sequence\":{sequence},\"fill\":\"{fill}\"}}")
}

fn bits(random: &mut Random) -> [u8; 16] {
    (u128::from(random.number()) << 64 | u128::from(random.number())).to_be_bytes()
}
