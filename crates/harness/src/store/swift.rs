//! OpenStack Swift with one copy of everything, read over its own protocol.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use super::{BulkLoaded, CampaignStore, StoreServer};
use crate::workspace::has_program;
use testkit::swift::{KEY, SwiftClient, SwiftProcess, SwiftServer, USER};

/// The container of the sink.
const CONTAINER: &str = "events";
/// The container of the tool.
const UPLOADED: &str = "uploaded";
const DESCRIBED: &str = ".manifest.json";
/// No line of an object is shorter.
const LINE_BYTES_MIN: u64 = 150;
/// The servers are asked for the number of stored bytes once in this time: each answer takes one of them some milliseconds.
const ASKED_EACH: Duration = Duration::from_millis(50);
const MEGABYTE: f64 = 1e6;

/// The servers, and their last figures.
pub struct SwiftStore {
    server: SwiftServer,
    /// The client has a token that ends with the servers.
    client: Option<SwiftClient>,
    /// The bytes of the container in the last answer, and when they were last requested.
    bytes: u64,
    asked: Option<Instant>,
    /// Which of the servers is killed first.
    first_killed: usize,
}

impl SwiftStore {
    fn new(server: SwiftServer) -> Self {
        Self { server, client: None, bytes: 0, asked: None, first_killed: 0 }
    }

    pub(super) fn kill_part(&self, part: SwiftProcess) {
        self.server.kill_part(part);
    }

    pub(super) fn run_part(&self, part: SwiftProcess) {
        self.server.run_part(part);
    }

    fn settings(&self, more: &str) -> String {
        let auth = self.auth();
        format!(
            "kind = \"swift\"\nauth = \"{auth}\"\nuser = \"{USER}\"\nkey = \"{KEY}\"\ncontainer = \"{CONTAINER}\"\n{more}"
        )
    }

    fn auth(&self) -> String {
        format!("http://{}/auth/v1.0", self.server.address())
    }

    /// The bytes that the container's server counts; `None` if it doesn't answer.
    fn ask_bytes(&mut self) -> Option<u64> {
        if self.client.is_none() {
            self.client = SwiftClient::try_new(self.server.address());
        }
        let response = self.client.as_ref()?.try_ask("HEAD", &format!("/{CONTAINER}"), &[], b"");
        let bytes = response.as_ref().and_then(|response| match response.status {
            404 => Some(0),
            _ => response.header("X-Container-Bytes-Used")?.parse().ok(),
        });
        if bytes.is_none() {
            // Its token may have ended.
            self.client = None;
        }
        bytes
    }

    /// The sink's description of each of its objects, with the listings brought up to date.
    fn manifests(&self) -> Result<Vec<Value>> {
        self.server.update_listings();
        let client = self.server.client();
        let names = client.list(CONTAINER);
        let described = names.iter().filter(|name| name.ends_with(DESCRIBED));
        let manifest = |name: &String| {
            let text = client.get(CONTAINER, name).with_context(|| format!("{name} is listed and isn't there"))?;
            serde_json::from_slice(&text).with_context(|| format!("{name} isn't JSON"))
        };
        described.map(manifest).collect()
    }

    /// Returns each object that has a manifest, and compares it with that.
    fn read_objects(&self, mut read: impl FnMut(&str, &[u8]) -> Result<()>) -> Result<()> {
        let client = self.server.client();
        for manifest in self.manifests()? {
            let name = manifest["file"].as_str().context("a manifest names its object")?;
            let bytes = client.get(CONTAINER, name).with_context(|| format!("{name} is described and isn't there"))?;
            if manifest["bytes"].as_u64() != Some(bytes.len() as u64) {
                bail!("{name} has {} bytes, its manifest says {}", bytes.len(), manifest["bytes"]);
            }
            read(name, &bytes)?;
        }
        Ok(())
    }

    /// Passes on a member of each line, unchanged.
    fn read_lines(&self, member: &str, mut read: impl FnMut(&RawValue) -> Result<()>) -> Result<()> {
        self.read_objects(|name, lines| {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                let members: HashMap<String, &RawValue> = serde_json::from_slice(line)?;
                read(members.get(member).with_context(|| format!("{name} has a line without {member}"))?)?;
            }
            Ok(())
        })
    }

    /// The sum of a number of all manifests.
    fn sum(&self, of: &str) -> Result<f64> {
        let numbers = self.manifests()?.into_iter().map(|manifest| manifest[of].as_f64());
        numbers.sum::<Option<f64>>().with_context(|| format!("a manifest has no number {of}"))
    }

    fn remove_objects(&self, container: &str) {
        self.server.update_listings();
        let client = self.server.client();
        for name in client.list(container) {
            client.ask("DELETE", &format!("/{container}/{name}"), &[], b"");
        }
    }
}

