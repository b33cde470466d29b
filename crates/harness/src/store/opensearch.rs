//! A separate OpenSearch server, queried over its HTTP API; and `curl _bulk`, its usual tool for loading.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use generator::{Generator, RecordKind};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{BulkLoaded, CampaignStore, StoreServer};
use testkit::opensearch::{OpenSearch as Node, SMALL, try_ask};
use testkit::tools::tool;

/// Of a server for bulk loads: compiled as in production, with memory enough for the requests in flight.
const LARGE: &[&str] = &["-Xms1g", "-Xmx1g"];

/// The index that events become documents of, the one that the tool fills, and the one that is filled to warm the server up.
const INDEX: &str = "events";
const LOADED: &str = "loaded";
const WARM: &str = "warm";

/// Of indices that accept any payload.
const ANY_PAYLOAD: &str = r#", "mappings": {"dynamic": false}"#;
/// Documents that are read at a time.
const PAGE: usize = 5_000;
/// How long the server keeps the context of a scrolled reading.
const KEPT: &str = "5m";

/// The sink's default for a request's bytes, and the bytes that it counts for each document in addition to its payload. In a saved file
/// a document has its time already, so both have as many documents in a request.
const REQUEST_BYTES: usize = 1024 * 1024;
const FRAME_BYTES: usize = 256 - r#""@timestamp":"2026-11-22T13:00:00.140466Z","#.len();
/// Tools that load side by side.
const TOOLS: usize = 2;

/// Requests that warm a server up, and the documents in each: a program that has just begun isn't compiled yet.
const WARM_REQUESTS: usize = 40;
const WARM_DOCUMENTS: usize = 2_500;

/// A server, and how many events it was last known to have.
pub struct OpenSearchStore {
    node: Node,
    stored: u64,
}

/// A page of documents.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(rename = "_scroll_id")]
    next: String,
    #[serde(borrow)]
    hits: Hits<'a>,
}

#[derive(Deserialize)]
struct Hits<'a> {
    #[serde(borrow)]
    hits: Vec<Hit<'a>>,
}

