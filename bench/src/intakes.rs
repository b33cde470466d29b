//! The intakes of Elasticsearch and OpenTelemetry, against native batches of the same events on the same server.

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::Setup;
use crate::batch::{self, Batch, Until, send};
use crate::records::Records;
use crate::reference::check_loop::Piece;
use harness::http;
use harness::report::{Bar, Row};

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
}

/// The same bodies are sent again and again: without `dedupe` each copy is an event.
const CONFIG: &str = "[types.\"*\"]\nroutes = [\"none\"]\n\n[sinks.none]\nkind = \"null\"\n\n\
                      [intakes.es]\nkind = \"elasticsearch\"\ndedupe = \"none\"\n\n\
                      [intakes.otel]\nkind = \"otlp\"\ndedupe = \"none\"\n";
const CONNECTIONS: u32 = 4;

/// Loads one server alternately. The first round, in which files grow, isn't counted.
pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let pieces = options.records.pieces()?;
    let native = batch::batches_of_type("access", &pieces);
    let bulk: Vec<Batch> = pieces.iter().map(bulk).collect();
    let otlp: Vec<Batch> = pieces.iter().map(otlp).collect::<Result<_>>()?;
    let launch = setup.fresh_server(Some(CONFIG))?;
    let server = launch.ready()?;
    let rate = |batches: &[Batch]| -> Result<f64> {
        let sent = send(launch.intake, batches, CONNECTIONS, Until::Elapsed(setup.duration))?;
        server.wait_stored()?;
        Ok(sent.events / sent.elapsed.as_secs_f64())
    };
    let (mut of_bulk, mut of_otlp) = (Vec::new(), Vec::new());
    for round in 0..=setup.rounds {
        let (bulk, native, otlp) = (rate(&bulk)?, rate(&native)?, rate(&otlp)?);
        println!("round {round}: native {native:.0} events/s, _bulk {bulk:.0}, OTLP protobuf {otlp:.0}");
        if round > 0 {
            of_bulk.push((bulk, native));
            of_otlp.push((otlp, native));
        }
    }
    server.stop()?;
    Ok(vec![
        Row::alternating("_bulk against native batches, 1 MiB", "events/s", &of_bulk, Bar::AtLeast(0.7)),
        Row::alternating("OTLP protobuf against native batches, 1 MiB", "events/s", &of_otlp, Bar::AtLeast(0.5)),
    ])
}

/// The events of a piece for `_bulk`.
fn bulk(piece: &Piece) -> Batch {
    let lines = piece.bytes.split_inclusive(|byte| *byte == b'\n');
    let action = b"{\"index\":{\"_index\":\"access\"}}\n";
    let body: Vec<u8> = lines.flat_map(|line| [action.as_slice(), line].concat()).collect();
    let request = http::post("/es/_bulk", &["Content-Type: application/x-ndjson"], &body);
    Batch { request, events: piece.events }
}

/// The events of a piece as log records, with an attribute for each member.
fn otlp(piece: &Piece) -> Result<Batch> {
    let mut records = Vec::new();
    for line in piece.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let members: Map<String, Value> = serde_json::from_slice(line).context("a record isn't an object")?;
        let mut record = Vec::new();
        for (name, value) in &members {
            let attribute = [field(1, name.as_bytes()), field(2, &any_value(value))].concat();
            record.extend(field(6, &attribute));
        }
        records.extend(field(2, &record));
    }
    let request =
        http::post("/otlp/v1/logs", &["Content-Type: application/x-protobuf"], &field(1, &field(2, &records)));
    Ok(Batch { request, events: piece.events })
}

/// `opentelemetry.proto.common.v1.AnyValue`: a string, or an integer.
fn any_value(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => field(1, text.as_bytes()),
        Value::Number(number) => match number.as_u64() {
            Some(number) => [vec![3 << 3], varint(number)].concat(),
            None => field(1, number.to_string().as_bytes()),
        },
        other => field(1, other.to_string().as_bytes()),
    }
}

/// A field with a length (<https://protobuf.dev/programming-guides/encoding/>).
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [vec![number << 3 | 2], varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap_or_default());
    bytes
}