impl CampaignStore for SwiftStore {
    const NAME: &'static str = "Swift";

    fn start() -> Result<Option<Self>> {
        Ok(SwiftServer::start().map(Self::new))
    }
}

impl StoreServer for SwiftStore {
    /// Small objects: kills have to happen while many are in flight.
    fn sink(&self) -> String {
        self.settings("max_bytes = \"1MiB\"\nmax_age = \"1s\"\nenvelope = true\n")
    }

    fn run(&mut self) -> Result<()> {
        self.server.run();
        Ok(())
    }

    /// Each time another one ends first: an object is interrupted before, during and after its listing.
    fn kill(&mut self) -> Result<()> {
        let parts = SwiftProcess::ALL.into_iter().cycle().skip(self.first_killed).take(SwiftProcess::ALL.len());
        parts.for_each(|part| self.server.kill_part(part));
        self.first_killed = (self.first_killed + 1) % SwiftProcess::ALL.len();
        Ok(())
    }

    fn stored(&mut self) -> u64 {
        if self.asked.is_none_or(|asked| asked.elapsed() >= ASKED_EACH) {
            self.bytes = self.ask_bytes().unwrap_or(self.bytes);
            self.asked = Some(Instant::now());
        }
        self.bytes / LINE_BYTES_MIN
    }

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        self.read_lines("payload", |payload| Ok(writeln!(out, "{payload}")?))
    }

    fn ids(&mut self) -> Result<Option<u64>> {
        let mut ids = HashSet::new();
        self.read_lines("id", |id| {
            ids.insert(xxh3_128(id.get().as_bytes()));
            Ok(())
        })?;
        Ok(Some(ids.len() as u64))
    }
}

impl BulkLoaded for SwiftStore {
    const TOOL: &'static str = "swift upload";
    const BAR: f64 = 0.5;
    const RATE: &'static str = "MB/s";
    /// 1 GiB of lines.
    const EVENTS: u64 = 3_200_000;

    fn start_large() -> Result<Self> {
        if !has_program("swift") {
            bail!("the client of Swift is missing: `cargo xtask services` installs it");
        }
        Self::require()
    }

    fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// Objects as large as they are by default. The last one of a backlog doesn't wait for more events.
    fn usual_sink(&self) -> String {
        self.settings("max_age = \"1s\"\n")
    }

    fn prompt_sink(&self) -> String {
        self.settings("max_age = \"1s\"\nenvelope = true\n")
    }

    fn empty(&mut self) -> Result<()> {
        self.remove_objects(CONTAINER);
        Ok(())
    }

    fn events(&mut self) -> Result<f64> {
        self.sum("records")
    }

    fn amount(&mut self) -> Result<f64> {
        Ok(self.sum("bytes")? / MEGABYTE)
    }

    /// A folder with a file for each object. Their manifests are left out: the tool has less to do.
    fn save(&mut self, folder: &Path) -> Result<()> {
        fs::create_dir(folder)?;
        self.read_objects(|name, bytes| Ok(fs::write(folder.join(name), bytes)?))
    }

    fn before_load(&mut self) -> Result<()> {
        self.remove_objects(UPLOADED);
        Ok(())
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        let mut upload = Command::new("swift");
        upload.args(["-A", &self.auth(), "-U", USER, "-K", KEY, "upload", UPLOADED]);
        for entry in fs::read_dir(folder)? {
            upload.arg(entry?.file_name());
        }
        upload.current_dir(folder).env("no_proxy", "127.0.0.1").stdout(Stdio::null());
        if !upload.status().context("starting swift")?.success() {
            bail!("swift upload failed");
        }
        Ok(())
    }

    fn loaded(&mut self) -> Result<f64> {
        self.server.update_listings();
        let response = self.server.client().ask("HEAD", &format!("/{UPLOADED}"), &[], b"");
        let bytes: f64 = response.header("X-Container-Bytes-Used").context("a container has a size")?.parse()?;
        Ok(bytes / MEGABYTE)
    }
}
