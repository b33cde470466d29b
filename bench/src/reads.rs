//! Reading single events by their ids, as many clients do: from SQLite against `GET /ip`, from PostgreSQL against pgbench's `select`, and
//! both through a writer against without. And posts while others read, against posts alone.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use event::EventId;
use generator::{Generator, RecordKind};
use serde_json::Value;

use super::Setup;
use harness::http;
use harness::report::{Bar, Row, median};
use harness::server::{Launch, READY_LIMIT, Server};
use harness::two_services::{Pair, SinkSpec};
use harness::wait::until;
use harness::workspace;
use harness::wrk::{self, RequestsReport, WrkLoad};
use testkit::postgres::PostgresServer;

/// One batch: the last four bytes of its ids are numbers in a row, which SQL can compute.
const EVENTS: u32 = 100_000;
const READING: u32 = 256;
const POSTING: u32 = 64;
/// Connections to PostgreSQL, of a sink as of pgbench.
const CONNECTIONS: u32 = 16;

const SQLITE_LEAST: f64 = 0.4;
const POSTGRES_LEAST: f64 = 0.7;
const WRITER_LEAST: f64 = 0.5;
const INTAKE_LEAST: f64 = 0.7;

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let bench = Reads::start(setup)?;
    let mut rounds = Vec::new();
    // In the first round caches are filled and connections opened.
    for number in 0..=setup.rounds {
        let round = bench.round()?;
        println!("round {number}: {round:.0?}");
        if number > 0 {
            rounds.push(round);
        }
    }
    let mut rows = Vec::new();
    let mut row = |what: &str, bar: f64, pair: fn(&Round) -> (f64, f64)| {
        let pairs: Vec<_> = rounds.iter().map(pair).collect();
        rows.push(Row::alternating(what, "/s", &pairs, Bar::AtLeast(bar)));
    };
    row("SQLite, 256 clients, against GET /ip", SQLITE_LEAST, |round| (round.sqlite, round.ip));
    row("PostgreSQL, 256 clients, against pgbench", POSTGRES_LEAST, |round| (round.postgres, round.pgbench));
    row("SQLite through a writer, against without", WRITER_LEAST, |round| (round.sqlite_writer, round.sqlite));
    row("PostgreSQL through a writer, against without", WRITER_LEAST, |round| (round.postgres_writer, round.postgres));
    row("posts while 256 clients read, against alone", INTAKE_LEAST, |round| (round.posts_beside, round.posts));
    let beside = median(rounds.iter().map(|round| round.reads_beside).collect());
    rows.push(Row::alone("reads during these posts", "/s", beside, Bar::AtLeast(1.0)));
    let refused: u64 = rounds.iter().map(|round| round.refused).sum();
    rows.push(Row::alone("reads with another answer than 200", "requests", refused as f64, Bar::AtMost(0.0)));
    Ok(rows)
}

/// Answers a second, of all loads.
#[derive(Debug, Default)]
struct Round {
    ip: f64,
    sqlite: f64,
    sqlite_writer: f64,
    pgbench: f64,
    postgres: f64,
    postgres_writer: f64,
    posts: f64,
    posts_beside: f64,
    /// Reads while others post.
    reads_beside: f64,
    refused: u64,
}

/// Where events are read, and the requests for them.
struct Place {
    intake: SocketAddr,
    requests: PathBuf,
}

/// All processes run all the time, and are loaded one after the other.
struct Reads<'a> {
    setup: &'a Setup,
    ip: Place,
    sqlite: Place,
    sqlite_writer: Place,
    postgres: Place,
    postgres_writer: Place,
    pgbench: PathBuf,
    database: PostgresServer,
    _servers: [Server; 2],
    _pairs: [Pair; 2],
}

impl<'a> Reads<'a> {
    fn start(setup: &'a Setup) -> Result<Self> {
        let database = PostgresServer::start_with(&["max_wal_size=4GB", "shared_buffers=256MB"]);
        let database = database.context("PostgreSQL is missing: `cargo xtask services` installs it")?;
        let folder = |name: &str| -> Result<PathBuf> {
            let folder = setup.folder.join(name);
            workspace::empty_directory(&folder)?;
            Ok(folder)
        };
        let settings = format!("kind = \"postgres\"\nurl = \"{}\"\nmax_readers = {CONNECTIONS}\n", database.url());
        let config = |kind: &str| format!("[types.\"*\"]\nroutes = [\"store\"]\n\n[sinks.store]\n{kind}");
        let pair = |name: &str, settings: &str| -> Result<Pair> {
            Pair::start(&setup.binary, &folder(name)?, SinkSpec { name: "store", settings })
        };
        let serve = |name: &str, settings: &str| -> Result<(SocketAddr, Server)> {
            let launch = Launch::new(&setup.binary, &folder(name)?, Some(&config(settings)))?;
            Ok((launch.intake, launch.ready()?))
        };
        let (sqlite, sqlite_server) = serve("sqlite", SQLITE)?;
        let sqlite_pair = pair("sqlite-pair", SQLITE)?;
        let (postgres, postgres_server) = serve("postgres", &settings)?;
        let ids = fill(postgres)?;
        database.psql("vacuum analyze events");
        let pgbench = setup.folder.join("select.sql");
        std::fs::write(&pgbench, select(ids))?;
        // Both read one table.
        let postgres_pair = pair("postgres-pair", &settings)?;
        let place = |name: &str, intake: SocketAddr, ids: u128| -> Result<Place> {
            let requests = setup.folder.join(name).with_extension("requests");
            let paths: String = (0..EVENTS).map(|number| format!("/events/{}\n", id(ids, number))).collect();
            std::fs::write(&requests, paths)?;
            let last = format!("/events/{}", id(ids, EVENTS - 1));
            until("the events can be read", READY_LIMIT, || Ok(http::get(intake, &last)?.status == 200))?;
            Ok(Place { intake, requests })
        };
        let ip = Place { intake: sqlite, requests: setup.folder.join("ip.requests") };
        std::fs::write(&ip.requests, "/ip\n")?;
        Ok(Self {
            setup,
            ip,
            sqlite: place("sqlite", sqlite, fill(sqlite)?)?,
            sqlite_writer: place("sqlite-pair", sqlite_pair.launch.intake, fill(sqlite_pair.launch.intake)?)?,
            postgres: place("postgres", postgres, ids)?,
            postgres_writer: place("postgres-pair", postgres_pair.launch.intake, ids)?,
            pgbench,
            database,
            _servers: [sqlite_server, postgres_server],
            _pairs: [sqlite_pair, postgres_pair],
        })
    }

