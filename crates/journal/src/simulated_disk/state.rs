//! The state of the disk: names, files, open handles, and the rules that join them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::content::PAGE_BYTES;
use super::crash::{CutStyle, FileCut};
use super::faults::{Faults, SimulatedError};
use super::file::File;
use super::namespace::{FileId, Names};
use random::Random;

/// The largest file: enough for any test, and small enough that a wrong offset doesn't exhaust the memory.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Everything that a disk is.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) names: Names,
    /// Shared with forks until one of them changes the file.
    files: BTreeMap<FileId, Arc<File>>,
    /// How many handles each open file has.
    open: BTreeMap<FileId, usize>,
    locked: BTreeSet<FileId>,
    /// Directories that are locked with a file in them.
    locked_folders: BTreeMap<PathBuf, FileId>,
    /// Files that lost their name.
    nameless: BTreeSet<FileId>,
    pub(super) faults: Faults,
    pub(super) random: Random,
    /// Bytes that files may take.
    pub(super) capacity: Option<u64>,
    pub(super) ignore_sync: bool,
    pub(super) ignore_sync_directory: bool,
    /// Power cuts so far: handles of an earlier time are dead.
    cuts: u64,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            names: Names::default(),
            files: BTreeMap::new(),
            open: BTreeMap::new(),
            locked: BTreeSet::new(),
            locked_folders: BTreeMap::new(),
            nameless: BTreeSet::new(),
            faults: Faults::default(),
            random: Random::new(seed),
            capacity: None,
            ignore_sync: false,
            ignore_sync_directory: false,
            cuts: 0,
        }
    }

    pub(super) fn fork(&self, seed: u64) -> Self {
        let mut fork = self.clone();
        fork.random = Random::new(seed);
        fork.open.clear();
        fork.locked.clear();
        fork.locked_folders.clear();
        fork.forget_nameless();
        fork
    }

    pub(super) const fn cuts(&self) -> u64 {
        self.cuts
    }

    pub(super) fn power_cut(&mut self, style: CutStyle) {
        self.cuts += 1;
        self.faults.restore_power();
        self.open.clear();
        self.locked.clear();
        self.locked_folders.clear();
        self.nameless.clear();
        self.names.cut(style, &mut self.random);
        let mut files = std::mem::take(&mut self.files);
        for (_, id) in self.names.files() {
            let mut file = files.remove(&id).expect("a name's file is kept");
            if !file.is_durable() {
                let mut cut = FileCut::new(style, file.at_stake(), &mut self.random);
                file = Arc::new(file.survivors(&mut cut));
            }
            self.files.insert(id, file);
        }
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<FileId> {
        let file = self.names.create(path)?;
        self.files.insert(file, Arc::default());
        Ok(file)
    }

    pub(super) fn open(&mut self, file: FileId) {
        *self.open.entry(file).or_default() += 1;
    }

    pub(super) fn close(&mut self, file: FileId) {
        if let Some(handles) = self.open.get_mut(&file) {
            *handles -= 1;
            if *handles == 0 {
                self.open.remove(&file);
                self.forget_nameless();
            }
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let replaced = self.names.rename(from, to)?;
        self.nameless.extend(replaced);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let removed = self.names.remove(path)?;
        self.nameless.insert(removed);
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, path: &Path) -> io::Result<()> {
        self.names.remove_directory(path)?;
        // A directory created under its name is another one.
        self.locked_folders.remove(path);
        Ok(())
    }

    pub(super) fn lock(&mut self, path: &Path) -> io::Result<FileId> {
        let file = match self.names.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(path)?,
            file => file?,
        };
        let folder = path.parent().unwrap_or(path);
        if self.locked.contains(&file) || self.locked_folders.contains_key(folder) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.locked.insert(file);
        self.locked_folders.insert(folder.into(), file);
        self.open(file);
        Ok(file)
    }

    pub(super) fn unlock(&mut self, file: FileId) {
        self.locked.remove(&file);
        self.locked_folders.retain(|_, locked| *locked != file);
        self.close(file);
    }

    pub(super) fn sync_directory(&mut self, path: &Path) -> io::Result<()> {
        if self.ignore_sync_directory {
            return self.names.list(path).map(drop);
        }
        self.names.sync(path)?;
        self.forget_nameless();
        Ok(())
    }

    pub(super) fn file(&self, id: FileId) -> &File {
        self.files.get(&id).expect("a file with a name or a handle is kept")
    }

    pub(super) fn file_mut(&mut self, id: FileId) -> &mut File {
        Arc::make_mut(self.files.get_mut(&id).expect("a file with a name or a handle is kept"))
    }

    pub(super) fn sync(&mut self, file: FileId) {
        if !self.ignore_sync && !self.file(file).is_durable() {
            self.file_mut(file).sync();
        }
    }

    /// Writes as much as fits: on a full disk the part before the first page that would need space.
    pub(super) fn write(&mut self, file: FileId, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(bytes.len() as u64);
        let start = file_offset(offset)?;
        file_offset(end)?;
        let fits = self.fitting(file, bytes.len(), start);
        if fits == 0 && !bytes.is_empty() {
            return Err(SimulatedError::NoSpace.into());
        }
        self.file_mut(file).write(&bytes[..fits], start);
        Ok(fits)
    }

    /// How many of the bytes there is space for.
    fn fitting(&self, file: FileId, length: usize, start: usize) -> usize {
        let Some(capacity) = self.capacity else { return length };
        let mut free = (capacity / PAGE_BYTES as u64).saturating_sub(self.pages_used());
        let content = self.file(file).visible();
        for page in start / PAGE_BYTES..(start + length).div_ceil(PAGE_BYTES) {
            if content.is_hole(page) {
                if free == 0 {
                    return (page * PAGE_BYTES).saturating_sub(start);
                }
                free -= 1;
            }
        }
        length
    }

    /// Pages of files that have a name or a handle.
    pub(super) fn pages_used(&self) -> u64 {
        let used = self.files.iter().filter(|(id, _)| !self.nameless.contains(id) || self.open.contains_key(id));
        used.map(|(_, file)| file.visible().allocated_pages() as u64).sum()
    }

    pub(super) fn set_length(&mut self, file: FileId, length: u64) -> io::Result<()> {
        let length = file_offset(length)?;
        self.file_mut(file).set_length(length);
        Ok(())
    }

    /// Allocated space that reads as zeros, all of it or none. A power cut may keep any part of it, as of a write.
    pub(super) fn allocate(&mut self, file: FileId, length: u64) -> io::Result<()> {
        let start = self.file(file).visible().length();
        let added = file_offset(length)?.saturating_sub(start);
        if self.fitting(file, added, start) < added {
            return Err(SimulatedError::NoSpace.into());
        }
        self.file_mut(file).write(&vec![0; added], start);
        Ok(())
    }

    /// Makes all changes durable.
    pub(super) fn settle(&mut self) {
        self.names.settle();
        for file in self.files.values_mut().filter(|file| !file.is_durable()) {
            Arc::make_mut(file).settle();
        }
        self.forget_nameless();
    }

    /// Replaces the path's entry with a file of this content, immediately durable with everything else.
    pub(super) fn put(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.names.create_directory(parent))?;
        let file = match self.names.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(path)?,
            file => file?,
        };
        self.files.insert(file, Arc::new(File::of(bytes)));
        self.settle();
        Ok(())
    }

    /// Forgets the files that nothing can show again.
    fn forget_nameless(&mut self) {
        let Self { names, files, open, nameless, .. } = self;
        nameless.retain(|file| {
            let kept = open.contains_key(file) || names.mention(*file);
            if !kept {
                files.remove(file);
            }
            kept
        });
    }
}

/// An offset within a file of allowed size.
pub(super) fn file_offset(offset: u64) -> io::Result<usize> {
    let offset = Some(offset).filter(|offset| *offset <= FILE_BYTES_MAX).ok_or(Errno::FBIG)?;
    Ok(usize::try_from(offset).expect("checked against the largest file"))
}
