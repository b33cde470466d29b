//! The conformance suite on directories, also through real writers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use event::EventId;
use objects::{Codec, Line, ObjectFormat, Prefix, SideFolder};
use serde_json::value::RawValue;
use sink::Sink;
use sink_directory::{DirectoryConfig, Files, NewFile, OsFiles};
use sink_testing::conformance::{SinkHarness, check, sequences};
use tempfile::TempDir;

use sink_testing::through_writer::{Offers, Through};

/// Random sequences for each sink.
const SEQUENCES: u32 = 48;

/// A directory of objects, over a file system that can be blocked.
struct Directory<const CODEC: usize> {
    directory: TempDir,
    gate: Arc<Gate>,
}

impl<const CODEC: usize> Directory<CODEC> {
    fn path(&self) -> PathBuf {
        self.directory.path().join("deep/archive")
    }

    fn object_rules() -> ObjectFormat {
        ObjectFormat {
            line: Line::Envelope,
            codec: Codec::ALL[CODEC],
            bytes_max: 1 << 20,
            records_max: 1_000,
            age_max: Duration::from_secs(1),
            prefix: Prefix::NONE,
            apart: None,
            manifests: SideFolder::manifests(),
        }
    }
}

impl<const CODEC: usize> SinkHarness for Directory<CODEC> {
    const COMPARES: bool = false;
    const RECOGNISES_IDS: bool = false;
    const REJECTS: bool = false;
    type Fault = Hindered;

    async fn fresh() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), gate: Arc::default() }
    }

    fn sink(&self) -> Sink {
        let rules = Self::object_rules();
        sink_directory::sink(DirectoryConfig { path: self.path(), rules }, self.gate.clone())
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let described = |path: &Path| {
            let name = SideFolder::manifests().manifest_of(path.file_name().unwrap().to_str().unwrap());
            std::fs::read(self.path().join(name)).is_ok()
        };
        let files = std::fs::read_dir(self.path()).into_iter().flatten().map(|entry| entry.unwrap().path());
        let objects = files.filter(|path| described(path));
        objects.flat_map(|path| lines(&path)).map(|line| event(&line)).collect()
    }

    async fn poison(&self, _: EventId) {
        unreachable!("a directory rejects nothing")
    }

    async fn outage(&self, stage: usize) -> Option<Hindered> {
        // An object and its description need this many calls; the last stage blocks none of them.
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

/// The id and the payload's bytes, as a reader of the documentation would find them.
fn event(line: &str) -> (EventId, Vec<u8>) {
    let line: BTreeMap<String, &RawValue> = serde_json::from_str(line).unwrap();
    let id: String = serde_json::from_str(line["id"].get()).unwrap();
    let payload = match line.get("payload") {
        Some(payload) => payload.get().to_owned(),
        None => serde_json::from_str(line["payload_text"].get()).unwrap(),
    };
    (id.parse().unwrap(), payload.into_bytes())
}

/// The operating system's files, with a gate.
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
    /// After this many calls all others fail.
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

/// Opens the gate when it is dropped.
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

impl<const CODEC: usize> Offers for Directory<CODEC> {
    const STORE: &'static str = "directory";
    const READS: bool = false;

    fn rules(&self) -> Option<ObjectFormat> {
        Some(Self::object_rules())
    }
}

#[test]
fn directory_passes_each_case() {
    check::<Directory<0>>();
    check::<Directory<1>>();
    check::<Directory<2>>();
    check::<Through<Directory<0>>>();
}

#[test]
fn directory_follows_the_model() {
    sequences::<Directory<2>>(SEQUENCES);
}

#[tokio::test]
async fn concurrent_connects_do_not_conflict() {
    let directory = Directory::<0>::fresh().await;
    for _ in 0..20 {
        let connecting: Vec<_> = (0..16).map(|_| directory.sink()).collect();
        let connecting: Vec<_> =
            connecting.into_iter().map(|sink| tokio::spawn(async move { sink.connect().await })).collect();
        for connected in connecting {
            assert_eq!(connected.await.unwrap(), Ok(()));
        }
    }
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    sink_testing::odd_frames::are_rejected::<Directory<0>>().await;
}
