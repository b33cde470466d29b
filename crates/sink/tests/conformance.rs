//! The suite on the sinks that need no service: SQLite, directories, and the memory store in both of its ways; all but directories also
//! through real writers.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use event::EventId;
use objects::Line;
use objects::{Codec, ObjectRules, Prefix};
use rusqlite::Connection;
use serde_json::value::RawValue;
use sink::{Sink, SinkConfig, TableName};
use sink_directory::DirectoryConfig;
use sink_directory::{Files, NewFile, OsFiles};
use sink_remote::RemoteStore;
use sink_sqlite::SqliteConfig;
use sink_testing::MemoryHandle;
use sink_testing::conformance::{SinkHarness, check, sequences};
use tempfile::TempDir;

#[path = "through_writer/mod.rs"]
mod through_writer;

use through_writer::{Offers, Through};

/// Random sequences for each sink.
const SEQUENCES: u32 = 48;
/// The same through writers, which takes longer.
const SEQUENCES_THROUGH: u32 = 16;

struct Sqlite {
    directory: TempDir,
}

impl Sqlite {
    /// A connection past the sink.
    fn open(&self) -> Connection {
        Connection::open(self.directory.path().join("deep/events.db")).unwrap()
    }

    /// Holds the write lock until it is dropped.
    fn lock(&self) -> Connection {
        let connection = self.open();
        connection.execute_batch("begin immediate").unwrap();
        connection
    }
}

impl SinkHarness for Sqlite {
    const COMPARES: bool = true;
    type Fault = Connection;

    async fn fresh() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn sink(&self) -> Sink {
        let path = self.directory.path().join("deep/events.db");
        Sink::new(SinkConfig::Sqlite(SqliteConfig { path, table: TableName::new("events").unwrap() }))
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let connection = self.open();
        let mut select = connection.prepare("select id, cast(payload as blob) from events").unwrap();
        let rows = select.query_map([], |row| Ok((EventId(row.get(0)?), row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    async fn poison(&self, id: EventId) {
        let id = id.to_string().replace('-', "");
        let trigger = format!(
            "create trigger spoil before insert on events when new.id = x'{id}' begin select raise(abort, 'spoilt'); end"
        );
        self.open().execute_batch(&trigger).unwrap();
    }

    async fn outage(&self, stage: usize) -> Option<Connection> {
        (stage == 0).then(|| self.lock())
    }

    async fn stall(&self) -> Connection {
        self.lock()
    }
}

/// A directory of objects, over a file system that can be kept from answering.
struct Directory<const CODEC: usize> {
    directory: TempDir,
    gate: Arc<Gate>,
}

impl<const CODEC: usize> Directory<CODEC> {
    fn path(&self) -> PathBuf {
        self.directory.path().join("deep/archive")
    }

    fn object_rules() -> ObjectRules {
        ObjectRules {
            line: Line::Envelope,
            codec: Codec::ALL[CODEC],
            bytes_max: 1 << 20,
            records_max: 1_000,
            age_max: Duration::from_secs(1),
            prefix: Prefix::NONE,
            apart: None,
        }
    }
}

impl<const CODEC: usize> SinkHarness for Directory<CODEC> {
    const COMPARES: bool = false;
    const KNOWS_IDS: bool = false;
    type Fault = Hindered;

    async fn fresh() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), gate: Arc::default() }
    }

    fn sink(&self) -> Sink {
        let rules = Self::object_rules();
        Sink::directory(DirectoryConfig { path: self.path(), rules }, self.gate.clone())
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let described = |path: &Path| std::fs::read(format!("{}.manifest.json", path.display())).is_ok();
        let files = std::fs::read_dir(self.path()).into_iter().flatten().map(|entry| entry.unwrap().path());
        let objects = files.filter(|path| described(path));
        objects.flat_map(|path| lines(&path)).map(|line| event(&line)).collect()
    }

    async fn poison(&self, _: EventId) {
        unreachable!("a directory refuses nothing")
    }

    async fn outage(&self, stage: usize) -> Option<Hindered> {
        // An object and its description take this many calls; the last stage hinders none of them.
        (stage < 20).then(|| {
            self.gate.set(State::FailsAfter(stage));
            Hindered(self.gate.clone())
        })
    }

    async fn stall(&self) -> Hindered {
        self.gate.set(State::Stalls);
        Hindered(self.gate.clone())
    }
}

fn lines(path: &Path) -> Vec<String> {
    let file = File::open(path).unwrap();
    let mut text = String::new();
    match path.extension().and_then(|end| end.to_str()) {
        Some("gz") => flate2::read::GzDecoder::new(file).read_to_string(&mut text),
        Some("zst") => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
        _ => BufReader::new(file).read_to_string(&mut text),
    }
    .unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The id and the payload's own bytes, as somebody reads them who knows the documentation.
fn event(line: &str) -> (EventId, Vec<u8>) {
    let line: BTreeMap<String, &RawValue> = serde_json::from_str(line).unwrap();
    let id: String = serde_json::from_str(line["id"].get()).unwrap();
    let payload = match line.get("payload") {
        Some(payload) => payload.get().to_owned(),
        None => serde_json::from_str(line["payload_text"].get()).unwrap(),
    };
    (id.parse().unwrap(), payload.into_bytes())
}

/// The operating system's files behind a gate.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Stalls,
    /// After so many calls all others fail.
    FailsAfter(usize),
}

impl Gate {
    fn set(&self, state: State) {
        *self.state.lock().unwrap() = state;
        self.opened.notify_all();
    }

