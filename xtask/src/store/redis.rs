//! A Redis server that waits for its disk before it answers.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::TcpListener;
use std::path::Path;

use anyhow::{Context, Result};

use super::Store;
use server::{RedisServer, Value};

#[path = "../../../crates/sink/tests/redis_server/mod.rs"]
mod server;

/// Entries that are read at a time.
const PAGE: &str = "10000";
/// The stream that events become entries of.
const KEY: &str = "events";

/// A server and the port that it listens on.
pub(crate) struct Redis {
    server: RedisServer,
    port: u16,
}

impl Redis {
    /// The next page of entries behind `last`: their ids, and their payloads.
    fn page(&self, last: &str) -> Vec<(String, Vec<u8>)> {
        let entries = self.server.ask(&["XRANGE", KEY, &format!("({last}"), "+", "COUNT", PAGE]).list();
        let parts = |entry: Value| {
            let mut parts = entry.list().into_iter();
            let id = parts.next().map(Value::text).unwrap_or_default();
            let payload = parts.next().and_then(|fields| fields.list().into_iter().nth(3)).map(Value::bytes);
            (id, payload.unwrap_or_default())
        };
        entries.into_iter().map(parts).collect()
    }
}

impl Store for Redis {
    const NAME: &'static str = "Redis";

    fn start() -> Result<Option<Self>> {
        let port = TcpListener::bind("127.0.0.1:0").context("finding a free port")?.local_addr()?.port();
        let settings = ["--appendonly", "yes", "--appendfsync", "always", "--port", &port.to_string()];
        Ok(RedisServer::start_with(&settings).map(|server| Self { server, port }))
    }

    fn sink(&self) -> String {
        format!("kind = \"redis\"\nurl = \"redis://127.0.0.1:{}\"\nmode = \"stream\"\nkey = \"{KEY}\"\n", self.port)
    }

    fn run(&mut self) -> Result<()> {
        self.server.run();
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        self.server.kill();
        Ok(())
    }

    fn stored(&mut self) -> u64 {
        self.server.ask(&["XLEN", KEY]).number()
    }

    fn read_payloads(&mut self, folder: &Path, read: impl FnOnce(&mut dyn BufRead) -> Result<()>) -> Result<()> {
        let path = folder.join("payloads");
        let mut file = BufWriter::new(File::create(&path)?);
        let mut last = "0".to_owned();
        loop {
            let page = self.page(&last);
            let Some((id, _)) = page.last() else { break };
            last.clone_from(id);
            for (_, payload) in &page {
                file.write_all(payload)?;
                file.write_all(b"\n")?;
            }
        }
        file.flush()?;
        read(&mut BufReader::new(File::open(path)?))
    }
}
