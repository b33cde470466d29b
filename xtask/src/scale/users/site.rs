//! A PostgreSQL server with nine databases, Swift with images, and a Forebay in front of them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;
use testkit::swift::{KEY, SwiftServer, USER};

use super::super::Setup;
use super::images;
use super::run::{self, Measured};
use super::variant::{COMMON, SHARDS, Variant};
use super::watch::Used;
use crate::server::Launch;

/// Users up to this number are evenly in all databases, and all others in the common one: the values of all shards are one condition, which
/// has at most 8,192 bytes.
const SPREAD_USERS: u32 = 1_140;
/// The time in which all users log in, unless the load is shorter than three times that.
const RAMP_SECONDS: u64 = 30;
/// How much later PostgreSQL's answers arrive at a distance.
const DISTANCE: Duration = Duration::from_millis(10);

/// Everything that the users need.
pub(super) struct Site<'a> {
    setup: &'a Setup,
    users: u32,
    postgres: PostgresServer,
    distance: Proxy,
    swift: SwiftServer,
    launch: Option<Launch>,
    /// The number of loads so far.
    loads: u32,
}

impl<'a> Site<'a> {
    pub(super) fn start(setup: &'a Setup, users: u32) -> Result<Self> {
        let postgres = PostgresServer::start_with(&["shared_buffers=128MB", "max_connections=100"]);
        let postgres = postgres.context("PostgreSQL is missing: `cargo xtask services` installs it")?;
        let swift = SwiftServer::start().context("Swift is missing: `cargo xtask services` installs it")?;
        for database in databases() {
            postgres.psql(&format!("create database {database}"));
        }
        let distance = Proxy::delayed(&postgres.socket(), DISTANCE);
        Ok(Self { setup, users, postgres, distance, swift, launch: None, loads: 0 })
    }

    /// Starts the server over the same data, and lets the users act.
    pub(super) fn measure(&mut self, variant: Variant, seconds: u64) -> Result<Measured> {
        let config = self.config(variant);
        let is_first = self.launch.is_none();
        let launch = match self.launch.take() {
            Some(launch) => launch,
            None => Launch::new(&self.setup.binary, &self.setup.folder, Some(&config))?,
        };
        launch.write_config(&config)?;
        let server = launch.ready()?;
        if is_first {
            images::post(launch.intake)?;
            server.wait_stored()?;
            std::fs::write(self.file("images.txt"), images::names(&self.swift)?)?;
        }
        self.loads += 1;
        std::fs::write(self.file("users.toml"), self.scenario(seconds))?;
        let before = server.metrics()?;
        let (url, scenario) = (format!("http://{}", launch.intake), self.file("users.toml"));
        let load = || run::bench(&self.setup.binary, &url, &scenario, seconds);
        let (used, report) = Used::during(variant, &self.postgres, &server, load)?;
        let measured = Measured::new(report, [before, server.metrics()?], used);
        measured.print(variant.name)?;
        server.stop()?;
        self.launch = Some(launch);
        Ok(measured)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.setup.folder.join(name)
    }

    fn url(&self, database: &str, is_far: bool) -> String {
        if is_far {
            return format!("postgres://postgres@{}/{database}?sslmode=disable", self.distance.address());
        }
        self.postgres.url_of(database)
    }

    fn config(&self, variant: Variant) -> String {
        let Variant { common, shard, object_cache, is_far, .. } = variant;
        let mut text = format!(
            "[gateway]\nobject_cache = \"{object_cache}\"\n\n[types.login]\nroutes = [\"orders\"]\n\n[types.task]\n\
             routes = [\"orders\"]\n\n[types.shot]\nroutes = [\"images\"]\n\n[sinks.images]\nkind = \"swift\"\n\
             auth = \"http://{}/auth/v1.0\"\nuser = \"{USER}\"\nkey = \"{KEY}\"\ncontainer = \"{}\"\n\
             object_from = \"/image\"\nobject_type_from = \"/type\"\nmax_age = \"1s\"\nserve = true\n\
             revalidate = \"{}s\"\n\n[sinks.orders]\nkind = \"postgres\"\nurl = \"{}\"\ntable = \"orders\"\n\
             shard_by = \"/user\"\n{}",
            self.swift.address(),
            images::CONTAINER,
            images::REVALIDATE_SECONDS,
            self.url(COMMON, is_far),
            common.settings()
        );
        for number in 1..=SHARDS {
            let users = (number..=SPREAD_USERS).step_by(SHARDS as usize + 1).map(|user| format!("u{user}"));
            // A String takes every text.
            let _ = write!(
                text,
                "\n[sinks.orders.shards.s{number}]\nurl = \"{}\"\nvalues = {:?}\n{}",
                self.url(&format!("s{number}"), is_far),
                users.collect::<Vec<_>>(),
                shard.settings()
            );
        }
        text
    }

    /// Each load has other keys, so a login is never a duplicate.
    fn scenario(&self, seconds: u64) -> String {
        let (users, load, ramp) = (self.users, self.loads, RAMP_SECONDS.min(seconds / 3));
        format!(
            "[users]\ncount = {users}\nramp = \"{ramp}s\"\nthink = \"10s\"\n\n\
             [[step]]\nname = \"login\"\npost = \"/ingest/event/login\"\nack = \"stored\"\nkey = \"{load}-{{user}}\"\n\
             body = '{{\"user\": \"u{{user}}\"}}'\n\n\
             [[step]]\nname = \"own\"\nweight = 3\n\
             get = \"/events?type=login&key={load}-{{user}}&shard=u{{user}}&limit=20\"\n\n\
             [[step]]\nname = \"task\"\nweight = 1\npost = \"/ingest/event/task\"\n\
             body = '{{\"user\": \"u{{user}}\", \"number\": {{1..1000000}}}}'\n\n\
             [[step]]\nname = \"image\"\nweight = 1\nget = \"/objects/images/{{line:images.txt}}\"\n"
        )
    }
}

fn databases() -> impl Iterator<Item = String> {
    std::iter::once(COMMON.to_owned()).chain((1..=SHARDS).map(|number| format!("s{number}")))
}
