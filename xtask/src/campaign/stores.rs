//! A file of real records into all stores at once, many times over: afterwards each store holds every line as often as it was sent,
//! byte for byte, and as many ids as events. Each store is asked by its own means.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::batches::{check, records};
use super::loads::packed;
use super::sent::Sent;
use crate::metrics;
use crate::server::{Launch, Server};
use crate::store::{Purpose, RunningStore, SERVERS};
use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// NDJSON to load; without it `access.ndjson` of the folder that `FOREBAY_TEST_RECORDS` names.
    #[arg(long)]
    file: Option<PathBuf>,
    /// How often the records are sent.
    #[arg(long, default_value_t = 50)]
    times: u64,
    /// A server to deliver with; without it the workspace's own is built.
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// The type of all events, and SQLite's sink.
const TYPE: &str = "access";
const LOCAL: &str = "sqlite";
const READY_LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn run(options: &Options) -> Result<()> {
    let file = options.file.clone().map_or_else(given_records, Ok)?;
    let records = records(Some(&file))?;
    let binary = workspace::tested_binary(options.binary.as_deref())?;
    let folder = workspace::scratch_directory("campaign")?;
    let started = SERVERS.iter().map(|offer| offer.start(Purpose::Content)).collect::<Result<Vec<_>>>()?;
    let mut places: Vec<RunningStore> = started.into_iter().flatten().collect();
    println!("{} × {} into SQLite and {} servers", file.display(), options.times, places.len());

    let launch = Launch::new(&binary, &folder, Some(&configuration(&places)))?;
    let mut server = launch.start()?;
    server.wait_ready(READY_LIMIT)?;
    load(&binary, &launch, &packed(&folder, &records, options.times)?)?;
    server.wait_stored()?;
    let events = records.len() as u64 * options.times;
    check_ledger(&server, events, places.len() + 1)?;
    server.stop()?;

    check(&launch.data.join("events.db"), &records, options.times).context("SQLite")?;
    println!("SQLite: {events} events, each once");
    let sent = Sent::new(&records, options.times);
    for place in &mut places {
        check_place(place, &sent, &folder).with_context(|| place.name)?;
    }
    std::fs::remove_dir_all(&folder).context("removing what the campaign left")
}

fn given_records() -> Result<PathBuf> {
    let folder = std::env::var_os("FOREBAY_TEST_RECORDS").map(PathBuf::from);
    let file = folder
        .context("no records: name a folder with access.ndjson in FOREBAY_TEST_RECORDS, or a file with --file")?;
    let file = file.join("access.ndjson");
    if !file.is_file() {
        bail!("{} is missing: FOREBAY_TEST_RECORDS must name a folder that has it", file.display());
    }
    Ok(file)
}

/// One type with a route to each store.
fn configuration(places: &[RunningStore]) -> String {
    let routes: Vec<String> = places.iter().map(RunningStore::label).chain([LOCAL.to_owned()]).collect();
    let sinks: String = places.iter().map(|place| format!("[sinks.{}]\n{}\n", place.label(), place.sink)).collect();
    format!("[types.{TYPE}]\nroutes = {routes:?}\n\n[sinks.{LOCAL}]\nkind = \"sqlite\"\n\n{sinks}")
}

fn load(binary: &Path, launch: &Launch, file: &Path) -> Result<()> {
    let mut command = Command::new(binary);
    command.args(["load", "--type", TYPE, "--url", &format!("http://{}", launch.intake)]).arg(file);
    workspace::run(command.stdin(Stdio::null()))
}

/// Each event was taken once, and counts as stored once in each store.
pub(super) fn check_ledger(server: &Server, events: u64, stores: usize) -> Result<()> {
    let text = server.metrics()?;
    let wanted = [
        ("forebay_events_accepted_total", events),
        ("forebay_events_stored_total", events * stores as u64),
        ("forebay_events_dead_total", 0),
        ("forebay_events_skipped_total", 0),
        ("forebay_ledger_errors_total", 0),
    ];
    for (name, wanted) in wanted {
        let found = metrics::sum(&text, name);
        if (found - wanted as f64).abs() > 0.5 {
            bail!("{name} is {found} instead of {wanted}");
        }
    }
    Ok(())
}

pub(super) fn check_place(place: &mut RunningStore, sent: &Sent, folder: &Path) -> Result<()> {
    place.read(folder, &mut |payloads| sent.compare(payloads))?;
    let ids = place.ids()?;
    if let Some(ids) = ids.filter(|ids| *ids != sent.events()) {
        bail!("{ids} different ids instead of {}", sent.events());
    }
    let shown = if ids.is_some() { "each once, by its id too" } else { "each once" };
    println!("{}: {} events, {shown}", place.name, sent.events());
    Ok(())
}
