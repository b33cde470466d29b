//! The conformance suite on the example store, also through real writers; and a torn tail.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use event::EventId;
use serde::Deserialize;
use serde_json::value::RawValue;
use sink::{Cursor, Sink, StoreConfig};
use sink_lines::LinesConfig;
use sink_testing::conformance::{SinkHarness, check, sequences};
use sink_testing::events::{deliver, lane, plain};
use sink_testing::through_writer::{Offers, Through};
use tempfile::TempDir;

/// The fields of an event's line that the suite compares.
#[derive(Deserialize)]
struct Event<'a> {
    id: &'a str,
    #[serde(borrow)]
    payload: &'a RawValue,
}

struct Harness(TempDir);

impl Harness {
    fn path(&self) -> PathBuf {
        self.0.path().join("events.ndjson")
    }

    /// The lines of stored events: those with a commit after them.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path()).unwrap_or_default();
        let stored = text.rfind("\n[").map_or("", |end| &text[..end]);
        stored.lines().filter(|line| line.starts_with('{')).map(str::to_owned).collect()
    }
}

/// A directory at the file's path: the file can't be opened.
struct Away(PathBuf);

impl Drop for Away {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).unwrap();
        let _ = fs::rename(self.0.with_extension("away"), &self.0);
    }
}

impl SinkHarness for Harness {
    const COMPARES: bool = false;
    /// It recognises events by their positions, as every fenced store does, and not by their ids.
    const RECOGNISES_IDS: bool = false;
    const REJECTS: bool = false;
    const HAS_OWN_MARK: bool = false;
    type Fault = (Option<Away>, Option<File>);

    fn as_kept(payload: &[u8]) -> Vec<u8> {
        String::from_utf8_lossy(payload).replace(['\r', '\n'], " ").into_bytes()
    }

    async fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn sink(&self) -> Sink {
        LinesConfig { path: self.path() }.build()
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let row = |line: String| {
            let Event { id, payload } = serde_json::from_str(&line).unwrap();
            (id.parse().unwrap(), payload.get().as_bytes().to_vec())
        };
        self.lines().into_iter().map(row).collect()
    }

    async fn poison(&self, _: EventId) {
        unreachable!("a file refuses nothing")
    }

    async fn outage(&self, stage: usize) -> Option<Self::Fault> {
        if stage > 0 {
            return None;
        }
        let _ = fs::rename(self.path(), self.path().with_extension("away"));
        fs::create_dir(self.path()).unwrap();
        Some((Some(Away(self.path())), None))
    }

    async fn stall(&self) -> Self::Fault {
        let file = File::options().append(true).create(true).open(self.path()).unwrap();
        file.lock().unwrap();
        (None, Some(file))
    }
}

impl Offers for Harness {
    const STORE: &'static str = "lines";
    const READS: bool = false;
}

#[test]
fn lines_pass_each_case() {
    check::<Harness>();
    sequences::<Harness>(24);
}

#[test]
fn lines_pass_each_case_through_writers() {
    check::<Through<Harness>>();
    sequences::<Through<Harness>>(8);
}

#[test]
fn torn_tail_is_cut_off() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Harness::fresh().await;
        deliver(&store.sink(), &plain(0, 1, 3)).await;
        let whole = fs::read(store.path()).unwrap();
        deliver(&store.sink(), &plain(0, 4, 3)).await;
        let more = fs::read(store.path()).unwrap();
        for end in whole.len()..more.len() {
            File::create(store.path()).unwrap().write_all(&more[..end]).unwrap();
            let sink = store.sink();
            assert_eq!(sink.cursor(&lane(0)).await, Ok(Cursor::Store(3)), "cut at byte {end}");
            assert_eq!(fs::read(store.path()).unwrap(), whole);
            deliver(&sink, &plain(0, 4, 3)).await;
            assert_eq!(fs::read(store.path()).unwrap(), more);
        }
    });
}
