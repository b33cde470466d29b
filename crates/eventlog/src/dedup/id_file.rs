//! The ids on disk, in separate small files: a segment that is freed takes its ids with it, and they must be known for
//! longer than the segment is needed.
//!
//! A file is a sequence of frames. A frame has the ids of one chunk of one shard's log, and a checksum: a torn frame
//! isn't read. Each process begins a new file and never writes to an older one.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use event::EventId;
use journal::disk::{DiskFile, SharedDisk};
use xxhash_rust::xxh3::Xxh3Default;

const MAGIC: [u8; 4] = *b"FIDS";
const HEADER_BYTES: usize = 48;
const SUM_BYTES: usize = 8;
const ENTRY_BYTES: usize = 32;
/// A file with this many bytes is followed by a new one.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// At the next start, more files than this are joined into one.
const FILES_MAX: usize = 16;
/// Bytes that the files may have for each id that they hold at least: frames with few ids take more than these.
const KEPT_BYTES_PER_ID: u64 = 4 * ENTRY_BYTES as u64;
const PREFIX: &str = "ids-";
/// No process reaches this number: such a file isn't from Forebay.
const NUMBER_MAX: u64 = 1 << 48;

/// The ids of the chunk `(after, up_to]` of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) shard: u16,
    pub(super) after: u64,
    pub(super) up_to: u64,
    /// Microseconds since 1970, UTC.
    pub(super) written_at: i64,
    pub(super) ids: Vec<StoredId>,
}

/// An id, the hash of its event's bytes, and its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredId {
    pub(super) id: EventId,
    pub(super) content: u64,
    pub(super) sequence: u64,
}

impl Frame {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&u32::from(self.shard).to_le_bytes());
        bytes.extend_from_slice(&self.after.to_le_bytes());
        bytes.extend_from_slice(&self.up_to.to_le_bytes());
        bytes.extend_from_slice(&self.written_at.to_le_bytes());
        bytes.extend_from_slice(&(self.ids.len() as u64).to_le_bytes());
        let at_sum = bytes.len();
        bytes.extend_from_slice(&[0; SUM_BYTES]);
        for StoredId { id, content, sequence } in &self.ids {
            bytes.extend_from_slice(&id.0);
            bytes.extend_from_slice(&content.to_le_bytes());
            bytes.extend_from_slice(&sequence.to_le_bytes());
        }
        let (header, body) = bytes[start..].split_at(HEADER_BYTES);
        let sum = checksum(header, body);
        bytes[at_sum..at_sum + SUM_BYTES].copy_from_slice(&sum.to_le_bytes());
    }

    /// The frame at the start of `bytes`, with its length, if it is valid.
    fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let count = usize::try_from(number(32)?).ok()?;
        let body = rest.get(..count.checked_mul(ENTRY_BYTES)?)?;
        if header[..4] != MAGIC || checksum(header, body) != number(40)? {
            return None;
        }
        let shard = u16::try_from(u32::from_le_bytes(header[4..8].try_into().ok()?)).ok()?;
        let ids = body.chunks_exact(ENTRY_BYTES).filter_map(remembered).collect();
        let frame = Self { shard, after: number(8)?, up_to: number(16)?, written_at: number(24)?.cast_signed(), ids };
        Some((frame, HEADER_BYTES + body.len()))
    }
}

impl Frame {
    /// Whether `bytes` are the beginning of a frame whose end was never written, or nothing.
    fn is_cut(bytes: &[u8]) -> bool {
        let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else { return true };
        let count = header[32..].first_chunk().map_or(0, |count| u64::from_le_bytes(*count));
        header[..4] == MAGIC && count.saturating_mul(ENTRY_BYTES as u64) > body.len() as u64
    }
}

/// XXH3-64 of the frame with zeros for the checksum, which ends the header.
fn checksum(header: &[u8], body: &[u8]) -> u64 {
    let mut hasher = Xxh3Default::new();
    hasher.update(&header[..HEADER_BYTES - SUM_BYTES]);
    hasher.update(&[0; SUM_BYTES]);
    hasher.update(body);
    hasher.digest()
}

