//! The blocks of one input, from the place where the last load ended, to its end or endlessly.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::ack_watermark::AckWatermark;
use anyhow::bail;

use super::array::Array;
use super::follow::{Change, Follow};
use super::gaps::Gaps;
use super::input::{self, Form, Input, Opened, Stream};
use super::lines::{Cut, LastLine, Lines};
use super::state::{self, Entry, Place};
use super::{rotation, unreadable};

const CANNOT_FOLLOW: &str = "--follow needs an uncompressed file with one event on each line: load this file without \
    --follow";

/// Whole lines of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Counted from 0 in this run.
    pub(super) number: u64,
    /// The file under the input's name, see [`Entry`].
    pub(super) generation: u64,
    /// Where it begins, in decoded bytes.
    pub(super) offset: u64,
    /// Lines before it.
    pub(super) lines_before: u64,
    /// Lines in it.
    pub(super) lines: u64,
    /// A skipped line of so many bytes follows these.
    pub(super) too_long: Option<u64>,
    /// Its end.
    pub(super) place: Place,
}

/// One input.
pub(super) struct Source<'a> {
    cutter: Cutter,
    entry: Entry,
    block_bytes: usize,
    follow: Option<Follow<'a>>,
    gaps: Gaps<'a>,
    name: String,
    counts_lines: bool,
    stop: &'a AtomicBool,
    read: Arc<AtomicU64>,
    number: u64,
    is_at_end: bool,
    /// A skipped line follows the last block.
    too_long: Option<u64>,
    /// The bytes read of a stream of lines don't end with a line break.
    is_within_line: bool,
    /// The last block ends where the input ended: until it is answered, nothing after it may be sent, since only one such
    /// end is remembered.
    must_wait: bool,
}

/// The reason for a block's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is full.
    Full,
    /// It ended there before, when the input was shorter.
    AsBefore,
    /// The input ends there, for now or permanently.
    Input,
}

enum Cutter {
    Lines(Lines),
    Array(Array<Stream>),
}

impl Cutter {
    /// Whether the next block is an error.
    const fn has_failed(&self) -> bool {
        match self {
            Self::Lines(lines) => lines.has_failed(),
            Self::Array(array) => array.has_failed(),
        }
    }
}

/// How a source is read.
pub(super) struct Reading<'a> {
    pub(super) block_bytes: usize,
    pub(super) follow: bool,
    /// For how long a file that is followed and has lost its name must not grow to be left.
    pub(super) settle: Duration,
    /// Whether blocks say how many lines they have.
    pub(super) counts_lines: bool,
    pub(super) stop: &'a AtomicBool,
    /// Counts the bytes read of the file.
    pub(super) read: Arc<AtomicU64>,
    /// Also reports other problems to the operator.
    pub(super) gaps: Gaps<'a>,
}

impl<'a> Source<'a> {
    /// Opens an input at the place of `entry`.
    pub(super) fn open(input: &Input, entry: Option<&Entry>, reading: Reading<'a>) -> anyhow::Result<Self> {
        let found = find(input, entry, &reading)?;
        let Found { opened, entry, is_rotated, is_within_line } = found;
        let Opened { stream, form, .. } = opened;
        let follow = match input {
            Input::File(path) if reading.follow => {
                let Some(file) = stream.file() else { bail!(CANNOT_FOLLOW) };
                let file = file.try_clone().map_err(unreadable)?;
                let lost_name_at = is_rotated.then(Instant::now);
                Some(Follow::new(path.clone(), file, lost_name_at, reading.settle, reading.gaps)?)
            }
            _ if reading.follow => bail!(CANNOT_FOLLOW),
            _ => None,
        };
        let Place { offset, is_end, .. } = entry.place;
        if form == Form::OverLines && offset == 0 {
            bail!(
                "it is pretty-printed: its first value has several lines. Convert it to one value a line, as `jq -c . FILE` does"
            );
        }
        let is_array = form == Form::Array && follow.is_none();
        let cutter =
            if is_array { Cutter::Array(Array::new(stream, offset)) } else { Cutter::Lines(Lines::new(stream)) };
        let Reading { block_bytes, counts_lines, stop, read, gaps, .. } = reading;
        let is_at_end = is_array && is_end;
        let source = Self {
            cutter,
            entry,
            block_bytes,
            follow,
            gaps,
            name: input.name(),
            counts_lines,
            stop,
            read,
            number: 0,
            is_at_end,
            too_long: None,
            is_within_line,
            must_wait: false,
        };
        Ok(source)
    }

