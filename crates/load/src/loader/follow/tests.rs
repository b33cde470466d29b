//! Files that are rotated, checked at times that the test sets, and read through from one to the next.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::loader::LoadCounters;
use crate::loader::ack_watermark::AckWatermark;
use crate::loader::input::Input;
use crate::loader::source::{Reading, Source};
use crate::loader::state::{Settings, State};

/// A folder with a file `a`, and the messages about it.
struct Fixture {
    folder: tempfile::TempDir,
    said: Mutex<Vec<String>>,
    counters: LoadCounters,
}

impl Fixture {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), text).unwrap();
        Self { folder, said: Mutex::default(), counters: LoadCounters::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn append(&self, name: &str, text: &str) {
        OpenOptions::new().append(true).open(self.path(name)).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// A new file that is younger than another one by the file system's clock.
    fn write_after(&self, name: &str, text: &str, other: &str) {
        let times = |path: &Path| fs::metadata(path).map(|of| (of.modified().unwrap(), of.created().unwrap())).unwrap();
        let (path, before) = (self.path(name), times(&self.path(other)));
        loop {
            fs::write(&path, text).unwrap();
            let now = times(&path);
            if now.0 > before.0 && now.1 > before.1 {
                return;
            }
            fs::remove_file(&path).unwrap();
        }
    }

    fn notify(&self, message: &str) {
        self.said.lock().unwrap().push(message.to_owned());
    }

    fn said(&self) -> String {
        let said = self.said.lock().unwrap();
        assert_eq!(said.len() as u64, self.counters.read().gaps, "{said:?}");
        said.join("\n")
    }

    /// Reads on from where `state` is. After each block `then` hears all that was read, does something, and says whether that was
    /// enough.
    fn follow(&self, state: &mut State, mut then: impl FnMut(&str) -> bool) -> String {
        let notify = |message: &str| self.notify(message);
        let stop = AtomicBool::new(false);
        let reading = Reading {
            block_bytes: 1024,
            follow: true,
            settle: Duration::ZERO,
            counts_lines: true,
            stop: &stop,
            read: std::sync::Arc::default(),
            gaps: Gaps { notify: &notify, counters: &self.counters },
        };
        let input = Input::File(self.path("a"));
        let mut source = Source::open(&input, state.entry("a"), reading).unwrap();
        let entry = source.entry().clone();
        let watermark = AckWatermark::new(state, "a", entry.clone());
        watermark.begin(entry).unwrap();
        let (mut text, mut bytes) = (String::new(), Vec::new());
        loop {
            let block = source.next(&mut bytes, &watermark).unwrap().unwrap();
            text.push_str(std::str::from_utf8(&bytes).unwrap());
            watermark.answered(block.number, block.place, 0).unwrap();
            if then(&text) {
                watermark.finish().unwrap();
                return text;
            }
        }
    }
}

fn new_state() -> State {
    State::open(None, None, Settings::default()).unwrap()
}

#[test]
fn rotated_file_is_read_until_it_stops_growing() {
    let fixture = Fixture::new("one");
    let notify = |message: &str| fixture.notify(message);
    let gaps = Gaps { notify: &notify, counters: &fixture.counters };
    let open = File::open(fixture.path("a")).unwrap();
    let mut follow = Follow::new(fixture.path("a"), open, None, SETTLE, gaps).unwrap();
    let begin = Instant::now();
    let after = |milliseconds| begin + Duration::from_millis(milliseconds);
    assert!(matches!(follow.check(3, begin).unwrap(), Change::None));
    fixture.rename("a", "a.1");
    assert!(matches!(follow.check(3, begin).unwrap(), Change::None));
    fs::write(fixture.path("a"), "two").unwrap();
    for milliseconds in [0, 4_999] {
        assert!(matches!(follow.check(3, after(milliseconds)).unwrap(), Change::None));
    }
    fixture.append("a.1", "x");
    for milliseconds in [5_000, 9_999] {
        assert!(matches!(follow.check(4, after(milliseconds)).unwrap(), Change::None), "it has grown");
        assert!(!follow.is_draining());
    }
    assert!(matches!(follow.check(4, after(10_000)).unwrap(), Change::Draining));
    assert!(follow.is_draining());
    assert!(matches!(follow.check(4, after(10_000)).unwrap(), Change::Replaced(_)));
    assert!(!follow.is_draining() && matches!(follow.check(3, after(10_000)).unwrap(), Change::None));
    assert_eq!(fixture.said(), "");
}

#[test]
fn endlessly_written_file_is_left_and_reported() {
    let fixture = Fixture::new("one\n");
    let notify = |message: &str| fixture.notify(message);
    let gaps = Gaps { notify: &notify, counters: &fixture.counters };
    let open = File::open(fixture.path("a")).unwrap();
    let begin = Instant::now();
    let mut follow = Follow::new(fixture.path("a"), open, None, SETTLE, gaps).unwrap();
    fixture.rename("a", "a.1");
    fs::write(fixture.path("a"), "two\n").unwrap();
    for second in 0..60 {
        fixture.append("a.1", "x\n");
        assert!(matches!(follow.check(0, begin + Duration::from_secs(second)).unwrap(), Change::None), "{second}");
    }
    fixture.append("a.1", "x\n");
    let end = begin + SETTLE_MAX;
    assert!(matches!(follow.check(0, end).unwrap(), Change::Draining));
    assert!(matches!(follow.check(4 + 61 * 2, end).unwrap(), Change::Replaced(_)));
    assert!(matches!(follow.check(0, end).unwrap(), Change::None));
    assert_eq!(fixture.said(), "");
    fixture.append("a.1", "late\n");
    for _ in 0..2 {
        assert!(matches!(follow.check(4, end).unwrap(), Change::None));
    }
    assert!(fixture.said().contains("its lines from byte 126 on are missing"), "{}", fixture.said());
    assert_eq!(fixture.counters.read().gaps, 1);
}

#[test]
fn truncated_file_restarts() {
    let fixture = Fixture::new("one");
    let notify = |message: &str| fixture.notify(message);
    let gaps = Gaps { notify: &notify, counters: &fixture.counters };
    let open = File::open(fixture.path("a")).unwrap();
    let mut follow = Follow::new(fixture.path("a"), open, None, SETTLE, gaps).unwrap();
    fs::write(fixture.path("a"), "x").unwrap();
    assert!(matches!(follow.check(3, Instant::now()).unwrap(), Change::Replaced(_)));
    assert!(matches!(follow.check(1, Instant::now()).unwrap(), Change::None));
}

#[test]
fn files_between_are_read_while_it_follows() {
    let fixture = Fixture::new("older\n");
    fixture.rename("a", "a.4");
    fixture.write_after("a", "0\n", "a.4");
    let mut is_rotated = false;
    let text = fixture.follow(&mut new_state(), |text| {
        if !is_rotated {
            is_rotated = true;
            fixture.append("a", "1\n");
            fixture.rename("a", "a.3");
            fixture.write_after("a", "2\n", "a.3");
            fixture.rename("a", "a.2");
            fixture.write_after("a", "3\n", "a.2");
            fixture.rename("a", "a.1");
            fixture.write_after("a", "end\n", "a.1");
        }
        text.ends_with("end\n")
    });
    assert_eq!((text.as_str(), fixture.said().as_str()), ("0\n1\n2\n3\nend\n", ""));
}

#[test]
fn files_rotated_without_a_follower_are_read() {
    let fixture = Fixture::new("0\n");
    let mut state = new_state();
    assert_eq!(fixture.follow(&mut state, |_| true), "0\n");
    fixture.append("a", "1\n");
    fixture.rename("a", "a-20261121");
    fixture.write_after("a", "2\n", "a-20261121");
    fixture.rename("a", "a-20261122");
    fixture.write_after("a.refused", "no\n", "a-20261122");
    fixture.write_after("a", "end\n", "a-20261122");
    // Stopped within the file between, it resumes there.
    assert_eq!(fixture.follow(&mut state, |text| ["2\n", "end\n"].iter().any(|end| text.ends_with(end))), "1\n2\n");
    fixture.append("a-20261122", "3\n");
    assert_eq!(fixture.follow(&mut state, |text| text.ends_with("end\n")), "3\nend\n");
    assert_eq!(fixture.said(), "");
}

#[test]
fn compressed_file_between_is_reported() {
    let fixture = Fixture::new("0\n");
    let mut state = new_state();
    assert_eq!(fixture.follow(&mut state, |_| true), "0\n");
    fixture.rename("a", "a.3");
    fixture.write_after("a.2.gz", "packed", "a.3");
    fixture.write_after("a.1", "1\n", "a.2.gz");
    fixture.write_after("a.1.gz", "still being made", "a.1");
    fixture.write_after("a", "end\n", "a.1");
    assert_eq!(fixture.follow(&mut state, |text| text.ends_with("end\n")), "1\nend\n");
    let said = fixture.said();
    assert!(said.contains("a.2.gz was never read") && !said.contains("a.1.gz"), "{said}");
    assert_eq!(fixture.counters.read().gaps, 1);
}

#[test]
fn missing_file_is_reported() {
    let fixture = Fixture::new("0\n");
    let mut state = new_state();
    assert_eq!(fixture.follow(&mut state, |_| true), "0\n");
    fixture.append("a", "1\n");
    fs::rename(fixture.path("a"), fixture.path("elsewhere")).unwrap();
    fixture.write_after("a", "end\n", "elsewhere");
    let packed = tempfile::tempdir().unwrap();
    fs::rename(fixture.path("elsewhere"), packed.path().join("a")).unwrap();
    assert_eq!(fixture.follow(&mut state, |text| text.ends_with("end\n")), "end\n");
    assert!(fixture.said().contains("from byte 2 on may be missing"), "{}", fixture.said());
    assert_eq!(fixture.counters.read().gaps, 1);
}

#[test]
fn rotated_target_of_link_is_found() {
    let fixture = Fixture::new("");
    fs::create_dir_all(fixture.path("pods/uid")).unwrap();
    fs::rename(fixture.path("a"), fixture.path("pods/uid/0.log")).unwrap();
    std::os::unix::fs::symlink("pods/uid/0.log", fixture.path("link")).unwrap();
    std::os::unix::fs::symlink(fixture.path("link"), fixture.path("a")).unwrap();
    let mut state = new_state();
    fixture.append("pods/uid/0.log", "0\n");
    assert_eq!(fixture.follow(&mut state, |_| true), "0\n");
    fixture.append("pods/uid/0.log", "1\n");
    fixture.rename("pods/uid/0.log", "pods/uid/0.log.20261123-050000");
    fixture.write_after("pods/uid/0.log", "2\n", "pods/uid/0.log.20261123-050000");
    fixture.rename("pods/uid/0.log", "pods/uid/0.log.20261124-050000");
    fixture.write_after("pods/uid/0.log", "end\n", "pods/uid/0.log.20261124-050000");
    let text = fixture.follow(&mut state, |text| text.ends_with("end\n"));
    assert_eq!((text.as_str(), fixture.said().as_str()), ("1\n2\nend\n", ""));
}

#[test]
fn nul_bytes_of_a_truncated_log_are_skipped() {
    let fixture = Fixture::new("0\n1\n");
    let mut state = new_state();
    assert_eq!(fixture.follow(&mut state, |_| true), "0\n1\n");
    let writer = OpenOptions::new().write(true).open(fixture.path("a")).unwrap();
    writer.set_len(0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&writer, b"2\n3\n", 1 << 20).unwrap();
    let text = fixture.follow(&mut state, |text| {
        if text.ends_with("3\n") {
            std::os::unix::fs::FileExt::write_all_at(&writer, b"end\n", 3 << 20).unwrap();
        }
        text.ends_with("end\n")
    });
    assert_eq!(text, "2\n3\nend\n");
    let said = fixture.said.lock().unwrap().join("\n");
    assert!(said.contains("skipped 1048576 NUL bytes from byte 0 on"), "{said}");
    assert!(said.contains("skipped 2097148 NUL bytes from byte 1048580 on"), "{said}");
    assert_eq!(fixture.counters.read().gaps, 1, "the lines of the truncated part may be missing");
}