fn remembered(bytes: &[u8]) -> Option<StoredId> {
    let (id, rest) = bytes.split_first_chunk()?;
    let (content, sequence) = rest.split_first_chunk()?;
    let sequence = u64::from_le_bytes(sequence.try_into().ok()?);
    Some(StoredId { id: EventId(*id), content: u64::from_le_bytes(*content), sequence })
}

fn read_file(disk: &SharedDisk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let mut bytes = vec![0; usize::try_from(file.length()?).map_err(|_| io::ErrorKind::FileTooLarge)?];
    let filled = file.read_full_at(&mut bytes, 0)?;
    bytes.truncate(filled);
    Ok(bytes)
}

/// The number of a file of ids. Other names are no such file's.
fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (number < NUMBER_MAX && format!("{PREFIX}{number:08}") == name).then_some(number)
}

/// The frames of a file, and how many ids they have.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
    ids: usize,
}

impl Frames {
    fn push(&mut self, frame: &Frame) {
        frame.encode(&mut self.bytes);
        self.ids += frame.ids.len();
    }
}

/// A file's number and size.
#[derive(Clone, Copy, Debug)]
struct Listed {
    number: u64,
    ids: usize,
    bytes: u64,
}

/// The files.
pub(crate) struct IdFiles {
    disk: SharedDisk,
    directory: PathBuf,
    /// Oldest first.
    files: VecDeque<Listed>,
    /// As many ids as the newer files must hold before an older one may go; or as many bytes as [`KEPT_BYTES_PER_ID`] says.
    ids_kept: usize,
    open: Option<(Box<dyn DiskFile>, u64)>,
    next: u64,
    /// Whether this process has added a frame, or tried to.
    has_begun: bool,
}

impl IdFiles {
    /// Finds the files in `directory`, which is created if it is missing, and gives each valid frame to `take`, oldest
    /// first.
    pub(super) fn open(
        disk: SharedDisk,
        directory: &Path,
        ids_kept: usize,
        mut take: impl FnMut(Frame),
    ) -> io::Result<Self> {
        journal::make_directory(&*disk, directory)?;
        let names = disk.list(directory)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
        numbers.sort_unstable();
        let next = numbers.last().map_or(1, |last| last + 1);
        let files = VecDeque::with_capacity(numbers.len());
        let mut this = Self { disk, directory: directory.into(), files, ids_kept, open: None, next, has_begun: false };
        for number in numbers {
            let mut ids = 0;
            let bytes = this.read(number, |frame| {
                ids += frame.ids.len();
                take(frame);
            })?;
            this.files.push_back(Listed { number, ids, bytes });
        }
        Ok(this)
    }

    /// Keeps the part of each frame that `keep` returns: a later start must not trust the rest. Returns whether the
    /// files still exist. If they can't be rewritten they are removed: stores recognise a duplicate by their own keys,
    /// but the id of a lost event would keep the event out. Like [`IdFiles::join_files`] it must be called first.
    ///
    /// # Errors
    /// The file system's error: a file that must not be trusted still exists.
    pub(super) fn keep_only(&mut self, keep: impl FnMut(Frame) -> Option<Frame>) -> io::Result<bool> {
        let first_new = self.next;
        let written = self.join_files(keep).is_ok();
        while let Some(Listed { number, .. }) = self.files.front().copied()
            && (number < first_new || !written)
        {
            self.remove(number)?;
            self.files.pop_front();
        }
        self.disk.sync_directory(&self.directory)?;
        Ok(written)
    }

