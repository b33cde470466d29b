//! Access records through two writers into PostgreSQL, Redis, OpenSearch and Swift at the same time, with a SIGKILL of each writer: afterwards each
//! store holds every record exactly as often as sent, byte for byte. Each is queried with its own tools.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::frame::{Frame, FrameOptions};
use super::ledger;
use super::loads::start_load;
use super::sent::Sent;
use super::stores::check_place;
use crate::metrics;
use crate::server::{Launch, PATIENCE, ProcessRole, Server};
use crate::store::{Offer, RunningStore};
use crate::two_services::{SinkSpec, remote_sink, upstream, writer_config};
use crate::wait::until;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// NDJSON to load; without it access records of the generator.
    #[arg(long)]
    file: Option<PathBuf>,
    /// How often the records are sent.
    #[arg(long, default_value_t = 20)]
    times: u64,
    #[command(flatten)]
    frame: FrameOptions,
}

const WRITERS: usize = 2;
/// How long a writer stays down at most.
const DOWN_MILLISECONDS_MAX: u64 = 2_000;

pub(crate) fn run(options: &Options) -> Result<()> {
    let sent = Sent::read(options.file.as_deref(), options.times)?;
    let frame = options.frame.begin(format!("four stores: {} events into each", sent.events()))?;
    let mut places = Offer::start_all()?;
    let mut site = Site::start(&frame, &places)?;
    let file = sent.packed(&frame.folder)?;
    let mut load = start_load(&frame.binary, site.gateway.0.intake, &file, &[])?;
    site.kill_each(&frame, sent.events() * places.len() as u64)?;
    load.wait_success(PATIENCE).context("the load")?;
    site.gateway.1.wait_stored()?;
    ledger::expect_stored(&site.gateway.1, sent.events() as f64, places.len())?;
    site.stop()?;
    places.iter_mut().try_for_each(|place| check_place(place, &sent, &frame.folder))?;
    frame.end()
}

/// The processes of the two roles.
struct Site {
    gateway: (Launch, Server),
    writers: Vec<(Launch, Server)>,
}

impl Site {
    fn start(frame: &Frame, places: &[RunningStore]) -> Result<Self> {
        let start = |role: ProcessRole, name: &str, config: &str| {
            let launch = Launch::fresh(role, &frame.binary, &frame.folder.join(name), config)?;
            let server = launch.ready().with_context(|| name.to_owned())?;
            Ok((launch, server))
        };
        let labels: Vec<String> = places.iter().map(RunningStore::label).collect();
        let sinks: Vec<SinkSpec<'_>> =
            places.iter().zip(&labels).map(|(place, name)| SinkSpec { name, settings: &place.sink }).collect();
        let config = writer_config(&sinks);
        let writers = (0..WRITERS).map(|number| start(ProcessRole::Writer, &format!("writer-{number}"), &config));
        let writers: Vec<(Launch, Server)> = writers.collect::<Result<_>>()?;
        let addresses: Vec<SocketAddr> = writers.iter().map(|(launch, _)| launch.intake).collect();
        let mut config = format!("{}[types.access]\nroutes = {labels:?}\n\n", upstream(&addresses));
        for sink in &sinks {
            config.push_str(&remote_sink(sink)?);
        }
        Ok(Self { gateway: start(ProcessRole::Gateway, "gateway", &config)?, writers })
    }

    /// Kills each writer when its share of `effects` is reached, and starts it again.
    fn kill_each(&mut self, frame: &Frame, effects: u64) -> Result<()> {
        let mut random = frame.random();
        let mut order: Vec<usize> = (0..WRITERS).collect();
        random.shuffle(&mut order);
        for (number, writer) in (1..).zip(order) {
            let part = effects / (WRITERS as u64 + 1);
            let stored = self.wait_stored(part * number - random.below(part / 2 + 1))?;
            let (launch, server) = self.writers.swap_remove(writer);
            server.kill()?;
            thread::sleep(Duration::from_millis(random.below(DOWN_MILLISECONDS_MAX)));
            let server = launch.ready()?;
            self.writers.push((launch, server));
            let last = self.writers.len() - 1;
            self.writers.swap(writer, last);
            println!("writer {writer} was killed after {stored} of {effects} events were in a store");
        }
        Ok(())
    }

    fn wait_stored(&self, due: u64) -> Result<f64> {
        let mut stored = 0.0;
        until("the stores have their share", PATIENCE, || {
            stored = metrics::sum(&self.gateway.1.metrics()?, "forebay_events_stored_total");
            Ok(stored >= due as f64)
        })?;
        Ok(stored)
    }

    fn stop(self) -> Result<()> {
        self.gateway.1.stop()?;
        self.writers.into_iter().try_for_each(|(_, server)| server.stop())
    }
}
