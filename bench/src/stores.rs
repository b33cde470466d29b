//! All stores at the same time, each with a type that is offered a part of the store's rate. Measures how long events take until they are
//! stored, against the same offer to that store alone, and with one of the stores stopped.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::Setup;
use super::batch::{self, Until};
use super::records::Records;
use crate::reference::check_loop::Piece;
use harness::metrics;
use harness::open_loop::{AckLevel, OpenLoop, PATIENT, percentile};
use harness::report::{Bar, Row};
use harness::server::{Launch, Server};
use harness::store::{Purpose, RunningStore, SERVERS};

#[derive(clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    records: Records,
    /// The part of its rate alone that each store is offered.
    #[arg(long, default_value_t = 0.15)]
    offered: f64,
    /// Concurrent connections that send batches when a rate is measured.
    #[arg(long, default_value_t = 4)]
    connections: u32,
    /// Only these stores, by their names in lower case.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// An offer has so many requests a second at most: enough for a percentile, and few enough for one client.
const REQUESTS_PER_SECOND: f64 = 200.0;
/// Events that a request may have.
const EVENTS: [u32; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];
/// A store's rate is that at which so much of a load was stored: the last events of an object wait for their time.
const STORED: f64 = 0.9;
/// How much longer an event may take with the others than alone, and with one of them stopped than with all.
const TOGETHER_MOST: f64 = 2.0;
const STOPPED_MOST: f64 = 1.2;
/// A backlog that doesn't change for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(150);

pub(super) fn run(setup: &Setup, options: &Options) -> Result<Vec<Row>> {
    let pieces = options.records.pieces()?;
    let mut fixture = StoresFixture::start(setup, &options.only)?;
    for number in 0..fixture.places.len() {
        fixture.find_rate(number, options, &pieces)?;
    }
    let mut rounds = Vec::new();
    for number in 0..=setup.rounds {
        let round = fixture.round(usize::try_from(number)? % fixture.places.len())?;
        println!("round {number}: {round:?}");
        // In the first one files grow, and stores warm up.
        if number > 0 {
            rounds.push(round);
        }
    }
    fixture.server.wait_stored()?;
    fixture.server.stop()?;
    Ok(rows(&fixture.places, &rounds))
}

/// The server and the stores.
struct StoresFixture {
    places: Vec<RunningStore>,
    launch: Launch,
    server: Server,
    duration: Duration,
    /// Events a second that each store is offered.
    offers: Vec<f64>,
}

/// 99th percentiles of the time until stored, in milliseconds, by store.
#[derive(Debug)]
struct Round {
    alone: Vec<f64>,
    together: Vec<f64>,
    stopped: usize,
    /// Without that of the stopped store.
    others: BTreeMap<usize, f64>,
}

impl StoresFixture {
    fn start(setup: &Setup, only: &[String]) -> Result<Self> {
        let wanted = |name: &str| only.is_empty() || only.contains(&name.to_lowercase());
        let offers = SERVERS.iter().filter(|offer| wanted(offer.name()));
        let started = offers.map(|offer| offer.start(Purpose::Rate)).collect::<Result<Vec<_>>>()?;
        let places: Vec<RunningStore> = started.into_iter().flatten().collect();
        if places.len() < 2 {
            bail!("only {} stores: install the servers of two at least", places.len());
        }
        let launch = setup.fresh_server(Some(&configuration(&places)))?;
        let server = launch.ready()?;
        Ok(Self { places, launch, server, duration: setup.duration, offers: Vec::new() })
    }

    /// A store's own rate: from the first request until most of the events sent are stored.
    fn find_rate(&mut self, number: usize, options: &Options, pieces: &[Piece]) -> Result<()> {
        let label = self.places[number].label();
        let begun = Instant::now();
        let batches = batch::batches_of_type(&label, pieces);
        let sent = batch::send(self.launch.intake, &batches, options.connections, Until::Elapsed(self.duration))?;
        let left = loop {
            let left = metrics::sum_with(&self.server.metrics()?, "forebay_events_pending", &type_label(&label));
            if left <= sent.events * (1.0 - STORED) {
                break left;
            }
            if begun.elapsed() > self.duration + PATIENCE {
                bail!("{left} of {} events aren't in {label} after {PATIENCE:?}", sent.events);
            }
            thread::sleep(Duration::from_millis(5));
        };
        let rate = (sent.events - left) / begun.elapsed().as_secs_f64();
        let offer = rate * options.offered;
        println!("{label} alone takes {rate:.0} events/s; it is offered {offer:.0}/s");
        self.offers.push(offer);
        self.server.wait_stored()
    }