    fn round(&self) -> Result<Round> {
        let mut round = Round { ip: self.read(&self.ip)?.answered_per_second, ..Round::default() };
        let mut read = |place: &Place| -> Result<f64> {
            let report = self.read(place)?;
            round.refused += report.refused;
            Ok(report.answered_per_second)
        };
        let [sqlite, sqlite_writer] = [read(&self.sqlite)?, read(&self.sqlite_writer)?];
        let pgbench = pgbench(&self.pgbench, &self.database.url(), self.setup.duration)?;
        let [postgres, postgres_writer] = [read(&self.postgres)?, read(&self.postgres_writer)?];
        let posts = self.post()?;
        let (posts_beside, beside) = thread::scope(|scope| -> Result<_> {
            let reads = scope.spawn(|| self.read(&self.sqlite));
            let posts = self.post();
            Ok((posts?, reads.join().map_err(|_| anyhow!("the readers panicked"))??))
        })?;
        round.refused += beside.refused;
        let reads_beside = beside.answered_per_second;
        Ok(Round {
            sqlite,
            sqlite_writer,
            postgres,
            postgres_writer,
            pgbench,
            posts,
            posts_beside,
            reads_beside,
            ..round
        })
    }

    fn read(&self, place: &Place) -> Result<RequestsReport> {
        wrk::requests(place.intake, &place.requests, READING, self.setup.duration)
    }

    fn post(&self) -> Result<f64> {
        let load = WrkLoad { connections: POSTING, duration: self.setup.duration, is_keyed: false };
        Ok(wrk::run(self.sqlite.intake, load, &self.setup.folder)?.requests_per_second)
    }
}

const SQLITE: &str = "kind = \"sqlite\"\n";

/// Posts the events as one batch, and waits until they are stored. Returns the id of the first.
fn fill(intake: SocketAddr) -> Result<u128> {
    let mut generator = Generator::new(RecordKind::JobStatus, 1);
    let mut ndjson = Vec::new();
    (0..EVENTS).for_each(|_| generator.next_line(&mut ndjson));
    let batch = http::post("/ingest/batch", &["Content-Type: application/x-ndjson"], &ndjson);
    let answer = http::Connection::open(intake)?.send(&batch).context("posting the events")?;
    ensure!(answer.status == 200, "the events were answered {}", answer.status);
    let mut first = None;
    until("the events are stored", READY_LIMIT, || {
        let page: Value = serde_json::from_slice(&http::get(intake, "/events?limit=1")?.body)?;
        first =
            page["events"][0]["id"].as_str().map(|id| u128::from_str_radix(&id.replace('-', ""), 16)).transpose()?;
        Ok(first.is_some())
    })?;
    first.context("the store shows no event")
}

/// Stores the events at a server, and returns a line for each: what `request` makes of its id.
pub(super) fn requests(intake: SocketAddr, request: impl Fn(String) -> String) -> Result<String> {
    let first = fill(intake)?;
    Ok((0..EVENTS).map(|number| request(id(first, number)) + "\n").collect())
}

/// The id of the event with this number, as text.
fn id(first: u128, number: u32) -> String {
    let bytes = (first + u128::from(number)).to_be_bytes();
    EventId(bytes).to_string()
}

/// The statement that pgbench repeats: a row by its primary key.
fn select(first: u128) -> String {
    let (prefix, number) = (first >> 32, first & u128::from(u32::MAX));
    format!(
        "\\set n random({number}, {})\nselect id, type, source, received_at, payload from events \
         where id = ('{prefix:024x}' || lpad(to_hex(:n::bigint), 8, '0'))::uuid;\n",
        number + u128::from(EVENTS) - 1
    )
}

fn pgbench(script: &Path, url: &str, duration: Duration) -> Result<f64> {
    let mut command = Command::new("pgbench");
    command.args(["-n", "-M", "prepared", "-c", &CONNECTIONS.to_string(), "-j", "1"]);
    command.args(["-T", &duration.as_secs().to_string()]).arg("-f").arg(script).arg(url);
    let printed = workspace::output(&mut command)?;
    let rate = printed.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.with_context(|| format!("pgbench printed no rate:\n{printed}"))
}
