//! `cargo xtask campaign`: many seeded failures in a row, and after them nothing lost and nothing doubled. The
//! short forms run with the tests; the long ones before a release.
//!
//! To add a campaign: a file with its options, a `run` and a `short`, a row in [`Campaign`], and the short form
//! in the steps of `cargo xtask test`.

pub(crate) mod aggregate_crash;
pub(crate) mod batches;
pub(crate) mod bridge;
pub(crate) mod cross_shard_duplicates;
pub(crate) mod duplicates;
mod four_stores;
mod frame;
pub(crate) mod fsync_order;
pub(crate) mod full_disk;
mod keyed_batches;
pub(crate) mod kills;
mod ledger;
pub(crate) mod loads;
mod memory_disk;
pub(crate) mod package;
pub(crate) mod power_cuts;
pub(crate) mod reloads;
mod rolling_upgrade;
mod sent;
pub(crate) mod slow_clients;
pub(crate) mod sqlite;
pub(crate) mod stops;
pub(crate) mod store_faults;
pub(crate) mod store_kills;
mod stores;
pub(crate) mod tutorial;
pub(crate) mod two_services;

use anyhow::Result;
use clap::Subcommand;

use crate::benchmarks::{Passed, run_bench};
use crate::store::{NatsStore, OpenSearchStore, PostgresStore, RedisStore, SwiftStore};

/// Options of `cargo xtask campaign`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Subcommand)]
enum Campaign {
    /// Power cuts on a simulated disk, which loses any subset and order of the sectors that weren't synced.
    PowerCuts(power_cuts::Options),
    /// SIGKILLs of the server at random times, while clients retry unanswered requests.
    Kills(kills::Options),
    /// Batches with keys, with SIGKILLs in between: every record is stored exactly as often as sent.
    Batches(batches::Options),
    /// Batches that share ids with a large one of another shard, with SIGKILLs: acknowledged events are stored once.
    CrossShardDuplicates(cross_shard_duplicates::Options),
    /// `forebay load` of a packed file, with SIGKILLs of client and server: every line is stored once.
    Loads(loads::Options),
    /// SIGKILLs of PostgreSQL while clients send: each acknowledged event is a row, once.
    PostgresKills(store_kills::Options),
    /// SIGKILLs of NATS while clients send: each acknowledged event is a message of a stream, once.
    NatsKills(store_kills::Options),
    /// SIGKILLs of Redis while clients send: each acknowledged event is an entry of a stream, once.
    RedisKills(store_kills::Options),
    /// SIGKILLs of OpenSearch while clients send: each acknowledged event is a document, once. A restart takes ten seconds:
    /// `--kills 20` are many.
    OpensearchKills(store_kills::Options),
    /// SIGKILLs of Swift while clients send: each acknowledged event is in an object, once.
    SwiftKills(store_kills::Options),
    /// Real faults of every store under load: full disks, I/O errors, read-only files, servers that accept nothing. No event becomes a dead
    /// letter, and each acknowledged event is stored once.
    StoreFaults(store_faults::Options),
    /// Requests over a bridge to workers that are killed, slow, answer twice, late or never, with restarts of NATS: each has its own answer.
    Bridge(bridge::Options),
    /// The same ids repeatedly on many connections, with SIGKILLs: each has one effect.
    Duplicates(duplicates::Options),
    /// A disk that is full repeatedly: by the journal, by other programs, or by its number of files.
    FullDisk(full_disk::Options),
    /// Clients that send or read slowly, say nothing, or connect and leave, while others work normally.
    SlowClients(slow_clients::Options),
    /// SIGTERMs under load: each stop is an orderly one, and no answer is cut.
    Stops(stops::Options),
    /// Configurations that are read again under load, some of them wrong.
    Reloads(reloads::Options),
    /// A gateway and a writer of an older build, upgraded one after the other under load: events wait, and each is stored once.
    RollingUpgrade(rolling_upgrade::Options),
    /// SIGKILLs in the middle of windows: the results of aggregates are those of SQL over the events.
    AggregateCrash(aggregate_crash::Options),
    /// The system calls of a POST: the fdatasync ends before the answer.
    FsyncOrder(fsync_order::Options),
    /// A file of records into all stores at the same time: each holds every event once, byte for byte.
    Stores(stores::Options),
    /// Records through two writers into PostgreSQL, Redis, OpenSearch and Swift, with a SIGKILL of each writer: each holds every event once.
    FourStores(four_stores::Options),
    /// Faults of three writers and SIGKILLs of two gateways before PostgreSQL: each acknowledged event is a row, once.
    TwoServices(two_services::Options),
    /// A thousand gateways through one writer: its connections to the store, its memory, and each event stored once.
    ManyGateways(Passed),
    /// The Debian package on a machine with systemd: installed, upgraded under load, removed, purged.
    Package(package::Options),
    /// The tutorial as a reader types it, with the archive and the package, on a machine with systemd and PostgreSQL.
    Tutorial(frame::FrameOptions),
    /// One store is down while millions of events arrive for it: the effect on other stores, memory and the drain afterwards.
    StoreDown(Passed),
}

/// Runs one campaign.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.campaign {
        Campaign::PowerCuts(options) => power_cuts::run(options),
        Campaign::Kills(options) => kills::run(options),
        Campaign::Batches(options) => batches::run(options),
        Campaign::CrossShardDuplicates(options) => cross_shard_duplicates::run(options),
        Campaign::Loads(options) => loads::run(options),
        Campaign::PostgresKills(options) => store_kills::run::<PostgresStore>(options),
        Campaign::NatsKills(options) => store_kills::run::<NatsStore>(options),
        Campaign::RedisKills(options) => store_kills::run::<RedisStore>(options),
        Campaign::OpensearchKills(options) => store_kills::run::<OpenSearchStore>(options),
        Campaign::SwiftKills(options) => store_kills::run::<SwiftStore>(options),
        Campaign::StoreFaults(options) => store_faults::run(options),
        Campaign::Bridge(options) => bridge::run(options),
        Campaign::Duplicates(options) => duplicates::run(options),
        Campaign::FullDisk(options) => full_disk::run(options),
        Campaign::SlowClients(options) => slow_clients::run(options),
        Campaign::Stops(options) => stops::run(options),
        Campaign::Reloads(options) => reloads::run(options),
        Campaign::RollingUpgrade(options) => rolling_upgrade::run(options),
        Campaign::AggregateCrash(options) => aggregate_crash::run(options),
        Campaign::FsyncOrder(options) => fsync_order::run(options),
        Campaign::Stores(options) => stores::run(options),
        Campaign::FourStores(options) => four_stores::run(options),
        Campaign::TwoServices(options) => two_services::run(options),
        Campaign::ManyGateways(passed) => run_bench("many-gateways", passed),
        Campaign::Package(options) => package::run(options),
        Campaign::Tutorial(options) => tutorial::run(options),
        Campaign::StoreDown(passed) => run_bench("store-down", passed),
    }
}
