//! A gateway over a real event log, and a client that speaks HTTP/1.1 by hand.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use event::TypeName;
use eventlog::{EventLog, LogChunk, LogOptions};
use gateway::{Gateway, GatewayCounters, GatewayOptions, GatewayTypes, IdRule, IntakeListener, TypeRules};
use journal::DataDirectory;
use journal::disk::{OsDisk, SharedDisk};
use serde_json::Value;

/// Long enough for the slowest machine; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two checks: a busy loop would take the core from the thread that it waits for.
pub(crate) const LOOK_EVERY: Duration = Duration::from_micros(200);

/// A running gateway, with its log and its directory.
pub(crate) struct Fixture {
    pub(crate) log: Arc<EventLog>,
    gateway: Option<Gateway>,
    _directory: DataDirectory,
    _folder: Option<tempfile::TempDir>,
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) id: String,
    pub(crate) type_name: String,
    pub(crate) source: String,
    pub(crate) event_time: Option<i64>,
    pub(crate) client: String,
    pub(crate) payload: String,
    pub(crate) starts: bool,
    pub(crate) ends: bool,
}

impl Fixture {
    /// A gateway that accepts all types.
    pub(crate) fn open() -> Self {
        Self::with(open_types(), GatewayOptions::default())
    }

    pub(crate) fn with(types: GatewayTypes, options: GatewayOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        Self::start(Arc::new(OsDisk), &path, types, options, 1, Some(folder), Vec::new())
    }

    /// A gateway with ports of intakes.
    pub(crate) fn with_intakes(types: GatewayTypes, options: GatewayOptions, intakes: Vec<IntakeListener>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        Self::start(Arc::new(OsDisk), &path, types, options, 1, Some(folder), intakes)
    }

    pub(crate) fn with_shards(shards: u16) -> Self {
        Self::with_shards_of(shards, open_types())
    }

    pub(crate) fn on_disk(disk: SharedDisk) -> Self {
        Self::on_disk_with(disk, open_types())
    }

    pub(crate) fn on_disk_with(disk: SharedDisk, types: GatewayTypes) -> Self {
        Self::start(disk, Path::new("/data"), types, GatewayOptions::default(), 1, None, Vec::new())
    }

    pub(crate) fn with_shards_of(shards: u16, types: GatewayTypes) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        Self::start(Arc::new(OsDisk), &path, types, GatewayOptions::default(), shards, Some(folder), Vec::new())
    }

    fn start(
        disk: SharedDisk,
        path: &Path,
        types: GatewayTypes,
        options: GatewayOptions,
        shards: u16,
        folder: Option<tempfile::TempDir>,
        intakes: Vec<IntakeListener>,
    ) -> Self {
        let directory = DataDirectory::open(disk, path).unwrap();
        let log_options = LogOptions { shards, first_segment_bytes: 256 * 1024, ..LogOptions::default() };
        let log = Arc::new(EventLog::open(&directory, &log_options).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gateway = Gateway::start(listener, intakes, &log, types, options).unwrap();
        Self { log, gateway: Some(gateway), _directory: directory, _folder: folder }
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().expect("it runs")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.gateway().local_addr()
    }

    pub(crate) fn counters(&self) -> &GatewayCounters {
        self.gateway().counters()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// Sends one request over a new connection.
    pub(crate) fn post(&self, path: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
        let mut client = self.connect();
        client.post(path, headers, body.as_ref());
        client.answer()
    }

    pub(crate) fn take_gateway(&mut self) -> Gateway {
        self.gateway.take().expect("it runs")
    }

    /// Waits until a condition holds that depends on other threads.
    pub(crate) fn wait(&self, what: &str, holds: impl Fn(&GatewayCounters) -> bool) {
        let start = Instant::now();
        while !holds(self.counters()) {
            assert!(start.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// All durable events.
    pub(crate) fn stored(&self) -> Vec<Stored> {
        self.log.shards().iter().flat_map(stored_in).collect()
    }

    pub(crate) fn payloads(&self) -> Vec<String> {
        self.stored().into_iter().map(|event| event.payload).collect()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop(Instant::now());
        }
    }
}

fn stored_in(shard: &Arc<eventlog::Shard>) -> Vec<Stored> {
    let mut lane = shard.reader(0);
    let mut events = Vec::new();
    while let Some(stretch) = lane.read().unwrap() {
        let LogChunk::Block(block) = stretch else { panic!("nothing is damaged") };
        events.extend(block.records().map(|(_, record)| Stored {
            id: record.id.to_string(),
            type_name: record.type_name.to_owned(),
            source: record.source.to_owned(),
            event_time: record.event_time,
            client: record.client.map(|client| client.to_string()).unwrap_or_default(),
            payload: String::from_utf8(record.payload.to_vec()).unwrap(),
            starts: record.request_start,
            ends: record.request_end,
        }));
    }
    events
}

pub(crate) fn open_types() -> GatewayTypes {
    GatewayTypes { open: Some(TypeRules::default()), ..GatewayTypes::default() }
}

/// Types with the pointers to their ids.
pub(crate) fn named_types(names: &[(&str, Option<&str>)]) -> GatewayTypes {
    let rules = |id: Option<&str>| TypeRules {
        id: id.map(|pointer| IdRule::Pointer(pointer.parse().unwrap())).unwrap_or_default(),
        ..TypeRules::default()
    };
    let named = names.iter().map(|(name, id)| (TypeName::new(name).unwrap(), rules(*id))).collect();
    GatewayTypes { named, ..GatewayTypes::default() }
}

/// A connection.
pub(crate) struct Client {
    pub(crate) reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends what the server may not want to read.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes.as_ref())
    }

    pub(crate) fn post(&mut self, path: &str, headers: &str, body: &[u8]) {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        self.send([head.as_bytes(), body].concat());
    }

    pub(crate) fn finish_sending(&self) {
        self.reader.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    pub(crate) fn answer(&mut self) -> Answer {
        self.try_answer().expect("there is an answer")
    }

    pub(crate) fn try_answer(&mut self) -> io::Result<Answer> {
        let mut answer = self.try_head()?;
        let length = answer.header("content-length").map_or(0, |value| value.parse().unwrap());
        answer.body = vec![0; length];
        self.reader.read_exact(&mut answer.body)?;
        Ok(answer)
    }

    /// The response to HEAD, which has no body regardless of its headers.
    pub(crate) fn answer_to_head(&mut self) -> Answer {
        self.try_head().expect("there is an answer")
    }

    fn try_head(&mut self) -> io::Result<Answer> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, body: Vec::new() })
    }

    /// Whether the server has closed the connection, and has sent nothing else.
    pub(crate) fn read_to_close(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.reader.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// What the server answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem, which must be a whole one.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        for member in ["type", "title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member} of {problem}");
        }
        problem["code"].as_str().unwrap().to_owned()
    }
}