#[derive(Deserialize)]
struct Hit<'a> {
    #[serde(rename = "_id")]
    id: &'a str,
    #[serde(borrow, rename = "_source")]
    source: &'a RawValue,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl OpenSearchStore {
    /// A server whose indices have one shard, no copies, and these additional mappings.
    fn start_with(options: &'static [&'static str], mappings: &str) -> Result<Option<Self>> {
        let Some(node) = Node::start_from(tool("opensearch/lib"), options) else { return Ok(None) };
        let store = Self { node, stored: 0 };
        let indices = format!(r#"["{INDEX}", "{LOADED}", "{WARM}"]"#);
        let settings = r#""settings": {"number_of_shards": 1, "number_of_replicas": 0}"#;
        let template = format!(r#"{{"index_patterns": {indices}, "template": {{{settings}{mappings}}}}}"#);
        store.ask("PUT", "/_index_template/xtask", &template)?;
        Ok(Some(store))
    }

    /// Its answer, if that is no error.
    fn ask(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let answer = try_ask(self.node.address(), method, path, body).with_context(|| format!("{method} {path}"))?;
        if !(200..300).contains(&answer.status) {
            bail!("{method} {path}: {} {}", answer.status, answer.body);
        }
        Ok(answer.body)
    }

    /// Sets something.
    pub(super) fn set(&self, path: &str, body: &str) -> Result<()> {
        self.ask("PUT", path, body).map(drop)
    }

    /// Has it do something.
    pub(super) fn post(&self, path: &str) -> Result<()> {
        self.ask("POST", path, "").map(drop)
    }

    fn remove(&self, index: &str) -> Result<()> {
        self.ask("DELETE", &format!("/{index}?ignore_unavailable=true"), "").map(drop)
    }

    /// The number at `pointer` of an answer.
    fn number(&self, path: &str, pointer: &str) -> Result<u64> {
        let answer: Value = serde_json::from_str(&self.ask("GET", path, "")?)?;
        answer.pointer(pointer).and_then(Value::as_u64).with_context(|| format!("{path} has no {pointer}"))
    }

    fn count(&self, index: &str) -> Result<f64> {
        self.ask("POST", &format!("/{index}/_refresh"), "")?;
        Ok(self.number(&format!("/{index}/_count"), "/count")? as f64)
    }

    /// Hands out each document of the index: its id and its text.
    fn read(&self, mut read: impl FnMut(&str, &str) -> Result<()>) -> Result<()> {
        self.ask("POST", &format!("/{INDEX}/_refresh"), "")?;
        let first = format!("/{INDEX}/_search?scroll={KEPT}&size={PAGE}");
        let mut text = self.ask("POST", &first, r#"{"sort": ["_doc"]}"#)?;
        loop {
            let page: Page<'_> = serde_json::from_str(&text).context("reading a page of documents")?;
            if page.hits.hits.is_empty() {
                return Ok(());
            }
            page.hits.hits.iter().try_for_each(|hit| read(hit.id, hit.source.get()))?;
            let next = format!(r#"{{"scroll": "{KEPT}", "scroll_id": "{}"}}"#, page.next);
            text = self.ask("POST", "/_search/scroll", &next)?;
        }
    }

    /// Starts a tool that sends these requests one after the other, over one connection, and prints the answers.
    fn tool(&self, number: usize, requests: &[PathBuf]) -> Result<Child> {
        let path = self.folder().join(format!("curl-{number}"));
        let url = format!("http://{}/_bulk?filter_path=errors", self.node.address());
        let of = |request: &PathBuf| {
            // Bodies are sent as they are read: `data-binary` would hold them all in memory.
            format!(
                "url = \"{url}\"\nupload-file = \"{}\"\nheader = \"Content-Type: application/x-ndjson\"\nheader = \"Expect:\"\n",
                request.display()
            )
        };
        std::fs::write(&path, requests.iter().map(of).collect::<Vec<_>>().join("next\n"))?;
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--config"]).arg(path);
        curl.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("starting curl")
    }
}

/// The file with the request number `number`.
fn request_file(file: &Path, number: usize) -> PathBuf {
    file.with_extension(number.to_string())
}

impl CampaignStore for OpenSearchStore {
    const NAME: &'static str = "OpenSearch";

    fn start() -> Result<Option<Self>> {
        Self::start_with(SMALL, ANY_PAYLOAD)
    }
}

impl StoreServer for OpenSearchStore {
    fn sink(&self) -> String {
        self.usual_sink() + "envelope = true\n"
    }

    fn run(&mut self) -> Result<()> {
        self.node.run();
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        self.node.kill();
        Ok(())
    }

    /// By the number of the newest change, which is cheap, survives a kill, and waits for no refresh.
    fn stored(&mut self) -> u64 {
        let path = format!("/{INDEX}/_stats/docs?level=shards&filter_path=indices.{INDEX}.shards.*.seq_no.max_seq_no");
        let newest = self.number(&path, &format!("/indices/{INDEX}/shards/0/0/seq_no/max_seq_no"));
        if let Ok(newest) = newest {
            self.stored = newest + 1;
        }
        self.stored
    }

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        self.read(|_, source| {
            let envelope: Envelope<'_> = serde_json::from_str(source).context("a document without a payload")?;
            Ok(writeln!(out, "{}", envelope.payload)?)
        })
    }
}

impl BulkLoaded for OpenSearchStore {
    const TOOL: &'static str = "two curl _bulk";
    const BAR: f64 = 0.95;

    fn start_large() -> Result<Self> {
        Self::start_with(LARGE, "")?.context("OpenSearch is missing: `cargo xtask services` fetches it")
    }

    fn folder(&self) -> &Path {
        self.node.folder()
    }

    fn usual_sink(&self) -> String {
        format!("kind = \"elasticsearch\"\nurl = \"http://{}\"\nindex = \"{INDEX}\"\n", self.node.address())
    }

    fn empty(&mut self) -> Result<()> {
        self.remove(&format!("{INDEX},{LOADED}"))
    }

    /// Fills an index that is then removed: the measurement mustn't include the server's compilation.
    fn settle(&mut self) -> Result<()> {
        let mut records = Generator::new(RecordKind::Access, 2);
        for request in 0..WARM_REQUESTS {
            let mut body = Vec::new();
            for document in 0..WARM_DOCUMENTS {
                writeln!(body, r#"{{"create":{{"_index":"{WARM}","_id":"{request}-{document}"}}}}"#)?;
                records.next_line(&mut body);
            }
            self.ask("POST", "/_bulk?filter_path=errors", std::str::from_utf8(&body)?)?;
        }
        self.remove(WARM)
    }

    fn events(&mut self) -> Result<f64> {
        self.count(INDEX)
    }

    /// The requests of the tool, a file each: as many documents as the sink would put into one.
    fn save(&mut self, file: &Path) -> Result<()> {
        let (mut request, mut bytes, mut number) = (Vec::new(), 0, 0);
        self.read(|id, source| {
            let more = source.len() + FRAME_BYTES;
            if bytes + more > REQUEST_BYTES && bytes > 0 {
                std::fs::write(request_file(file, number), &request)?;
                request.clear();
                (bytes, number) = (0, number + 1);
            }
            bytes += more;
            writeln!(request, r#"{{"create":{{"_index":"{LOADED}","_id":"{id}"}}}}"#)?;
            Ok(writeln!(request, "{source}")?)
        })?;
        Ok(std::fs::write(request_file(file, number), &request)?)
    }

    /// A server that has run as long as the sink's had: the sink's begins with an empty journal before it.
    fn before_load(&mut self) -> Result<()> {
        self.empty()?;
        self.kill()?;
        self.run()?;
        self.settle()
    }

    fn load(&mut self, file: &Path) -> Result<()> {
        let requests: Vec<PathBuf> =
            (0..).map(|number| request_file(file, number)).take_while(|path| path.exists()).collect();
        let of = |tool: usize| requests.iter().skip(tool).step_by(TOOLS).cloned().collect::<Vec<_>>();
        let tools: Vec<Child> = (0..TOOLS).map(|tool| self.tool(tool, &of(tool))).collect::<Result<_>>()?;
        let mut accepted = 0;
        for tool in tools {
            let output = tool.wait_with_output()?;
            accepted += String::from_utf8_lossy(&output.stdout).matches(r#""errors":false"#).count();
        }
        if accepted != requests.len() {
            bail!("curl: {accepted} of {} requests were accepted", requests.len());
        }
        Ok(())
    }

    fn loaded(&mut self) -> Result<f64> {
        self.count(LOADED)
    }
}
