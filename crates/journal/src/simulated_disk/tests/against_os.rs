//! The simulated disk without faults against the operating system's: the same operations, the same answers.

use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::SimulatedDisk;
use crate::disk::{Disk, DiskFile, OsDisk};

/// Paths by number: few enough that operations affect each other.
const PATHS: [&str; 8] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "missing/a"];

/// An operation; paths are indices of [`PATHS`], handles count from the newest.
#[derive(Clone, Debug)]
enum ScanItem {
    Create(usize),
    Open(usize),
    Close(usize),
    Rename(usize, usize),
    Remove(usize),
    CreateDirectory(usize),
    RemoveDirectory(usize),
    List(usize),
    SyncDirectory,
    Lock(usize),
    Unlock,
    Read { handle: usize, offset: u64, length: usize },
    Write { handle: usize, offset: u64, length: usize },
    Sync(usize),
    Length(usize),
    SetLength(usize, u64),
    Allocate(usize, u64),
}

fn step() -> impl Strategy<Value = ScanItem> {
    let (path, handle, offset, length) = (0..PATHS.len(), 0..3_usize, 0..20_000_u64, 0..9_000_usize);
    prop_oneof![
        3 => path.clone().prop_map(ScanItem::Create),
        3 => path.clone().prop_map(ScanItem::Open),
        1 => handle.clone().prop_map(ScanItem::Close),
        2 => (path.clone(), path.clone()).prop_map(|(from, to)| ScanItem::Rename(from, to)),
        1 => path.clone().prop_map(ScanItem::Remove),
        2 => path.clone().prop_map(ScanItem::CreateDirectory),
        1 => path.clone().prop_map(ScanItem::RemoveDirectory),
        1 => path.clone().prop_map(ScanItem::List),
        1 => Just(ScanItem::SyncDirectory),
        1 => path.prop_map(ScanItem::Lock),
        1 => Just(ScanItem::Unlock),
        3 => (handle.clone(), offset.clone(), length.clone())
            .prop_map(|(handle, offset, length)| ScanItem::Read { handle, offset, length }),
        5 => (handle.clone(), offset.clone(), length)
            .prop_map(|(handle, offset, length)| ScanItem::Write { handle, offset, length }),
        1 => handle.clone().prop_map(ScanItem::Sync),
        1 => handle.clone().prop_map(ScanItem::Length),
        2 => (handle.clone(), offset.clone()).prop_map(|(handle, length)| ScanItem::SetLength(handle, length)),
        1 => (handle, offset).prop_map(|(handle, length)| ScanItem::Allocate(handle, length + 1)),
    ]
}

/// A disk with its open handles.
struct Side<'a> {
    disk: &'a dyn Disk,
    root: PathBuf,
    handles: Vec<Box<dyn DiskFile>>,
    locks: Vec<Box<dyn Send + Sync>>,
}

/// The result of a step: bytes or a number as text, or the kind of the error.
type Answer = Result<String, io::ErrorKind>;

impl<'a> Side<'a> {
    fn new(disk: &'a dyn Disk, root: &Path) -> Self {
        Self { disk, root: root.to_owned(), handles: Vec::new(), locks: Vec::new() }
    }

    fn path(&self, number: usize) -> PathBuf {
        self.root.join(PATHS[number])
    }

    /// The step's answer; steps on handles that aren't there have none.
    fn take(&mut self, number: usize, step: &ScanItem) -> Answer {
        let answer = match *step {
            ScanItem::Create(_) | ScanItem::Open(_) | ScanItem::Close(_) => self.take_handle(step),
            ScanItem::Rename(from, to) => self.disk.rename(&self.path(from), &self.path(to)).map(word),
            ScanItem::Remove(path) => self.disk.remove(&self.path(path)).map(word),
            ScanItem::CreateDirectory(path) => self.disk.create_directory(&self.path(path)).map(word),
            ScanItem::RemoveDirectory(path) => self.disk.remove_directory(&self.path(path)).map(word),
            ScanItem::List(path) => self.disk.list(&self.path(path)).map(|mut names| {
                names.sort();
                names.join(" ")
            }),
            ScanItem::SyncDirectory => self.disk.sync_directory(&self.root).map(word),
            ScanItem::Lock(path) => self.disk.lock(&self.path(path)).map(|lock| {
                self.locks.push(lock);
                String::new()
            }),
            ScanItem::Unlock => Ok(self.locks.pop().is_some().to_string()),
            ScanItem::Read { handle, .. }
            | ScanItem::Write { handle, .. }
            | ScanItem::Sync(handle)
            | ScanItem::Length(handle)
            | ScanItem::SetLength(handle, _)
            | ScanItem::Allocate(handle, _) => match self.handles.iter().rev().nth(handle) {
                Some(file) => on_file(&**file, number, step),
                None => Ok("no such handle".to_owned()),
            },
        };
        answer.map_err(|error| error.kind())
    }

    fn take_handle(&mut self, step: &ScanItem) -> io::Result<String> {
        match *step {
            ScanItem::Create(path) => self.handles.push(self.disk.create(&self.path(path))?),
            ScanItem::Open(path) => self.handles.push(self.disk.open(&self.path(path))?),
            ScanItem::Close(handle) if handle < self.handles.len() => drop(self.handles.remove(handle)),
            _ => {}
        }
        Ok(self.handles.len().to_string())
    }

    /// The content of each path that is a file.
    fn contents(&self) -> Vec<Option<Vec<u8>>> {
        let content = |number| {
            let file = self.disk.open(&self.path(number)).ok()?;
            let mut bytes = vec![0; usize::try_from(file.length().unwrap()).unwrap()];
            assert_eq!(file.read_full_at(&mut bytes, 0).unwrap(), bytes.len());
            Some(bytes)
        };
        (0..PATHS.len()).map(content).collect()
    }
}

fn word((): ()) -> String {
    String::new()
}

fn on_file(file: &dyn DiskFile, number: usize, step: &ScanItem) -> io::Result<String> {
    match *step {
        ScanItem::Read { offset, length, .. } => {
            let mut bytes = vec![0xee; length];
            let read = file.read_at(&mut bytes, offset)?;
            Ok(format!("{read} {bytes:?}"))
        }
        ScanItem::Write { offset, length, .. } => {
            let byte = u8::try_from(number % 250).unwrap() + 1;
            Ok(file.write_at(&vec![byte; length], offset)?.to_string())
        }
        ScanItem::Length(_) => Ok(file.length()?.to_string()),
        ScanItem::SetLength(_, length) => file.set_length(length).map(word),
        ScanItem::Allocate(_, length) => file.allocate(length).map(word),
        _ => file.sync().map(word),
    }
}

/// The operation that the simulated disk doesn't have: renaming a directory.
fn left_out(simulated: &Answer) -> bool {
    *simulated == Err(io::ErrorKind::Unsupported)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn simulated_disk_equals_the_operating_system(steps in prop::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let simulated_disk = SimulatedDisk::new(1);
        let mut real = Side::new(&OsDisk, folder.path());
        let mut simulated = Side::new(&simulated_disk, Path::new("/"));
        for (number, step) in steps.iter().enumerate() {
            let answer = simulated.take(number, step);
            if !left_out(&answer) {
                prop_assert_eq!(answer, real.take(number, step), "step {}: {:?}", number, step);
            }
        }
        prop_assert_eq!(simulated.contents(), real.contents());
    }
}
