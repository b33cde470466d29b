//! The processes that a script orders: gateways, writers, servers, PostgreSQL and Redis. All of them end with the value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::clock::MovedClock;
use super::order::{Answer, Order, Role, Store};
use crate::server::{Launch, ProcessRole, Server};
use crate::store::{CampaignStore, PostgresStore, RedisStore, StoreServer};
use crate::wrk::{self, WrkLoad};
use testkit::ports::free_port;

/// The running processes.
pub(super) struct Host {
    binary: PathBuf,
    folder: PathBuf,
    seats: BTreeMap<String, Seat>,
    postgres: Option<PostgresStore>,
    redis: Option<RedisStore>,
    clock: Option<MovedClock>,
}

/// A process that is started again and again.
struct Seat {
    launch: Launch,
    server: Option<Server>,
}

impl Host {
    /// Nothing runs yet.
    pub(super) fn new(binary: &Path, folder: &Path) -> Self {
        let (binary, folder) = (binary.to_path_buf(), folder.to_path_buf());
        Self { binary, folder, seats: BTreeMap::new(), postgres: None, redis: None, clock: None }
    }

    /// Does what is ordered.
    pub(super) fn obey(&mut self, order: Order) -> Answer {
        self.act(order).unwrap_or_else(|error| Answer::Error(format!("{error:#}")))
    }

    fn act(&mut self, order: Order) -> Result<Answer> {
        match order {
            Order::Launch { name, role, config, files, has_moved_clock } => {
                let folder = self.folder.join(&name);
                let mut launch = Launch::fresh(role.process(), &self.binary, &folder, &config)?;
                if has_moved_clock {
                    launch = launch.with_environment(self.clock()?.environment());
                }
                for (file, text) in files {
                    std::fs::write(folder.join(&file), text).with_context(|| format!("writing {file}"))?;
                }
                self.seats.insert(name.clone(), Seat { launch, server: None });
                self.start(&name)
            }
            Order::MoveClock { hours } => self.clock()?.set(hours).map(|()| Answer::Done),
            Order::Kill { name } => self.running(&name)?.kill().map(|()| Answer::Done),
            Order::Stop { name } => self.running(&name)?.stop().map(|()| Answer::Done),
            Order::Start { name, config, program } => {
                let launch = &mut self.seat(&name)?.launch;
                config.map_or(Ok(()), |config| launch.write_config(&config))?;
                if let Some(program) = program {
                    *launch = launch.with_program(&program);
                }
                self.start(&name)
            }
            Order::Configure { name, config } => {
                self.seat(&name)?.launch.write_config(&config)?;
                Ok(Answer::Done)
            }
            Order::RunStore { store: Store::Postgres } => run_store(&mut self.postgres),
            Order::RunStore { store: Store::Redis } => run_store(&mut self.redis),
            Order::KillStore { store: Store::Postgres } => kill_store(&mut self.postgres),
            Order::KillStore { store: Store::Redis } => kill_store(&mut self.redis),
            Order::Sql { sql } => {
                Ok(Answer::Text(self.postgres.as_ref().context("PostgreSQL isn't started")?.psql(&sql)?))
            }
            Order::Load { intake, milliseconds } => {
                let duration = Duration::from_millis(milliseconds);
                let load = WrkLoad { connections: 64, duration, is_keyed: false };
                Ok(Answer::Rate(wrk::run(intake, load, &self.folder)?.requests_per_second))
            }
            Order::Ports { count } => Ok(Answer::Ports((0..count).map(|_| free_port()).collect())),
        }
    }

    fn seat(&mut self, name: &str) -> Result<&mut Seat> {
        self.seats.get_mut(name).with_context(|| format!("{name} was never launched"))
    }

    /// The clock of all processes with a moved one; the first of them creates it.
    fn clock(&mut self) -> Result<&MovedClock> {
        let clock = match self.clock.take() {
            Some(clock) => clock,
            None => MovedClock::new(&self.binary, &self.folder)?,
        };
        Ok(self.clock.insert(clock))
    }

    fn running(&mut self, name: &str) -> Result<Server> {
        self.seat(name)?.server.take().with_context(|| format!("{name} isn't running"))
    }

    fn start(&mut self, name: &str) -> Result<Answer> {
        let folder = self.folder.join(name);
        let seat = self.seat(name)?;
        if seat.server.is_some() {
            bail!("{name} is running");
        }
        let server = seat.launch.ready().with_context(|| format!("starting {name}"))?;
        let Launch { intake, admin, data, .. } = seat.launch.clone();
        let pid = server.process.id();
        seat.server = Some(server);
        Ok(Answer::Process { intake, admin, pid, data, folder })
    }
}

fn run_store<S: CampaignStore>(store: &mut Option<S>) -> Result<Answer> {
    match store {
        Some(store) => store.run()?,
        None => *store = Some(S::require()?),
    }
    Ok(Answer::Text(store.as_ref().map(StoreServer::sink).unwrap_or_default()))
}

fn kill_store<S: StoreServer>(store: &mut Option<S>) -> Result<Answer> {
    store.as_mut().context("this store isn't started")?.kill()?;
    Ok(Answer::Done)
}

impl Role {
    const fn process(self) -> ProcessRole {
        match self {
            Self::Serve => ProcessRole::Serve,
            Self::Gateway => ProcessRole::Gateway,
            Self::Writer => ProcessRole::Writer,
        }
    }
}
