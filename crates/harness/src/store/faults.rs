//! Real faults of stores that have a server: full, closed to writes, misconfigured, or with a part of it gone.

use std::time::Duration;

use anyhow::Result;
use testkit::swift::SwiftProcess;

use super::{CampaignStore, NatsStore, OpenSearchStore, RedisStore, SwiftStore};
use crate::server::Server;

/// A store that a test can make fail without losing stored events.
pub trait FaultyStore: CampaignStore {
    /// Its faults by name.
    const FAULTS: &'static [&'static str];
    /// The fewest attempts during a fault: none of them may decide about an event.
    const FAILURES: u32 = 4;

    /// How long each client rests between two batches: the store keeps up with them.
    const REST: Duration = Duration::from_millis(10);

    /// Begins a fault. `server` is the Forebay process that delivers into the store.
    fn begin(&mut self, fault: &str, round: u32, server: &Server) -> Result<()>;

    /// Ends it.
    fn end(&mut self, fault: &str) -> Result<()>;
}

impl RedisStore {
    fn configure(&self, setting: &str, value: &str) -> Result<()> {
        self.command(&["CONFIG", "SET", setting, value])
    }
}

impl FaultyStore for RedisStore {
    const FAULTS: &'static [&'static str] = &["OOM", "MISCONF", "READONLY", "NOREPLICAS"];

    fn begin(&mut self, fault: &str, _: u32, _: &Server) -> Result<()> {
        match fault {
            "OOM" => self.configure("maxmemory", "1mb"),
            "MISCONF" => self.fail_to_save(),
            "READONLY" => self.command(&["REPLICAOF", "127.0.0.1", "1"]),
            _ => self.configure("min-replicas-to-write", "1"),
        }
    }

    fn end(&mut self, fault: &str) -> Result<()> {
        match fault {
            "OOM" => self.configure("maxmemory", "0"),
            "MISCONF" => self.save_again(),
            "READONLY" => self.command(&["REPLICAOF", "NO", "ONE"]),
            _ => self.configure("min-replicas-to-write", "0"),
        }
    }
}

impl FaultyStore for NatsStore {
    const FAULTS: &'static [&'static str] = &["full stream", "no subject"];

    fn begin(&mut self, fault: &str, _: u32, _: &Server) -> Result<()> {
        if fault == "full stream" { self.limit(true) } else { self.listen("other.>") }
    }

    fn end(&mut self, fault: &str) -> Result<()> {
        if fault == "full stream" { self.limit(false) } else { self.listen("events.>") }
    }
}

impl FaultyStore for OpenSearchStore {
    const FAULTS: &'static [&'static str] =
        &["write block", "flood stage", "closed index", "read-only cluster", "missing pipeline"];

    fn begin(&mut self, fault: &str, _: u32, _: &Server) -> Result<()> {
        match fault {
            "write block" => self.set_index("blocks.write", "true"),
            "flood stage" => self.set_index("blocks.read_only_allow_delete", "true"),
            "closed index" => self.post("/events/_close"),
            "read-only cluster" => self.set_read_only("true"),
            _ => self.set_index("default_pipeline", "\"missing\""),
        }
    }

    fn end(&mut self, fault: &str) -> Result<()> {
        match fault {
            "write block" => self.set_index("blocks.write", "null"),
            "flood stage" => self.set_index("blocks.read_only_allow_delete", "null"),
            "closed index" => self.post("/events/_open"),
            "read-only cluster" => self.set_read_only("null"),
            _ => self.set_index("default_pipeline", "null"),
        }
    }
}

impl OpenSearchStore {
    fn set_index(&self, setting: &str, value: &str) -> Result<()> {
        self.set("/events/_settings", &format!(r#"{{"index.{setting}": {value}}}"#))
    }

    fn set_read_only(&self, value: &str) -> Result<()> {
        self.set("/_cluster/settings", &format!(r#"{{"persistent": {{"cluster.blocks.read_only": {value}}}}}"#))
    }
}

impl FaultyStore for SwiftStore {
    const FAULTS: &'static [&'static str] = &["object server gone", "proxy gone"];
    /// Each takes some seconds, because Swift itself retries for long.
    const FAILURES: u32 = 1;

    fn begin(&mut self, fault: &str, _: u32, _: &Server) -> Result<()> {
        self.kill_part(part(fault));
        Ok(())
    }

    fn end(&mut self, fault: &str) -> Result<()> {
        self.run_part(part(fault));
        Ok(())
    }
}

fn part(fault: &str) -> SwiftProcess {
    if fault == "proxy gone" { SwiftProcess::Proxy } else { SwiftProcess::Object }
}
