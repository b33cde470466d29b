//! `cargo xtask bench` and `cargo xtask reference`: the server and a reference loop, measured alternately in one run, each figure with its
//! bar. And two campaigns that measure: `cargo xtask campaign many-gateways` and `cargo xtask campaign store-down`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal: printing is its output")]

mod against;
mod batch;
mod bridge;
mod client;
mod cores;
mod dead_sink;
mod drain;
mod hop;
mod hop_memory;
mod intakes;
mod many_gateways;
mod many_groups;
mod many_types;
mod memory;
mod mixed_load;
mod overload;
mod reads;
mod records;
mod reference;
mod single;
mod start;
mod steps;
mod store_down;
mod stored_ack;
mod stores;
mod sustained;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};

use harness::server::Launch;
use harness::store::{OpenSearchStore, PostgresStore, RedisStore, SwiftStore};
use harness::{report, workspace};

/// The commands that `cargo xtask` passes on.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Measures the server against its bars and the reference loops.
    Bench(Arguments),
    /// The loops that benchmarks are compared with.
    Reference(reference::Arguments),
    /// A thousand gateways through one writer: its connections to the store, its memory, and each event stored once.
    ManyGateways(many_gateways::Options),
    /// One store is down while millions of events arrive for it: latency of the others, memory, and how fast the backlog drains.
    StoreDown(store_down::Options),
}

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
struct Arguments {
    /// A server to measure; without it the workspace's own is built.
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
    /// Another server: both are measured alternately, and the median ratio of each figure is printed.
    #[arg(long, global = true, value_name = "BINARY")]
    against: Option<PathBuf>,
    /// How many pairs `--against` measures; at least 7.
    #[arg(long, global = true, default_value_t = 7)]
    pairs: u32,
    /// How often server and reference are measured alternately; the medians count. `single-*` use many short rounds of as
    /// much time together.
    #[arg(long, global = true, default_value_t = 3)]
    rounds: u32,
    /// How long each load lasts.
    #[arg(long, global = true, default_value_t = 5)]
    seconds: u64,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// One event a POST into the null sink, 256 connections and 1, against `reference http-durable`.
    SingleNull,
    /// One event a POST into SQLite, 256 connections, against `reference http-durable`.
    SingleSqlite,
    /// One event a POST, each with another Idempotency-Key, into the null sink, against `reference http-durable`.
    SingleKeyed,
    /// One event a POST with `Forebay-Ack: stored` into the null sink, 256 connections, against `disk`.
    StoredAck,
    /// NDJSON in batches of 1 MiB into the null sink, against `reference check-loop`.
    BatchNull(batch::Options),
    /// `_bulk` and OTLP protobuf of 1 MiB into the null sink, against native batches of the same events.
    Intakes(intakes::Options),
    /// Events accepted and stored in SQLite, against `sqlite3 .import` of the same rows.
    SqliteSustained(sustained::Options),
    /// A journaled backlog drained into PostgreSQL, against `\\copy` of the same rows.
    Postgres(drain::Options),
    /// A journaled backlog drained into a stream of Redis, against `redis-cli --pipe` of the same entries.
    Redis(drain::Options),
    /// A journaled backlog drained into an index of OpenSearch, against two `curl _bulk` at the same time with the same documents.
    Opensearch(drain::Options),
    /// A journaled backlog drained into objects of Swift, against `swift upload` of the same objects.
    Swift(drain::Options),
    /// A gateway and a writer (`null`), against the same two services in Go that make nothing durable.
    Hop,
    /// Requests over a bridge and NATS: a fixed answer against `GET /ip`, events by their ids against two programs over nats.go.
    Bridge,
    /// Events read by their ids by 256 clients: SQLite, PostgreSQL, both through a writer, and posts during this time.
    Reads,
    /// 1,000 events a second through a gateway and a writer into PostgreSQL: processor time, memory, and whether it grows.
    HopMemory(hop_memory::Options),
    /// Resident bytes: idle, busy, with a backlog that can't be stored, with idle connections.
    Memory(memory::Options),
    /// `load` and `bench`: lines a second, `--match` against ripgrep, rate and CPU against wrk.
    Client(client::Options),
    /// Ten times the server's peak load: its throughput and memory then, and its recovery afterwards.
    Overload(overload::Options),
    /// One dead sink and two healthy ones: latency of the healthy types against three healthy sinks, and rejected requests.
    DeadSink,
    /// 2,000 small events a second together with 1 MiB ones whose steps take half a core, against the small ones alone.
    MixedLoad,
    /// 10,000 types with schemas and steps: how long until the server is ready.
    ManyTypes(many_types::Options),
    /// A million groups in one window: memory against the budget, and how long other aggregates wait.
    ManyGroups(many_groups::Options),
    /// CPU that a schema and five steps take for an event.
    Steps(steps::Options),
    /// The size of the binary, and the time until an empty directory is served.
    Start,
    /// All stores at the same time, each offered a part of its rate: time until events are stored against each alone, and with one stopped.
    Stores(stores::Options),
}

