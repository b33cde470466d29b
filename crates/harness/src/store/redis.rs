//! A Redis server that waits for its disk before it answers.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use xxhash_rust::xxh3::xxh3_128;

use super::{BulkLoaded, CampaignStore, Shared, StoreServer};
use testkit::ports::free_port;
use testkit::redis::{RedisReply, RedisServer};

/// Entries that are read at a time.
const PAGE: &str = "10000";
/// The stream that events become entries of.
const KEY: &str = "events";
/// A snapshot takes less.
const SAVE_LIMIT: Duration = Duration::from_secs(30);
/// The stream that the tool writes to.
const PIPED: &str = "piped";

/// A server and the port that it listens on.
pub struct RedisStore {
    server: RedisServer,
    port: u16,
}

impl RedisStore {
    /// A server that waits for its disk, with additional settings.
    fn start_with(more: &[&str]) -> Result<Option<Self>> {
        let port = free_port();
        let number = port.to_string();
        let settings = ["--appendonly", "yes", "--appendfsync", "always", "--port", &number];
        Ok(RedisServer::start_with(&[&settings, more].concat()).map(|server| Self { server, port }))
    }

    /// Gives the server an order.
    pub(super) fn command(&self, words: &[&str]) -> Result<()> {
        self.server.ask(words);
        Ok(())
    }

    /// Its snapshot can no longer be replaced, so it rejects writes (MISCONF).
    pub(super) fn fail_to_save(&self) -> Result<()> {
        let snapshot = self.server.folder().join("dump.rdb");
        let _ = std::fs::remove_file(&snapshot);
        std::fs::create_dir(&snapshot).context("creating a directory with the snapshot's name")?;
        self.command(&["CONFIG", "SET", "save", "3600 1"])?;
        self.save("err")
    }

    pub(super) fn save_again(&self) -> Result<()> {
        std::fs::remove_dir(self.server.folder().join("dump.rdb")).context("removing that directory")?;
        self.save("ok")?;
        self.command(&["CONFIG", "SET", "save", ""])
    }

    /// Writes a snapshot, which ends so.
    fn save(&self, wanted: &str) -> Result<()> {
        self.command(&["BGSAVE"])?;
        let begun = Instant::now();
        while !self.server.ask(&["INFO", "persistence"]).text().contains(&format!("rdb_last_bgsave_status:{wanted}")) {
            if begun.elapsed() > SAVE_LIMIT {
                bail!("no snapshot ended with {wanted}");
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// The next page of entries after `last`: their ids, and the names and values that each has.
    fn page(&self, last: &str) -> Vec<(String, Vec<Vec<u8>>)> {
        let entries = self.server.ask(&["XRANGE", KEY, &format!("({last}"), "+", "COUNT", PAGE]).list();
        let parts = |entry: RedisReply| {
            let mut parts = entry.list().into_iter();
            let id = parts.next().map(RedisReply::text).unwrap_or_default();
            let fields = parts.next().map(RedisReply::list).unwrap_or_default();
            (id, fields.into_iter().map(RedisReply::bytes).collect())
        };
        entries.into_iter().map(parts).collect()
    }

    /// Passes on the names and values of each entry.
    fn each(&self, mut pass: impl FnMut(&[Vec<u8>]) -> Result<()>) -> Result<()> {
        let mut last = "0".to_owned();
        loop {
            let page = self.page(&last);
            let Some((id, _)) = page.last() else { return Ok(()) };
            last.clone_from(id);
            page.iter().try_for_each(|(_, fields)| pass(fields))?;
        }
    }
}

impl CampaignStore for RedisStore {
    const NAME: &'static str = "Redis";

    fn start() -> Result<Option<Self>> {
        Self::start_with(&[])
    }
}

impl StoreServer for RedisStore {
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

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        self.each(|fields| Ok(out.write_all(&[fields.get(3).map(Vec::as_slice).unwrap_or_default(), b"\n"].concat())?))
    }

    fn ids(&mut self) -> Result<Option<u64>> {
        let mut ids = HashSet::new();
        self.each(|fields| {
            ids.extend(fields.get(1).map(|id| xxh3_128(id)));
            Ok(())
        })?;
        Ok(Some(ids.len() as u64))
    }
}

impl Shared for RedisStore {
    fn connections(&self) -> Result<usize> {
        let clients = self.server.ask(&["CLIENT", "LIST", "TYPE", "normal"]).text();
        // Connections that sent this same query belong to this program: one that has just closed may still be listed.
        Ok(clients.lines().filter(|client| !client.contains("cmd=client")).count())
    }

    fn cursors(&self) -> Result<BTreeMap<String, u64>> {
        let fields = self.server.ask(&["HGETALL", &format!("forebay:{{{KEY}}}:cursors")]).list();
        let mut texts = fields.into_iter().map(RedisReply::text);
        let mut cursors = BTreeMap::new();
        while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
            // The others are the mark and the claims.
            if name.contains('/') && !name.starts_with("claim:") {
                let position = value.parse().with_context(|| format!("the cursor of {name} is {value}"))?;
                cursors.insert(name, position);
            }
        }
        Ok(cursors)
    }
}

impl BulkLoaded for RedisStore {
    const TOOL: &'static str = "redis-cli --pipe";
    const BAR: f64 = 0.7;

    /// It doesn't rewrite its log in the midst of a measurement.
    fn start_large() -> Result<Self> {
        let server = Self::start_with(&["--auto-aof-rewrite-percentage", "0"])?;
        server.context("Redis is missing: `cargo xtask services` installs it")
    }

    fn folder(&self) -> &Path {
        self.server.folder()
    }

    fn empty(&mut self) -> Result<()> {
        self.server.ask(&["FLUSHALL"]);
        Ok(())
    }

    fn events(&mut self) -> Result<f64> {
        Ok(self.stored() as f64)
    }

    /// An `XADD` of the same fields for each entry.
    fn save(&mut self, file: &Path) -> Result<()> {
        let mut file = BufWriter::new(File::create(file)?);
        self.each(|fields| {
            let words = [b"XADD".as_slice(), PIPED.as_bytes(), b"*"].into_iter();
            let words: Vec<_> = words.chain(fields.iter().map(Vec::as_slice)).collect();
            write!(file, "*{}\r\n", words.len())?;
            for word in words {
                write!(file, "${}\r\n", word.len())?;
                file.write_all(&[word, b"\r\n"].concat())?;
            }
            Ok(())
        })?;
        Ok(file.flush()?)
    }

    fn before_load(&mut self) -> Result<()> {
        self.empty()
    }

    fn load(&mut self, file: &Path) -> Result<()> {
        let mut pipe = Command::new("redis-cli");
        pipe.args(["-p", &self.port.to_string(), "--pipe"]).stdin(File::open(file)?).stdout(Stdio::null());
        if !pipe.status().context("starting redis-cli")?.success() {
            bail!("redis-cli --pipe failed");
        }
        Ok(())
    }

    fn loaded(&mut self) -> Result<f64> {
        Ok(self.server.ask(&["XLEN", PIPED]).number() as f64)
    }
}