    /// Joins many files into few: each process leaves one, and it may have written little. Call it before this process
    /// adds its own frames, since frames are in the order of their files.
    fn join_files(&mut self, keep: impl FnMut(Frame) -> Option<Frame>) -> io::Result<()> {
        let (old, first_new) = (self.files.clone(), self.next);
        let written = self.write_again(&old, keep);
        if written.is_err() {
            self.open = None;
        }
        let stays = |number: u64| (number >= first_new) == written.is_ok();
        // If one can't be removed, the next start reads it again, which does no harm after a join.
        let files = std::mem::take(&mut self.files);
        self.files = files.into_iter().filter(|file| stays(file.number) || self.remove(file.number).is_err()).collect();
        written
    }

    fn write_again(
        &mut self,
        files: &VecDeque<Listed>,
        mut keep: impl FnMut(Frame) -> Option<Frame>,
    ) -> io::Result<()> {
        let mut frames = Frames::default();
        for file in files {
            self.read(file.number, |frame| keep(frame).iter().for_each(|frame| frames.push(frame)))?;
            if frames.bytes.len() as u64 >= FILE_BYTES_MAX {
                self.write(&std::mem::take(&mut frames))?;
            }
        }
        self.write(&frames)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{PREFIX}{number:08}"))
    }

    /// Gives the valid frames of a file to `take`, and returns the file's length.
    fn read(&self, number: u64, mut take: impl FnMut(Frame)) -> io::Result<u64> {
        let bytes = read_file(&self.disk, &self.path(number))?;
        let mut rest = &*bytes;
        while let Some((frame, length)) = Frame::decode(rest) {
            take(frame);
            rest = &rest[length..];
        }
        Ok(bytes.len() as u64)
    }