    fn pass(&self) -> io::Result<()> {
        let mut state = self.opened.wait_while(self.state.lock().unwrap(), |state| *state == State::Stalls).unwrap();
        match &mut *state {
            State::FailsAfter(0) => Err(io::Error::from_raw_os_error(5)),
            State::FailsAfter(calls) => {
                *calls -= 1;
                Ok(())
            }
            State::Open | State::Stalls => Ok(()),
        }
    }
}

/// Opens the gate when it goes.
struct Hindered(Arc<Gate>);

impl Drop for Hindered {
    fn drop(&mut self) {
        self.0.set(State::Open);
    }
}

impl Files for Gate {
    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        self.pass().and_then(|()| OsFiles.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        self.pass().and_then(|()| OsFiles.open(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass().and_then(|()| OsFiles.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pass().and_then(|()| OsFiles.remove(path))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.pass().and_then(|()| OsFiles.make_folder(path))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.pass().and_then(|()| OsFiles.sync_folder(path))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>> {
        self.pass().and_then(|()| OsFiles.lock(path))
    }

    fn may_block(&self) -> bool {
        true
    }
}

/// The memory store, fenced or keyed.
struct Memory<const FENCED: bool>(MemoryHandle);

/// Takes back what the store was told.
struct Healed(MemoryHandle);

impl Drop for Healed {
    fn drop(&mut self) {
        self.0.heal();
        self.0.release();
    }
}

impl<const FENCED: bool> SinkHarness for Memory<FENCED> {
    const COMPARES: bool = true;
    type Fault = Healed;

    async fn fresh() -> Self {
        Self(if FENCED { MemoryHandle::fenced() } else { MemoryHandle::keyed() })
    }

    fn sink(&self) -> Sink {
        Sink::new(SinkConfig::Memory(self.0.clone()))
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.0.events().into_iter().map(|event| (event.id, event.payload)).collect()
    }

    async fn poison(&self, id: EventId) {
        self.0.refuse_id(id);
    }

    async fn outage(&self, stage: usize) -> Option<Healed> {
        match stage {
            0 => self.0.fail_next(usize::MAX),
            1 => self.0.lose_answers(usize::MAX),
            _ => return None,
        }
        Some(Healed(self.0.clone()))
    }

    async fn stall(&self) -> Healed {
        self.0.block();
        Healed(self.0.clone())
    }
}

impl Offers for Sqlite {
    const STORE: RemoteStore = RemoteStore::Sqlite;
    const READS: bool = true;
}

impl<const CODEC: usize> Offers for Directory<CODEC> {
    const STORE: RemoteStore = RemoteStore::Directory;
    const READS: bool = false;

    fn rules(&self) -> Option<ObjectRules> {
        Some(Self::object_rules())
    }
}

impl<const FENCED: bool> Offers for Memory<FENCED> {
    /// A keyed memory has what a web hook has: nothing that delivery must know.
    const STORE: RemoteStore = if FENCED { RemoteStore::Memory } else { RemoteStore::Webhook };
    const READS: bool = true;
}

#[test]
fn sqlite_passes_each_case_through_writers() {
    check::<Through<Sqlite>>();
    sequences::<Through<Sqlite>>(SEQUENCES_THROUGH);
}

#[test]
fn memory_passes_each_case_through_writers() {
    check::<Through<Memory<true>>>();
    sequences::<Through<Memory<true>>>(SEQUENCES_THROUGH);
    check::<Through<Memory<false>>>();
    sequences::<Through<Memory<false>>>(SEQUENCES_THROUGH);
}

#[test]
fn sqlite_passes_each_case() {
    check::<Sqlite>();
}

#[test]
fn sqlite_follows_the_model() {
    sequences::<Sqlite>(SEQUENCES);
}

#[test]
fn fenced_memory_passes_each_case() {
    check::<Memory<true>>();
}

#[test]
fn fenced_memory_follows_the_model() {
    sequences::<Memory<true>>(SEQUENCES);
}

#[test]
fn keyed_memory_passes_each_case() {
    check::<Memory<false>>();
}

#[test]
fn keyed_memory_follows_the_model() {
    sequences::<Memory<false>>(SEQUENCES);
}

#[test]
fn a_directory_passes_each_case() {
    check::<Directory<0>>();
    check::<Directory<1>>();
    check::<Directory<2>>();
    check::<Through<Directory<0>>>();
}

#[test]
fn a_directory_follows_the_model() {
    sequences::<Directory<2>>(SEQUENCES);
}
