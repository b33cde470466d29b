//! The cost of a schema and five steps: CPU of the whole server for each event of a type that has both, less that of a type
//! that has neither. Batches of the same records go to both alternately.

use anyhow::{Context, Result};

use super::Setup;
use super::batch::{self, Batch, Until};
use super::records::Records;
use harness::report::{Bar, Row, median};
use harness::server::{Launch, Server};

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
}

const CONFIG: &str = r#"
[types.plain]
routes = ["none"]

[types.access]
schema = "access.json"
schema_formats = true
transform = [
  { drop = "/referrer", when = "referrer == null" },
  { set = "/slow", to = "bytes > 1000000" },
  { rename = "/agent", to = "user_agent" },
  { lower = "/method" },
  { hash = "/client" },
]
routes = ["none"]

[sinks.none]
kind = "null"
"#;
const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["type", "time", "client", "method", "path", "status", "bytes"],
  "properties": {
    "type": {"const": "access"},
    "time": {"type": "string", "format": "date-time"},
    "client": {"type": "string", "maxLength": 45},
    "method": {"enum": ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]},
    "path": {"type": "string", "pattern": "^/"},
    "protocol": {"type": "string"},
    "status": {"type": "integer", "minimum": 100, "maximum": 599},
    "bytes": {"type": "integer", "minimum": 0},
    "referrer": {"type": ["string", "null"]},
    "agent": {"type": ["string", "null"]}
  },
  "additionalProperties": false
}"#;
/// Events of a round of each type: half a second of work, so short that the machine is about as fast for both.
const EVENTS: u64 = 300_000;
const ROUNDS_MIN: u32 = 20;
const COST_MOST: f64 = 3.0;

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let pieces = options.records.pieces()?;
    let launch = setup.fresh_server(Some(CONFIG))?;
    let schema = launch.data.parent().context("the data directory has a folder")?.join("access.json");
    std::fs::write(&schema, SCHEMA).with_context(|| format!("writing {}", schema.display()))?;
    let server = launch.ready()?;
    let [plain, access] = ["plain", "access"].map(|of| batch::batches_of_type(of, &pieces));
    let mut rounds = Vec::new();
    // The first round, in which files grow, isn't counted.
    for number in 0..=setup.rounds.max(ROUNDS_MIN) {
        let without = cpu(&launch, &server, &plain)?;
        let with = cpu(&launch, &server, &access)?;
        if number > 0 {
            rounds.push((with, without));
        }
    }
    server.stop()?;
    let of = |figure: fn(&(f64, f64)) -> f64| median(rounds.iter().map(figure).collect());
    println!(
        "CPU of an event: {:.2} µs without schema and steps, {:.2} µs with them",
        of(|round| round.1),
        of(|round| round.0)
    );
    Ok(vec![Row::alone(
        "schema and five steps, CPU of an event",
        "µs",
        of(|round| round.0 - round.1),
        Bar::AtMost(COST_MOST),
    )])
}

/// Microseconds of all threads for each event.
fn cpu(launch: &Launch, server: &Server, batches: &[Batch]) -> Result<f64> {
    let before = server.process.cpu()?;
    let sent = batch::send(launch.intake, batches, 1, Until::Sent(EVENTS))?;
    server.wait_stored()?;
    Ok((server.process.cpu()? - before).as_secs_f64() * 1e6 / sent.events)
}