    /// The files in `directory` that are damaged. A file that ends in the midst of a frame isn't: a process was killed there.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn damaged(disk: &SharedDisk, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = journal::list_directory(&**disk, directory)?;
        names.retain(|name| number_of(name).is_some());
        names.sort_unstable();
        let mut damaged = Vec::new();
        for name in names {
            let path = directory.join(name);
            let bytes = read_file(disk, &path)?;
            let mut rest = &*bytes;
            while let Some((_, length)) = Frame::decode(rest) {
                rest = &rest[length..];
            }
            if !Frame::is_cut(rest) {
                damaged.push(path);
            }
        }
        Ok(damaged)
    }

    /// Adds a frame; it is durable when this returns.
    pub(super) fn append(&mut self, frame: &Frame) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) && self.files.len() > FILES_MAX {
            // If there is no space for it, the next process tries again.
            drop(self.join_files(Some));
        }
        let mut frames = Frames::default();
        frames.push(frame);
        self.write(&frames)?;
        self.drop_oldest()
    }

    fn write(&mut self, frames: &Frames) -> io::Result<()> {
        // After a failure the file's content is unknown: it is left, and the next one begins.
        match self.open.take() {
            Some((file, length)) if length < FILE_BYTES_MAX => self.write_to(file, length, frames),
            _ => {
                let file = self.begin()?;
                let written = self.write_to(file, 0, frames).and_then(|()| self.disk.sync_directory(&self.directory));
                if written.is_err() {
                    // A full disk would have one more of them with every try.
                    self.open = None;
                    self.files.pop_back().into_iter().for_each(|file| drop(self.remove(file.number)));
                }
                written
            }
        }
    }

    fn write_to(&mut self, file: Box<dyn DiskFile>, length: u64, frames: &Frames) -> io::Result<()> {
        file.write_all_at(&frames.bytes, length)?;
        file.sync()?;
        self.open = Some((file, length + frames.bytes.len() as u64));
        if let Some(newest) = self.files.back_mut() {
            newest.ids += frames.ids;
            newest.bytes += frames.bytes.len() as u64;
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<Box<dyn DiskFile>> {
        let number = self.next;
        self.next += 1;
        let file = self.disk.create(&self.path(number))?;
        self.files.push_back(Listed { number, ids: 0, bytes: 0 });
        Ok(file)
    }

    fn drop_oldest(&mut self) -> io::Result<()> {
        let bytes_kept = self.ids_kept as u64 * KEPT_BYTES_PER_ID;
        let mut newer_ids: usize = self.files.iter().map(|file| file.ids).sum();
        let mut newer_bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        while let Some(Listed { number, ids, bytes }) = self.files.front().copied() {
            newer_ids -= ids;
            newer_bytes -= bytes;
            if newer_ids < self.ids_kept && newer_bytes < bytes_kept || self.files.len() == 1 {
                break;
            }
            self.remove(number)?;
            self.files.pop_front();
        }
        Ok(())
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        match self.disk.remove(&self.path(number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use journal::simulated_disk::{CutStyle, SimulatedDisk};

    use super::*;

    const DIRECTORY: &str = "/ids";

    fn frame(after: u64, count: u64) -> Frame {
        let id = |sequence: u64| StoredId { id: EventId([7; 16]), content: sequence * 3, sequence };
        let ids = (after + 1..=after + count).map(id).collect();
        Frame { shard: 2, after, up_to: after + count, written_at: -5, ids }
    }

    fn open(disk: &SimulatedDisk, ids_kept: usize) -> (IdFiles, Vec<Frame>) {
        let mut frames = Vec::new();
        let disk = Arc::new(disk.clone());
        let files = IdFiles::open(disk, Path::new(DIRECTORY), ids_kept, |frame| frames.push(frame)).unwrap();
        (files, frames)
    }

    fn append(files: &mut IdFiles, frames: &[Frame]) {
        frames.iter().for_each(|frame| files.append(frame).unwrap());
    }

    fn file_count(disk: &SimulatedDisk) -> usize {
        disk.paths().iter().filter(|path| path.starts_with(DIRECTORY) && path.as_os_str() != DIRECTORY).count()
    }

    #[test]
    fn appended_frames_survive_a_power_cut() {
        let disk = SimulatedDisk::new(1);
        let (mut files, none) = open(&disk, 100);
        assert!(none.is_empty());
        append(&mut files, &[frame(0, 3), frame(3, 0), frame(3, 2)]);
        disk.power_cut_in_style(CutStyle::LoseAll);
        let (mut again, frames) = open(&disk, 100);
        assert_eq!(frames, [frame(0, 3), frame(3, 0), frame(3, 2)]);
        append(&mut again, &[frame(5, 1)]);
        assert_eq!(open(&disk, 100).1.len(), 4);
    }

    #[test]
    fn damaged_frame_ends_only_its_file() {
        let disk = SimulatedDisk::new(1);
        append(&mut open(&disk, 100).0, &[frame(0, 2), frame(2, 2), frame(4, 2)]);
        append(&mut open(&disk, 100).0, &[frame(6, 2)]);
        let second = HEADER_BYTES + 2 * ENTRY_BYTES;
        disk.flip_bit(format!("{DIRECTORY}/ids-00000001"), 8 * second as u64 + 100).unwrap();
        assert_eq!(open(&disk, 100).1, [frame(0, 2), frame(6, 2)]);
    }

    #[test]
    fn old_files_go_when_newer_ones_hold_enough() {
        let disk = SimulatedDisk::new(1);
        for start in 0..10 {
            append(&mut open(&disk, 25).0, &[frame(start * 10, 10)]);
        }
        let frames = open(&disk, 25).1;
        assert_eq!(frames.iter().map(|frame| frame.after).collect::<Vec<_>>(), [70, 80, 90]);
    }

    #[test]
    fn files_with_few_ids_are_removed() {
        let disk = SimulatedDisk::new(1);
        let empty = |after: u64| frame(after, 0);
        let mut files = open(&disk, 100).0;
        let per_file = FILE_BYTES_MAX / HEADER_BYTES as u64 + 1;
        for after in 0..3 * per_file {
            files.append(&empty(after)).unwrap();
        }
        assert!(file_count(&disk) <= 2, "{}", file_count(&disk));
    }

    #[test]
    fn many_small_files_are_joined() {
        let disk = SimulatedDisk::new(1);
        for start in 0..40 {
            append(&mut open(&disk, 1000).0, &[frame(start, 1)]);
            assert!(file_count(&disk) <= FILES_MAX + 1);
        }
        let afters: Vec<_> = open(&disk, 1000).1.iter().map(|frame| frame.after).collect();
        assert_eq!(afters, (0..40).collect::<Vec<_>>());
    }

    /// A file that is too long for the window to need all of it would be kept until as many newer ids have come.
    #[test]
    fn joined_files_are_no_longer_than_others() {
        const IDS: u64 = 50_000;
        const FRAME_BYTES: u64 = IDS * ENTRY_BYTES as u64;
        let disk = SimulatedDisk::new(1);
        for start in 0..=FILES_MAX as u64 {
            append(&mut open(&disk, 10_000_000).0, &[frame(start * IDS, IDS)]);
        }
        let mut joined = open(&disk, 10_000_000).0;
        append(&mut joined, &[frame(17 * IDS, 1)]);
        let longest = joined.files.iter().map(|file| (file.ids * ENTRY_BYTES) as u64).max().unwrap();
        assert!((FILE_BYTES_MAX..FILE_BYTES_MAX + 2 * FRAME_BYTES).contains(&longest), "{longest}");
        assert_eq!(open(&disk, 10_000_000).1.len(), FILES_MAX + 2);
    }

    #[test]
    fn small_files_stay_without_space_to_join() {
        let disk = SimulatedDisk::new(1);
        for start in 0..=FILES_MAX as u64 {
            append(&mut open(&disk, 1000).0, &[frame(start * 10, 10)]);
        }
        let (mut files, before) = open(&disk, 1000);
        disk.set_capacity(Some(disk.bytes_used()));
        for _ in 0..3 {
            assert!(files.append(&frame(170, 4000)).is_err());
        }
        assert_eq!(file_count(&disk), FILES_MAX + 1);
        disk.set_capacity(None);
        append(&mut files, &[frame(170, 1)]);
        let (mut files, after) = open(&disk, 1000);
        assert_eq!(after, [before, vec![frame(170, 1)]].concat());
        append(&mut files, &[frame(171, 1)]);
        assert_eq!((file_count(&disk), open(&disk, 1000).1.len()), (1, FILES_MAX + 3));
    }

    /// Keeps the frames after the first, without their second ids.
    fn less(frame: Frame) -> Option<Frame> {
        let ids = frame.ids.iter().copied().filter(|known| known.sequence != frame.after + 2).collect();
        (frame.after > 0).then_some(Frame { ids, ..frame })
    }

    #[test]
    fn removed_ids_are_not_read_again() {
        for full in [false, true] {
            let disk = SimulatedDisk::new(1);
            append(&mut open(&disk, 100).0, &[frame(0, 3)]);
            append(&mut open(&disk, 100).0, &[frame(3, 3)]);
            let mut files = open(&disk, 100).0;
            disk.set_capacity(full.then(|| disk.bytes_used()));
            assert_eq!(files.keep_only(less).unwrap(), !full);
            disk.set_capacity(None);
            append(&mut files, &[frame(6, 1)]);
            disk.power_cut_in_style(CutStyle::LoseAll);
            let kept = if full { Vec::new() } else { vec![less(frame(3, 3)).unwrap()] };
            assert_eq!(open(&disk, 100).1, [kept, vec![frame(6, 1)]].concat());
        }
    }

    #[test]
    fn after_a_failure_a_new_file_is_begun() {
        let disk = SimulatedDisk::new(1);
        let (mut files, _) = open(&disk, 100);
        append(&mut files, &[frame(0, 1)]);
        disk.set_capacity(Some(disk.bytes_used()));
        assert!(files.append(&frame(1, 4000)).is_err());
        disk.set_capacity(None);
        append(&mut files, &[frame(1, 1)]);
        assert_eq!((file_count(&disk), open(&disk, 100).1), (2, vec![frame(0, 1), frame(1, 1)]));
    }
}
