//! The stores that all test programs of a run share: each is started once, and its address passed on. If one isn't installed, each test
//! that needs it reports that it is skipped.

use std::ffi::OsString;
use std::thread;

use anyhow::{Result, anyhow};
use testkit::opensearch::{self, OpenSearch};
use testkit::postgres::{self, PostgresServer};
use testkit::swift::{self, SwiftServer};

/// Running servers. They end with this value.
pub(crate) struct SharedServers {
    postgres: Option<PostgresServer>,
    swift: Option<SwiftServer>,
    opensearch: Option<OpenSearch>,
}

impl SharedServers {
    /// Starts them at the same time.
    pub(crate) fn start() -> Result<Self> {
        thread::scope(|scope| {
            let opensearch = scope.spawn(OpenSearch::start_shared);
            let swift = scope.spawn(SwiftServer::start);
            let postgres = scope.spawn(PostgresServer::start_shared);
            Ok(Self {
                postgres: postgres.join().map_err(|_| anyhow!("PostgreSQL didn't start"))?,
                swift: swift.join().map_err(|_| anyhow!("Swift didn't start"))?,
                opensearch: opensearch.join().map_err(|_| anyhow!("OpenSearch didn't start"))?,
            })
        })
    }

    /// The variables by which test programs find them.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let postgres = self.postgres.as_ref().map(|server| (postgres::SHARED, server.folder().into()));
        let swift = self.swift.as_ref().map(|server| (swift::SHARED, server.address().to_string().into()));
        let opensearch =
            self.opensearch.as_ref().map(|server| (opensearch::SHARED, server.address().to_string().into()));
        [postgres, swift, opensearch].into_iter().flatten().collect()
    }
}
