//! A configuration with thousands of types, each with a schema and steps: how long until the server is ready, with nothing
//! stored and after a kill when each type has had events.

use std::fmt::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Setup;
use super::batch::{self, Until};
use crate::reference::check_loop::Piece;
use harness::metrics;
use harness::report::{Bar, Row, median};
use harness::server::{Launch, Server};

#[derive(clap::Args)]
pub(super) struct Options {
    /// Types, each with a schema and three or four steps.
    #[arg(long, default_value_t = 10_000)]
    types: usize,
}

const STARTS: u32 = 5;
const READY_LIMIT: Duration = Duration::from_secs(60);
/// A half of the types share so many schemas, the others have one each.
const SHARED_SCHEMAS: usize = 100;
/// One type in so many has a step with another pattern.
const PATTERN_EVERY: usize = 4;
const SINKS: usize = 4;
const BATCH: usize = 5_000;
const READY_MOST_MS: f64 = 1000.0;
const SETTLE: Duration = Duration::from_secs(1);

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let launch = setup.fresh_server(Some(&config(options.types)))?;
    let folder = launch.data.parent().context("the data directory has a folder")?.join("schemas");
    write_schemas(&folder, options.types)?;
    let nothing = starts(&launch, options.types, Stop::Asked, |server| {
        server.wait_stored()?;
        std::fs::remove_dir_all(&launch.data).context("removing the data directory")
    })?;
    let server = started(&launch)?.0;
    batch::send(launch.intake, &events(options.types), 1, Until::Sent(options.types as u64))?;
    server.wait_stored()?;
    server.kill()?;
    let after_kills = starts(&launch, options.types, Stop::Killed, |_| Ok(()))?;
    Ok(vec![row("ready with nothing stored", options, nothing), row("ready after a kill", options, after_kills)])
}

fn row(what: &str, options: &Options, measured: f64) -> Row {
    let what = format!("{} types, {what}, median of {STARTS}", options.types);
    Row::alone(&what, "ms", measured, Bar::AtMost(READY_MOST_MS))
}

/// How a server ends before it starts again.
#[derive(Clone, Copy)]
enum Stop {
    Asked,
    Killed,
}

fn started(launch: &Launch) -> Result<(Server, f64)> {
    let mut server = launch.start()?;
    let ready = server.wait_ready(READY_LIMIT)?;
    Ok((server, ready.as_secs_f64() * 1e3))
}

/// The median of milliseconds until it was ready. Its memory then is printed.
fn starts(launch: &Launch, types: usize, stop: Stop, before_end: impl Fn(&Server) -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for number in 0..STARTS {
        let (server, ready) = started(launch)?;
        times.push(ready);
        if number == 0 {
            say_memory(&server, types)?;
        }
        before_end(&server)?;
        match stop {
            Stop::Asked => server.stop()?,
            Stop::Killed => server.kill()?,
        }
    }
    Ok(median(times))
}

fn say_memory(server: &Server, types: usize) -> Result<()> {
    sleep(SETTLE);
    let idle = server.process.memory()?;
    let text = server.metrics()?;
    let series = text.lines().filter(|line| line.starts_with("forebay_events_accepted_total{")).count();
    if series < types || !metrics::has(&text, "forebay_events_pending") {
        bail!("/metrics shows {series} types of {types}");
    }
    let (now, most) = (idle.now as f64 / 1e6, idle.most as f64 / 1e6);
    println!("{types} types: {now:.1} MB in memory, {most:.1} MB at most; /metrics has {} bytes", text.len());
    Ok(())
}

fn name(number: usize) -> String {
    format!("team{:02}.service{:03}.event{number}", number % 40, number % 700)
}

fn config(types: usize) -> String {
    let mut text = String::from("[gateway]\ntype_pointer = \"/type\"\n");
    for sink in 0..SINKS {
        let _ = write!(text, "\n[sinks.none{sink}]\nkind = \"null\"\n");
    }
    for number in 0..types {
        let schema = if number % 2 == 0 { format!("shared{}", number / 2 % SHARED_SCHEMAS) } else { own(number) };
        let sink = number % SINKS;
        let _ = write!(
            text,
            "\n[types.\"{}\"]\nid = \"/id\"\ntime = \"/time\"\nschema = \"schemas/{schema}.json\"\ntransform = [\n  \
             {{ drop = \"/referrer\", when = \"referrer == null\" }},\n  \
             {{ set = \"/slow\", to = \"ms > {number} && status < 500\" }},\n  {{ lower = \"/method\" }},\n",
            name(number)
        );
        if number % PATTERN_EVERY == 0 {
            let _ = writeln!(text, "  {{ redact = \"/path\", pattern = 'key{number}=[0-9a-f]+' }},");
        }
        let _ = writeln!(text, "]\nroutes = [\"none{sink}\"]");
    }
    text
}

fn own(number: usize) -> String {
    format!("own{number}")
}

/// Schemas as users have them: members with bounds, and definitions that all share.
fn write_schemas(folder: &Path, types: usize) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(format!("{name}.json"));
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    };
    write("common", COMMON)?;
    for number in 0..SHARED_SCHEMAS {
        write(&format!("shared{number}"), &schema(number))?;
    }
    (1..types).step_by(2).try_for_each(|number| write(&own(number), &schema(number)))
}

const COMMON: &str = r#"{"$defs": {
  "time": {"type": "string", "minLength": 20, "maxLength": 40},
  "method": {"enum": ["GET", "HEAD", "POST", "PUT", "DELETE"]}
}}"#;

fn schema(number: usize) -> String {
    format!(
        r#"{{
  "type": "object",
  "required": ["id", "type", "time", "status"],
  "properties": {{
    "id": {{"type": "string", "minLength": 1, "maxLength": 64}},
    "type": {{"type": "string", "maxLength": 64}},
    "time": {{"$ref": "common.json#/$defs/time"}},
    "method": {{"$ref": "common.json#/$defs/method"}},
    "path": {{"type": "string", "pattern": "^/"}},
    "status": {{"type": "integer", "minimum": 100, "maximum": 599}},
    "ms": {{"type": "number", "minimum": 0, "maximum": {}}},
    "referrer": {{"type": ["string", "null"]}},
    "labels": {{"type": "array", "maxItems": {}, "items": {{"type": "string"}}}}
  }}
}}"#,
        1_000_000 + number,
        number % 50 + 1
    )
}

/// An event of each type.
fn events(types: usize) -> Vec<batch::Batch> {
    let lines = |first: usize| {
        let mut bytes = Vec::new();
        let last = (first + BATCH).min(types);
        for number in first..last {
            let line = format!(
                "{{\"id\":\"{number}\",\"type\":\"{}\",\"time\":\"2026-11-22T10:00:00Z\",\"method\":\"GET\",\
                 \"path\":\"/\",\"status\":200,\"ms\":12,\"referrer\":null}}\n",
                name(number)
            );
            bytes.extend_from_slice(line.as_bytes());
        }
        Piece { bytes, events: (last - first) as u64 }
    };
    batch::batches(&(0..types).step_by(BATCH).map(lines).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_are_unique() {
        let names: std::collections::BTreeSet<_> = (0..10_000).map(name).collect();
        assert_eq!(names.len(), 10_000);
        assert_eq!(config(100).matches("\n[types.").count(), 100);
    }
}