/// The parameters of every benchmark.
struct Setup {
    binary: PathBuf,
    rounds: u32,
    duration: Duration,
    /// On the disk of the workspace; removed at the end.
    folder: PathBuf,
}

impl Setup {
    /// A server with an empty data directory; data of an earlier one is removed.
    fn fresh_server(&self, config: Option<&str>) -> Result<Launch> {
        let folder = self.folder.join("server");
        workspace::empty_directory(&folder)?;
        Launch::new(&self.binary, &folder, config)
    }
}

/// Runs one benchmark; fails if a figure is short of its bar.
fn run(arguments: &Arguments) -> Result<()> {
    let server = workspace::dist_binary(arguments.binary.as_deref())?;
    match &arguments.against {
        Some(other) => against::run(arguments, &server, &workspace::dist_binary(Some(other))?),
        None => report::print(&measure(arguments, &server, arguments.rounds)?),
    }
}

/// The figures of one server.
fn measure(arguments: &Arguments, server: &Path, rounds: u32) -> Result<Vec<report::Row>> {
    let setup = Setup {
        binary: server.to_owned(),
        rounds: rounds.max(1),
        duration: Duration::from_secs(arguments.seconds),
        folder: workspace::scratch_directory("bench")?,
    };
    let rows = match &arguments.bench {
        Bench::SingleNull => single::into_null(&setup),
        Bench::SingleSqlite => single::into_sqlite(&setup),
        Bench::SingleKeyed => single::keyed(&setup),
        Bench::StoredAck => stored_ack::run(&setup),
        Bench::BatchNull(options) => batch::into_null(&setup, options),
        Bench::Intakes(options) => intakes::run(&setup, options),
        Bench::SqliteSustained(options) => sustained::run(&setup, options),
        Bench::Postgres(options) => drain::run::<PostgresStore>(&setup, options),
        Bench::Redis(options) => drain::run::<RedisStore>(&setup, options),
        Bench::Opensearch(options) => drain::run::<OpenSearchStore>(&setup, options),
        Bench::Swift(options) => drain::run::<SwiftStore>(&setup, options),
        Bench::Hop => hop::run(&setup),
        Bench::Bridge => bridge::run(&setup),
        Bench::Reads => reads::run(&setup),
        Bench::HopMemory(options) => hop_memory::run(&setup, options),
        Bench::Memory(options) => memory::run(&setup, options),
        Bench::Client(options) => client::run(&setup, options),
        Bench::Overload(options) => overload::run(&setup, options),
        Bench::DeadSink => dead_sink::run(&setup),
        Bench::MixedLoad => mixed_load::run(&setup),
        Bench::ManyTypes(options) => many_types::run(&setup, options),
        Bench::ManyGroups(options) => many_groups::run(&setup, options),
        Bench::Steps(options) => steps::run(&setup, options),
        Bench::Start => start::run(&setup),
        Bench::Stores(options) => stores::run(&setup, options),
    };
    std::fs::remove_dir_all(&setup.folder)?;
    rows
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Bench(arguments) => run(&arguments),
        Task::Reference(arguments) => reference::run(&arguments),
        Task::ManyGateways(options) => many_gateways::run(&options),
        Task::StoreDown(options) => store_down::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
