//! The suite that every sink must pass, with payloads as `text` and as `jsonb`, and in a table that is divided by day.

use event::EventId;
use serde_json::Value;
use sink::Sink;
use sink_postgres::{Partition, PayloadKind};
use sink_testing::conformance::{SinkHarness, check, sequences};
use tokio_postgres::Client;

use crate::fixture::{Fixture, client, server};
use sink_testing::through_writer::{Offers, Through};
use testkit::postgres::PostgresServer;
use testkit::proxy::FaultGuard;

/// Random sequences for each kind of payload.
const SEQUENCES: u32 = 24;
/// The proxy cuts after multiples of this many bytes of responses, up to this many times.
const CUTS: usize = 24;
const CUT_STEP: usize = 61;

struct TestedSink<const TEXT: bool, const DAYS: bool = false>(Fixture);

/// What keeps the server from answering, until it is dropped.
enum Hindered {
    Cut { _proxy: FaultGuard },
    Locked { _connection: Client },
}

fn known() -> &'static PostgresServer {
    server().expect("asked before")
}

impl<const TEXT: bool, const DAYS: bool> TestedSink<TEXT, DAYS> {
    /// Holds a lock that blocks every batch until the connection ends, but no reader.
    async fn lock(&self) -> Hindered {
        let connection = client(known()).await;
        let sql = format!("begin; lock table {}.forebay_cursors in exclusive mode", self.0.schema);
        connection.batch_execute(&sql).await.unwrap();
        Hindered::Locked { _connection: connection }
    }
}

impl<const TEXT: bool, const DAYS: bool> SinkHarness for TestedSink<TEXT, DAYS> {
    const COMPARES: bool = true;
    type Fault = Hindered;

    /// `jsonb` keeps values.
    fn as_kept(payload: &[u8]) -> Vec<u8> {
        if TEXT {
            return payload.to_vec();
        }
        match serde_json::from_slice(payload).unwrap() {
            Value::Number(number) => (number.as_f64().unwrap() + 0.0).to_string().into_bytes(),
            value => value.to_string().into_bytes(),
        }
    }

    async fn fresh() -> Self {
        let payload = if TEXT { PayloadKind::Text } else { PayloadKind::Jsonb };
        let mut fixture = Fixture::new(known(), payload).await;
        fixture.config.partition = if DAYS { Partition::Day } else { Partition::None };
        Self(fixture)
    }

    fn sink(&self) -> Sink {
        self.0.sink()
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.0.rows(known()).await
    }

    async fn poison(&self, id: EventId) {
        let schema = &self.0.schema;
        let sql = format!(
            "create function {schema}.poison() returns trigger language plpgsql as $$
             begin if new.id = '{id}' then raise exception 'spoilt'; end if; return new; end $$;
             create trigger spoil before insert on {schema}.events for each row execute function {schema}.poison()"
        );
        client(known()).await.batch_execute(&sql).await.unwrap();
    }

    async fn outage(&self, stage: usize) -> Option<Hindered> {
        (stage < CUTS).then(|| Hindered::Cut { _proxy: self.0.proxy.cut_after(stage * CUT_STEP) })
    }

    async fn stall(&self) -> Hindered {
        self.lock().await
    }
}

impl<const TEXT: bool, const DAYS: bool> Offers for TestedSink<TEXT, DAYS> {
    const STORE: &'static str = "postgres";
    const READS: bool = true;
}

#[test]
fn jsonb_passes_each_case_through_writers() {
    if server().is_some() {
        check::<Through<TestedSink<false>>>();
    }
}

#[test]
fn text_passes_each_case() {
    if server().is_some() {
        check::<TestedSink<true>>();
    }
}

#[test]
fn jsonb_passes_each_case() {
    if server().is_some() {
        check::<TestedSink<false>>();
    }
}

#[test]
fn a_divided_table_passes_each_case() {
    if server().is_some() {
        check::<TestedSink<true, true>>();
    }
}

#[test]
fn a_divided_table_follows_the_model() {
    if server().is_some() {
        sequences::<TestedSink<true, true>>(SEQUENCES);
    }
}

#[test]
fn text_follows_the_model() {
    if server().is_some() {
        sequences::<TestedSink<true>>(SEQUENCES);
    }
}

#[test]
fn jsonb_follows_the_model() {
    if server().is_some() {
        sequences::<TestedSink<false>>(SEQUENCES);
    }
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    if server().is_some() {
        sink_testing::odd_frames::are_rejected::<TestedSink<true>>().await;
    }
}
