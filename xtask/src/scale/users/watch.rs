//! What a run uses: connections to each database, and the server's memory, each second.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use testkit::postgres::PostgresServer;

use super::variant::{COMMON, SHARDS, Variant};
use crate::clients::with_clients;
use crate::server::Server;

const EVERY: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_millis(50);
const MIB: f64 = 1024.0 * 1024.0;
const CONNECTIONS: &str = "select datname, count(*) from pg_stat_activity where backend_type = 'client backend' \
                           and datname <> 'postgres' group by datname";

/// The samples of a run.
pub(super) struct Used {
    variant: Variant,
    /// The most connections to each database at the same time.
    by_database: BTreeMap<String, u32>,
    /// The most connections to all of them at the same time.
    total: u32,
    /// Resident bytes.
    memory: Vec<u64>,
}

impl Used {
    /// Samples while `act` runs.
    pub(super) fn during<T>(
        variant: Variant,
        postgres: &PostgresServer,
        server: &Server,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<(Self, T)> {
        let is_over = AtomicBool::new(false);
        let watch = |_| {
            let mut used = Self { variant, by_database: BTreeMap::new(), total: 0, memory: Vec::new() };
            while !is_over.load(Ordering::SeqCst) {
                let begun = Instant::now();
                used.sample(postgres, server)?;
                while begun.elapsed() < EVERY && !is_over.load(Ordering::SeqCst) {
                    thread::sleep(WAIT);
                }
            }
            Ok(used)
        };
        let (used, done) = with_clients(1, watch, act, || is_over.store(true, Ordering::SeqCst))?;
        Ok((used.into_iter().next().context("one client watches")?, done))
    }

    fn sample(&mut self, postgres: &PostgresServer, server: &Server) -> Result<()> {
        let mut total = 0;
        for row in postgres.psql(CONNECTIONS).lines() {
            let (database, count) = row.split_once('|').context("a row has two columns")?;
            let count: u32 = count.parse()?;
            total += count;
            let most = self.by_database.entry(database.to_owned()).or_default();
            *most = count.max(*most);
        }
        self.total = self.total.max(total);
        self.memory.push(server.process.memory()?.now);
        Ok(())
    }

    /// The most connections to the common database, to a shard and to all: what, how many, and how many are allowed.
    pub(super) fn connections_most(&self) -> [(&'static str, u32, u32); 3] {
        let common = self.by_database.get(COMMON).copied().unwrap_or_default();
        let shards = self.by_database.iter().filter(|(name, _)| *name != COMMON).map(|(_, count)| *count);
        let (of_common, of_shard) = (self.variant.common.sum(), self.variant.shard.sum());
        [
            ("the common database", common, of_common),
            ("a shard", shards.max().unwrap_or_default(), of_shard),
            ("all databases", self.total, of_common + SHARDS * of_shard),
        ]
    }

    /// Memory after a fifth of the time, and the most of the last fifth.
    pub(super) fn memory_mib(&self) -> (f64, f64) {
        let fifth = self.memory.len() / 5;
        let early = self.memory.get(fifth).copied().unwrap_or_default();
        let late = self.memory.iter().rev().take(fifth.max(1)).copied().max().unwrap_or_default();
        (early as f64 / MIB, late as f64 / MIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_memory_are_summed_up() {
        let by_database = [(COMMON, 9), ("s1", 3), ("s2", 4)].map(|(name, count)| (name.to_owned(), count)).into();
        let memory = (1..=10).map(|mib| mib << 20).collect();
        let used = Used { variant: Variant::USUAL, by_database, total: 14, memory };
        let most = used.connections_most();
        assert_eq!(most, [("the common database", 9, 20), ("a shard", 4, 4), ("all databases", 14, 52)]);
        let (early, late) = used.memory_mib();
        assert!((early - 3.0).abs() < 1e-9 && (late - 10.0).abs() < 1e-9, "{early} {late}");
    }
}
