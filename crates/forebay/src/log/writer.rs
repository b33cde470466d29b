//! Writes log lines. A server queues them, up to a bound, for a separate thread: a reader of stderr that stopped reading then blocks nothing else.
//! Before that thread runs, and in commands, each line is written directly.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use metrics::Counter;

use super::recent::RecentLines;

/// Bytes of lines that wait. Lines beyond it are dropped and counted.
const QUEUE_BYTES_MAX: usize = 256 << 10;
/// A descriptor in non-blocking mode that is full is tried again after this long.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// A line, and how many were dropped directly before it.
struct Entry {
    dropped_before: u64,
    line: String,
}

struct Queue {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Lines dropped since the last entry.
    dropped: u64,
    has_thread: bool,
    is_writing: bool,
    recent: RecentLines,
}

/// The lines that wait, and the thread that writes them.
pub(super) struct Writer {
    queue: Mutex<Queue>,
    changed: Condvar,
    dropped: Counter,
}

impl Writer {
    pub(super) const fn new() -> Self {
        let queue = Queue {
            entries: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            has_thread: false,
            is_writing: false,
            recent: RecentLines::new(),
        };
        Self { queue: Mutex::new(queue), changed: Condvar::new(), dropped: Counter::new() }
    }

    /// Lines that were dropped so far.
    pub(super) const fn dropped(&self) -> &Counter {
        &self.dropped
    }

    /// The last lines that were queued, and weren't dropped.
    pub(super) fn recent(&self) -> Vec<String> {
        self.lock().recent.lines()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread. `notice` builds the line that reports how many lines were dropped.
    pub(super) fn start(&'static self, output: impl Write + Send + 'static, notice: fn(u64) -> String) {
        let run = move || self.run(output, notice);
        // Without the thread, lines are written directly, as before.
        let has_thread = thread::Builder::new().name("log".into()).spawn(run).is_ok();
        self.lock().has_thread = has_thread;
    }

    /// Queues a line. Returns it if no thread runs that could write it. A line that `must` be written takes room beyond the bound.
    pub(super) fn queue(&self, line: String, must: bool) -> Option<String> {
        let mut queue = self.lock();
        if !queue.has_thread {
            return Some(line);
        }
        if queue.bytes + line.len() > QUEUE_BYTES_MAX && !must {
            queue.dropped += 1;
            self.dropped.add(1);
            return None;
        }
        queue.bytes += line.len();
        queue.recent.add(&line);
        let dropped_before = std::mem::take(&mut queue.dropped);
        queue.entries.push_back(Entry { dropped_before, line });
        drop(queue);
        self.changed.notify_all();
        None
    }

    /// Waits until every line is written, `within` at most.
    pub(super) fn flush(&self, within: Duration) {
        let until = Instant::now() + within;
        let mut queue = self.lock();
        while queue.is_writing || !queue.entries.is_empty() || queue.dropped > 0 {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return };
            queue = self.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn run(&self, mut output: impl Write, notice: fn(u64) -> String) {
        let mut dropped = 0;
        loop {
            let Entry { dropped_before, line } = self.next();
            dropped += dropped_before;
            let notice = if dropped > 0 { notice(dropped) } else { String::new() };
            if dropped > 0 && write(&mut output, &notice).is_ok() {
                self.lock().recent.add(&notice);
                dropped = 0;
            }
            // An empty line carries the count of dropped lines alone.
            if write(&mut output, &line).is_err() {
                dropped += 1;
                self.dropped.add(1);
            }
        }
    }

    /// The next line; waits for one.
    fn next(&self) -> Entry {
        let mut queue = self.lock();
        queue.is_writing = false;
        self.changed.notify_all();
        loop {
            if let Some(entry) = queue.entries.pop_front() {
                queue.bytes -= entry.line.len();
                queue.is_writing = true;
                return entry;
            }
            if queue.dropped > 0 {
                queue.is_writing = true;
                return Entry { dropped_before: std::mem::take(&mut queue.dropped), line: String::new() };
            }
            // After a burst, its memory is freed.
            queue.entries = VecDeque::new();
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Writes all of a text, also to a descriptor in non-blocking mode.
pub(super) fn write(output: &mut impl Write, text: &str) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match output.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY_AFTER),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, pipe};

    use super::*;

    fn notice(dropped: u64) -> String {
        format!("dropped {dropped}\n")
    }

    #[test]
    fn stopped_reader_blocks_no_writer_and_sees_drops() {
        static WRITER: Writer = Writer::new();
        static GATE: Mutex<()> = Mutex::new(());
        assert_eq!(WRITER.queue("direct".into(), false).as_deref(), Some("direct"), "no thread runs");
        let closed = GATE.lock().unwrap();
        let (reader, output) = pipe().unwrap();
        WRITER.start(Gated(output, &GATE), notice);
        WRITER.queue("first\n".into(), false);
        while !WRITER.lock().is_writing {
            thread::yield_now();
        }
        let line = |number: u32| format!("{number} {}\n", "x".repeat(1000));
        (0..1000).for_each(|number| assert_eq!(WRITER.queue(line(number), false), None));
        let dropped = WRITER.dropped().get();
        assert!((700..800).contains(&dropped), "{dropped}");
        WRITER.queue("fatal\n".into(), true);
        WRITER.flush(Duration::from_millis(10));
        drop(closed);

        let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "first");
        (0..1000 - dropped).for_each(|number| assert!(lines.next().unwrap().starts_with(&format!("{number} "))));
        assert_eq!(lines.next().unwrap(), format!("dropped {dropped}"), "it replaces the dropped lines");
        assert_eq!(lines.next().unwrap(), "fatal");
        WRITER.queue("again\n".into(), false);
        assert_eq!(lines.next().unwrap(), "again");
        let recent = WRITER.recent();
        assert!(recent.contains(&"first".to_owned()) && !recent.contains(&line(999).trim_end().to_owned()));
        assert_eq!(recent.last().unwrap(), "again");
        WRITER.flush(Duration::from_secs(60));
        assert!(WRITER.lock().entries.is_empty());
    }

    /// Writes only while no test thread has the gate locked.
    struct Gated(io::PipeWriter, &'static Mutex<()>);

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _open = self.1.lock().unwrap();
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_an_output_refuses_are_counted() {
        static WRITER: Writer = Writer::new();
        let (mut reader, output) = pipe().unwrap();
        WRITER.start(Refusing { output, refused: 1 }, notice);
        ["one\n", "two\n"].into_iter().for_each(|line| drop(WRITER.queue(line.into(), false)));
        WRITER.flush(Duration::from_secs(60));
        let mut seen = [0; 14];
        reader.read_exact(&mut seen).unwrap();
        assert_eq!((&seen, WRITER.dropped().get()), (b"dropped 1\ntwo\n", 1));
    }

    struct Refusing {
        output: io::PipeWriter,
        refused: u32,
    }

    impl Write for Refusing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.refused > 0 {
                self.refused -= 1;
                return Err(ErrorKind::StorageFull.into());
            }
            // A descriptor in non-blocking mode takes a part at a time.
            self.output.write(&bytes[..1])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
