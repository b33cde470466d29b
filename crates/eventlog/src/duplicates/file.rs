//! The ids on disk, in small files of their own: a segment that is freed takes its ids with it, and they must be known
//! longer than it is needed.
//!
//! A file is a row of frames. A frame says what ids stand in one stretch of one shard's log, and has a checksum: what is
//! torn isn't read. A process begins a file of its own and never writes to an older one.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use event::EventId;
use journal::disk::{DiskFile, SharedDisk};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 4] = *b"FIDS";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 32;
/// A file that has so many bytes is followed by a new one.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// More files than this are made one at the next start.
const FILES_MAX: usize = 16;
const PREFIX: &str = "ids-";

/// The ids of the stretch `(after, up_to]` of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) shard: u16,
    pub(super) after: u64,
    pub(super) up_to: u64,
    /// Microseconds since 1970, UTC.
    pub(super) written_at: i64,
    pub(super) ids: Vec<Remembered>,
}

/// An id, the hash of what came with it, and its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remembered {
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
        bytes.extend_from_slice(&[0; 8]);
        for Remembered { id, content, sequence } in &self.ids {
            bytes.extend_from_slice(&id.0);
            bytes.extend_from_slice(&content.to_le_bytes());
            bytes.extend_from_slice(&sequence.to_le_bytes());
        }
        let sum = xxh3_64(&bytes[start..]);
        bytes[at_sum..at_sum + 8].copy_from_slice(&sum.to_le_bytes());
    }

    /// The frame at the start of `bytes`, with its length, if it is a sound one.
    fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let count = usize::try_from(number(32)?).ok()?;
        let body = rest.get(..count.checked_mul(ENTRY_BYTES)?)?;
        let mut whole = header.to_vec();
        whole[40..].fill(0);
        whole.extend_from_slice(body);
        if header[..4] != MAGIC || xxh3_64(&whole) != number(40)? {
            return None;
        }
        let shard = u16::try_from(u32::from_le_bytes(header[4..8].try_into().ok()?)).ok()?;
        let ids = body.chunks_exact(ENTRY_BYTES).filter_map(remembered).collect();
        let frame = Self { shard, after: number(8)?, up_to: number(16)?, written_at: number(24)?.cast_signed(), ids };
        Some((frame, HEADER_BYTES + body.len()))
    }
}

fn remembered(bytes: &[u8]) -> Option<Remembered> {
    let (id, rest) = bytes.split_first_chunk()?;
    let (content, sequence) = rest.split_first_chunk()?;
    let sequence = u64::from_le_bytes(sequence.try_into().ok()?);
    Some(Remembered { id: EventId(*id), content: u64::from_le_bytes(*content), sequence })
}

/// The files.
pub(super) struct IdFiles {
    disk: SharedDisk,
    directory: PathBuf,
    /// Number and count of ids of each file, oldest first.
    files: VecDeque<(u64, usize)>,
    /// As many ids as the newer files must hold before an older one may go.
    ids_kept: usize,
    open: Option<(Box<dyn DiskFile>, u64)>,
    next: u64,
}

impl IdFiles {
    /// Reads the files in `directory`, which is made if it is missing: all sound frames, oldest first.
    pub(super) fn open(disk: SharedDisk, directory: &Path, ids_kept: usize) -> io::Result<(Self, Vec<Frame>)> {
        disk.create_directory(directory)?;
        if let Some(above) = directory.parent() {
            disk.sync_directory(above)?;
        }
        let names = disk.list(directory)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
        numbers.sort_unstable();
        let mut this = Self {
            disk,
            directory: directory.into(),
            files: VecDeque::new(),
            ids_kept,
            open: None,
            next: numbers.last().map_or(1, |last| last + 1),
        };
        let mut frames = Vec::new();
        for number in numbers {
            let read = this.read(number)?;
            this.files.push_back((number, read.iter().map(|frame| frame.ids.len()).sum()));
            frames.extend(read);
        }
        if this.files.len() > FILES_MAX {
            // Where there is no space for it, the next start tries again.
            drop(this.join_files(&frames));
        }
        Ok((this, frames))
    }

    /// Makes one file of all: each process leaves one, and it may have written little.
    fn join_files(&mut self, frames: &[Frame]) -> io::Result<()> {
        let old: Vec<u64> = self.files.iter().map(|(number, _)| *number).collect();
        self.append(frames)?;
        for number in old {
            self.remove(number)?;
            self.files.retain(|(known, _)| *known != number);
        }
        Ok(())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{PREFIX}{number:08}"))
    }

    fn read(&self, number: u64) -> io::Result<Vec<Frame>> {
        let file = self.disk.open(&self.path(number))?;
        let mut bytes = vec![0; usize::try_from(file.length()?).map_err(|_| io::ErrorKind::FileTooLarge)?];
        let filled = file.read_full_at(&mut bytes, 0)?;
        let mut rest = &bytes[..filled];
        let mut frames = Vec::new();
        while let Some((frame, length)) = Frame::decode(rest) {
            frames.push(frame);
            rest = &rest[length..];
        }
        Ok(frames)
    }