    fn round(&mut self, stopped: usize) -> Result<Round> {
        let all: Vec<usize> = (0..self.places.len()).collect();
        let mut alone = Vec::new();
        for number in &all {
            alone.extend(self.load(&[*number], None)?.into_values());
        }
        let together = self.load(&all, None)?.into_values().collect();
        self.places[stopped].kill()?;
        let others = self.load(&all, Some(stopped))?;
        self.places[stopped].run()?;
        self.server.wait_stored()?;
        Ok(Round { alone, together, stopped, others })
    }

    /// Offers these stores their part at the same time. A stopped one has its events too, whose clients don't wait for it.
    fn load(&self, numbers: &[usize], stopped: Option<usize>) -> Result<BTreeMap<usize, f64>> {
        let never = AtomicBool::new(false);
        let measured = thread::scope(|scope| {
            let load = |number: usize| {
                let load =
                    self.offer(number, if stopped == Some(number) { AckLevel::Durable } else { AckLevel::Stored });
                let never = &never;
                (number, scope.spawn(move || load.run(never)))
            };
            let loads: Vec<_> = numbers.iter().map(|number| load(*number)).collect();
            let join = |(number, load): (usize, thread::ScopedJoinHandle<'_, _>)| {
                let samples: Result<Vec<_>> = load.join().map_err(|_| anyhow!("a load panicked"))?;
                Ok((number, percentile(&samples.with_context(|| self.places[number].name)?, 99)))
            };
            loads.into_iter().map(join).collect::<Result<BTreeMap<_, _>>>()
        })?;
        if stopped.is_none() {
            self.server.wait_stored()?;
        }
        Ok(measured.into_iter().filter(|(number, _)| Some(*number) != stopped).collect())
    }

    fn offer(&self, number: usize, answer: AckLevel) -> OpenLoop {
        let (rate, label) = (self.offers[number], self.places[number].label());
        let wanted = rate / REQUESTS_PER_SECOND;
        let events = EVENTS.into_iter().find(|events| f64::from(*events) >= wanted).unwrap_or(EVENTS[EVENTS.len() - 1]);
        OpenLoop::new(self.launch.intake, &label, events, rate, answer).lasting(self.duration)
    }
}

/// A type for each store, with a route to it alone.
fn configuration(places: &[RunningStore]) -> String {
    let sections: String = places.iter().map(RunningStore::section).collect();
    format!("{PATIENT}{sections}")
}

fn type_label(label: &str) -> String {
    format!("type=\"{label}\"")
}

fn rows(places: &[RunningStore], rounds: &[Round]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, place) in places.iter().enumerate() {
        let pairs: Vec<_> = rounds.iter().map(|round| (round.together[number], round.alone[number])).collect();
        let what = format!("{}: p99 until stored with the others, against alone", place.name);
        rows.push(Row::alternating(&what, "ms", &pairs, Bar::AtMost(TOGETHER_MOST)));
    }
    for (number, place) in places.iter().enumerate() {
        let pair = |round: &Round| round.others.get(&number).map(|others| (*others, round.together[number]));
        let pairs: Vec<_> = rounds.iter().filter_map(pair).collect();
        let mut stopped: Vec<&str> = rounds.iter().map(|round| places[round.stopped].name).collect();
        stopped.retain(|name| *name != place.name);
        stopped.sort_unstable();
        stopped.dedup();
        if !pairs.is_empty() {
            let what =
                format!("{}: p99 until stored while {} is stopped, against before", place.name, stopped.join(" or "));
            rows.push(Row::alternating(&what, "ms", &pairs, Bar::AtMost(STOPPED_MOST)));
        }
    }
    rows
}
