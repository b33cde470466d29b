//! A file of real records into all stores at the same time, many times over: afterwards each store holds every line exactly as often as sent,
//! byte for byte, and as many ids as events. Each store is queried with its own tools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::frame::FrameOptions;
use super::loads::start_load;
use super::sent::Sent;
use super::{ledger, sqlite};
use crate::store::{Offer, RunningStore};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// NDJSON to load; without it `access.ndjson` of the folder that `FOREBAY_TEST_RECORDS` names.
    #[arg(long)]
    file: Option<PathBuf>,
    /// How often the records are sent.
    #[arg(long, default_value_t = 50)]
    times: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

/// A load of so many records ends within this time.
const LOAD_LIMIT: Duration = Duration::from_hours(1);
/// The sink of SQLite.
const LOCAL: &str = "sqlite";

pub(crate) fn run(options: &Options) -> Result<()> {
    let file = options.file.clone().map_or_else(given_records, Ok)?;
    let sent = Sent::read(Some(&file), options.times)?;
    let frame = options.frame.begin(format!("{} × {} into all stores", file.display(), options.times))?;
    let mut places = Offer::start_all()?;
    let launch = frame.launch(Some(&configuration(&places)))?;
    let server = launch.ready()?;
    let mut load = start_load(&frame.binary, launch.intake, &sent.packed(&frame.folder)?, &[])?;
    load.wait_success(LOAD_LIMIT).context("the load")?;
    server.wait_stored()?;
    ledger::expect_stored(&server, sent.events() as f64, places.len() + 1)?;
    server.stop()?;
    sent.compare(&mut sqlite::payloads(&launch.data.join("events.db"), &frame.folder)?).context("SQLite")?;
    println!("SQLite: {} events, each once", sent.events());
    places.iter_mut().try_for_each(|place| check_place(place, &sent, &frame.folder))?;
    frame.end()
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
    format!("[types.access]\nroutes = {routes:?}\n\n[sinks.{LOCAL}]\nkind = \"sqlite\"\n\n{sinks}")
}

/// The store holds each event once, byte for byte.
pub(super) fn check_place(place: &mut RunningStore, sent: &Sent, folder: &Path) -> Result<()> {
    let name = place.name;
    sent.compare(&mut place.payloads(folder)?).context(name)?;
    let ids = place.ids().context(name)?;
    if let Some(ids) = ids.filter(|ids| *ids != sent.events()) {
        bail!("{name}: {ids} different ids instead of {}", sent.events());
    }
    let shown = if ids.is_some() { "each once, by its id too" } else { "each once" };
    println!("{name}: {} events, {shown}", sent.events());
    Ok(())
}