    /// Adds frames; they are durable when this returns.
    pub(super) fn append(&mut self, frames: &[Frame]) -> io::Result<()> {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        // After a failure nobody knows what the file holds: it is left, and the next one begins.
        let (file, length) = match self.open.take() {
            Some((file, length)) if length < FILE_BYTES_MAX => (file, length),
            _ => (self.begin()?, 0),
        };
        file.write_all_at(&bytes, length)?;
        file.sync()?;
        if length == 0 {
            self.disk.sync_directory(&self.directory)?;
        }
        self.open = Some((file, length + bytes.len() as u64));
        if let Some((_, ids)) = self.files.back_mut() {
            *ids += frames.iter().map(|frame| frame.ids.len()).sum::<usize>();
        }
        self.drop_oldest()
    }

    fn begin(&mut self) -> io::Result<Box<dyn DiskFile>> {
        let number = self.next;
        self.next += 1;
        let file = self.disk.create(&self.path(number))?;
        self.files.push_back((number, 0));
        Ok(file)
    }

    fn drop_oldest(&mut self) -> io::Result<()> {
        let mut newer: usize = self.files.iter().map(|(_, ids)| ids).sum();
        while let Some((number, ids)) = self.files.front().copied() {
            newer -= ids;
            if newer < self.ids_kept || self.files.len() == 1 {
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
        let id = |sequence: u64| Remembered { id: EventId([7; 16]), content: sequence * 3, sequence };
        let ids = (after + 1..=after + count).map(id).collect();
        Frame { shard: 2, after, up_to: after + count, written_at: -5, ids }
    }

    fn open(disk: &SimulatedDisk, ids_kept: usize) -> (IdFiles, Vec<Frame>) {
        IdFiles::open(Arc::new(disk.clone()), Path::new(DIRECTORY), ids_kept).unwrap()
    }

    #[test]
    fn what_was_added_is_read_after_a_power_cut() {
        let disk = SimulatedDisk::new(1);
        let (mut files, none) = open(&disk, 100);
        assert!(none.is_empty());
        files.append(&[frame(0, 3), frame(3, 0)]).unwrap();
        files.append(&[frame(3, 2)]).unwrap();
        disk.power_cut_in_style(CutStyle::LoseAll);
        let (mut again, frames) = open(&disk, 100);
        assert_eq!(frames, [frame(0, 3), frame(3, 0), frame(3, 2)]);
        again.append(&[frame(5, 1)]).unwrap();
        assert_eq!(open(&disk, 100).1.len(), 4);
    }

    #[test]
    fn a_damaged_frame_ends_its_file_and_no_other() {
        let disk = SimulatedDisk::new(1);
        open(&disk, 100).0.append(&[frame(0, 2), frame(2, 2), frame(4, 2)]).unwrap();
        open(&disk, 100).0.append(&[frame(6, 2)]).unwrap();
        let second = HEADER_BYTES + 2 * ENTRY_BYTES;
        disk.flip_bit(format!("{DIRECTORY}/ids-00000001"), 8 * second as u64 + 100).unwrap();
        assert_eq!(open(&disk, 100).1, [frame(0, 2), frame(6, 2)]);
    }

    #[test]
    fn old_files_go_when_newer_ones_hold_enough() {
        let disk = SimulatedDisk::new(1);
        for start in 0..10 {
            open(&disk, 25).0.append(&[frame(start * 10, 10)]).unwrap();
        }
        let frames = open(&disk, 25).1;
        assert_eq!(frames.iter().map(|frame| frame.after).collect::<Vec<_>>(), [70, 80, 90]);
    }

    #[test]
    fn many_small_files_are_made_one() {
        let disk = SimulatedDisk::new(1);
        for start in 0..40 {
            open(&disk, 1000).0.append(&[frame(start, 1)]).unwrap();
            assert!(disk.paths().iter().filter(|path| path.starts_with(DIRECTORY)).count() <= FILES_MAX + 2);
        }
        let afters: Vec<_> = open(&disk, 1000).1.iter().map(|frame| frame.after).collect();
        assert_eq!(afters, (0..40).collect::<Vec<_>>());
    }

    #[test]
    fn after_a_failure_a_new_file_is_begun() {
        let disk = SimulatedDisk::new(1);
        let (mut files, _) = open(&disk, 100);
        files.append(&[frame(0, 1)]).unwrap();
        disk.set_capacity(Some(disk.bytes_used()));
        assert!(files.append(&[frame(1, 4000)]).is_err());
        disk.set_capacity(None);
        files.append(&[frame(1, 1)]).unwrap();
        assert_eq!(open(&disk, 100).1, [frame(0, 1), frame(1, 1)]);
    }
}