    /// Whether it begins within a line.
    pub(super) const fn is_within_line(&self) -> bool {
        self.is_within_line && matches!(self.cutter, Cutter::Lines(_))
    }

    /// Where it begins.
    pub(super) const fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Puts the next lines into `block`; none at the end, or when it is time to stop.
    pub(super) fn next(&mut self, block: &mut Vec<u8>, watermark: &AckWatermark<'_>) -> anyhow::Result<Option<Block>> {
        while !self.is_at_end && !self.stop.load(Ordering::Relaxed) {
            if self.must_wait && !watermark.wait(self.number)? {
                return Ok(None);
            }
            // Nothing after an error is read: its place wouldn't be known.
            let end = self.cut(block).inspect_err(|_| self.is_at_end = true)?;
            let is_empty = block.is_empty() && self.too_long.is_none();
            if is_empty && end == End::Full {
                continue;
            }
            self.must_wait = end == End::AsBefore || (end == End::Input && self.follow.is_some());
            self.is_at_end = end == End::Input && self.follow.is_none() && !self.cutter.has_failed();
            if !is_empty {
                let found = self.block(block);
                if end == End::Input {
                    watermark.cut(found.place.offset)?;
                }
                return Ok(Some(found));
            }
            if !self.wait_for_more(watermark)? {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn cut(&mut self, block: &mut Vec<u8>) -> anyhow::Result<End> {
        let has_ended = match &mut self.cutter {
            Cutter::Array(array) => {
                let cut = array.next(block, self.block_bytes, self.entry.cut)?;
                self.too_long = cut.too_long;
                cut.has_ended
            }
            Cutter::Lines(lines) => {
                let is_growing = self.follow.as_ref().is_some_and(|follow| !follow.is_draining());
                let last_line = if is_growing { LastLine::Awaited } else { LastLine::Taken };
                let Cut { has_ended, too_long, nul_bytes } = lines.next(block, self.block_bytes, last_line)?;
                self.too_long = too_long;
                if nul_bytes > 0 {
                    self.skip_nul_bytes(nul_bytes);
                    return Ok(if has_ended { End::Input } else { End::Full });
                }
                if self.is_within_line && (!block.is_empty() || too_long.is_some()) {
                    let following: &[u8] = if too_long.is_some() { lines.passed_tail() } else { &*block };
                    check_line_end(following, self.entry.place)?;
                }
                let before = self.entry.cut.checked_sub(self.entry.place.offset);
                let before = before.and_then(|length| usize::try_from(length).ok()).filter(|length| *length > 0);
                if let Some(length) =
                    before.filter(|length| *length < block.len() || !has_ended && *length == block.len())
                {
                    if block[length - 1] != b'\n' && length < block.len() {
                        let breaks = memchr::memchr_iter(b'\n', &block[..length]).count() as u64;
                        let Place { lines, .. } = self.entry.place;
                        let at = Place { offset: self.entry.cut, lines: lines + breaks, ..Place::default() };
                        check_line_end(&block[length..], at)?;
                    }
                    lines.put_back(block, length);
                    return Ok(End::AsBefore);
                }
                has_ended
            }
        };
        Ok(if has_ended { End::Input } else { End::Full })
    }

    /// They belong to no block: the next one begins after them.
    fn skip_nul_bytes(&mut self, nul_bytes: u64) {
        let Self { name, entry: Entry { place: Place { offset, .. }, .. }, .. } = self;
        (self.gaps.notify)(&format!(
            "{name}: skipped {nul_bytes} NUL bytes from byte {offset} on, as a writer that keeps its offset leaves them when its log is truncated"
        ));
        self.entry.place.offset += nul_bytes;
    }

    fn block(&mut self, bytes: &[u8]) -> Block {
        let before = self.entry.place;
        let breaks = if self.counts_lines { memchr::memchr_iter(b'\n', bytes).count() as u64 } else { 0 };
        let too_long = self.too_long.take();
        let (tail, offset) = match (&self.cutter, too_long) {
            (Cutter::Array(array), _) => (array.tail(), array.offset()),
            (Cutter::Lines(lines), Some(length)) => (lines.passed_tail(), before.offset + length),
            (Cutter::Lines(_), None) => (bytes, before.offset + bytes.len() as u64),
        };
        let is_within_line = matches!(self.cutter, Cutter::Lines(_)) && tail.last() != Some(&b'\n');
        let passed = u64::from(too_long.is_some() && !is_within_line);
        let place = Place::behind(tail, offset, before.lines + breaks + passed, self.is_at_end);
        self.entry.place = place;
        let number = self.number;
        self.number += 1;
        let generation = self.entry.generation;
        let is_cut = self.counts_lines && bytes.last().is_some_and(|byte| *byte != b'\n');
        self.is_within_line = is_within_line;
        let lines = breaks + u64::from(is_cut);
        Block { number, generation, offset: before.offset, lines_before: before.lines, lines, too_long, place }
    }

    /// Nothing is there to be read: false if nothing more will come.
    fn wait_for_more(&mut self, watermark: &AckWatermark<'_>) -> anyhow::Result<bool> {
        let (Some(follow), Cutter::Lines(lines)) = (&mut self.follow, &self.cutter) else { return Ok(false) };
        let read_up_to = self.entry.place.offset + lines.read_ahead();
        match follow.check(read_up_to, Instant::now())? {
            Change::None => follow.wait(),
            Change::Draining => {}
            Change::Replaced(file) => {
                if !watermark.wait(self.number)? {
                    return Ok(false);
                }
                self.replace(file, watermark)?;
            }
        }
        Ok(!watermark.is_given_up())
    }

    fn replace(&mut self, file: File, watermark: &AckWatermark<'_>) -> anyhow::Result<()> {
        let metadata = file.metadata().map_err(unreadable)?;
        let id = input::FileId::of(&metadata);
        self.entry = Entry { generation: self.entry.generation + 1, file: id, ..Entry::default() };
        self.cutter = Cutter::Lines(Lines::new(Stream::plain(file, self.read.clone())));
        self.is_within_line = false;
        watermark.begin(self.entry.clone())
    }
}

struct Found {
    opened: Opened,
    entry: Entry,
    /// It has lost its name.
    is_rotated: bool,
    /// There is no line break before the place where the load resumes.
    is_within_line: bool,
}

/// A line that was loaded without a line break must end where it ended then, but for white space: what follows is no line.
fn check_line_end(following: &[u8], at: Place) -> anyhow::Result<()> {
    let end = memchr::memchr(b'\n', following).unwrap_or(following.len());
    let is_blank = following[..end].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
    let (line, offset) = (at.lines + 1, at.offset);
    if !is_blank {
        bail!(
            "line {line} was loaded without a line break, and continues at byte {offset} now. Nothing was sent. If it was whole, insert \
             a line break there. If not, load the rest: `tail -n +{line} FILE | forebay load - --id NAME`, or use --follow"
        );
    }
    Ok(())
}

/// The input, moved to where the load resumes.
fn find(input: &Input, entry: Option<&Entry>, reading: &Reading<'_>) -> anyhow::Result<Found> {
    let mut opened = input::open(input, &reading.read)?;
    let restart = |opened: Opened, generation| {
        let head = opened.head().map_err(unreadable)?;
        let entry = Entry { generation, file: opened.file, head, ..Entry::default() };
        Ok(Found { opened, entry, is_rotated: false, is_within_line: false })
    };
    let Some(entry) = entry else { return restart(opened, 0) };
    if let Some(tail) = tail(&mut opened, entry, reading.follow)? {
        let entry = Entry { file: opened.file, ..entry.clone() };
        if matches!(opened.stream, Stream::Plain(_)) {
            // It was skipped without being read.
            reading.read.store(entry.place.offset, Ordering::Relaxed);
        }
        return Ok(Found { opened, entry, is_rotated: false, is_within_line: is_within_line(&tail) });
    }
    let Input::File(path) = input else {
        bail!("the standard input isn't the one that this state belongs to: give another --state");
    };
    let is_shorter = || opened.is_shorter_than(entry.file, &entry.head, entry.place.offset);
    if !reading.follow && is_shorter().map_err(unreadable)? {
        bail!(
            "it was truncated: it has {} bytes, of {} that were loaded. Nothing was sent now. If it has new lines, load them as a separate \
             file; if all its lines are new, name another --state",
            opened.size,
            entry.place.offset
        );
    }
    if reading.follow
        && let Some(file) = rotation::find(path, entry.file).map_err(unreadable)?
    {
        let mut opened = input::open_file(path, file, &reading.read)?;
        if let Some(tail) = tail(&mut opened, entry, true)? {
            let is_within_line = is_within_line(&tail);
            return Ok(Found { opened, entry: entry.clone(), is_rotated: true, is_within_line });
        }
    }
    let notice = format!("{} isn't the file that was loaded before: all of it is loaded", input.name());
    if reading.follow {
        let offset = entry.place.offset;
        reading.gaps.report(&format!(
            "{notice}. The earlier file was removed, compressed or truncated: its lines from byte {offset} on may be missing, and those of \
             files in between. Load these separately"
        ));
    } else {
        (reading.gaps.notify)(&notice);
    }
    reading.read.store(0, Ordering::Relaxed);
    restart(input::open(input, &reading.read)?, entry.generation + 1)
}

/// The bytes before the place where the load resumes, if they are unchanged, which identifies the file.
fn tail(opened: &mut Opened, entry: &Entry, must_be_same_file: bool) -> anyhow::Result<Option<Vec<u8>>> {
    let Place { offset, tail_bytes, tail_sum, .. } = entry.place;
    if opened.file != entry.file && (must_be_same_file || tail_bytes == 0) {
        return Ok(None);
    }
    let mut tail = Vec::with_capacity(tail_bytes);
    let mut read = || {
        opened.stream.skip_to(offset - tail_bytes as u64)?;
        opened.stream.by_ref().take(tail_bytes as u64).read_to_end(&mut tail)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(unreadable(error)),
        Ok(_) => {
            let is_same = tail.len() == tail_bytes && (tail_bytes == 0 || state::sum(&tail) == tail_sum);
            Ok(is_same.then_some(tail))
        }
    }
}

fn is_within_line(tail: &[u8]) -> bool {
    tail.last().is_some_and(|byte| *byte != b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_line_must_end_at_same_place() {
        let at = Place { offset: 9, lines: 2, ..Place::default() };
        for following in ["\n", "\n3\n", "\r\n3", " \t\n3", "\r", ""] {
            assert!(check_line_end(following.as_bytes(), at).is_ok(), "{following:?}");
        }
        for following in ["4", "34\n", "\r3\n", " x\n"] {
            let error = check_line_end(following.as_bytes(), at).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("line 3 ") && error.contains("at byte 9 now"), "{following:?}: {error}");
        }
    }
}
