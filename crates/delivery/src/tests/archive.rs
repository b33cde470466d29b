//! A directory of objects on the simulated disk, as a reader of its documentation sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::Path;

use journal::disk::{Disk, DiskFile};
use journal::simulated_disk::SimulatedDisk;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sink_directory::{Files, NewFile};

use super::harness::KEYED;

/// Where the objects are.
pub(super) const ARCHIVE: &str = "/archive";
/// Where their manifests are, unless they are next to them.
pub(super) const MANIFESTS: &str = "_manifests";

/// The simulated disk as a directory sink sees it.
pub(super) struct DiskFiles(pub(super) SimulatedDisk);

struct Open {
    file: Box<dyn DiskFile>,
    at: u64,
}

impl Files for DiskFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn NewFile>> {
        Ok(Box::new(Open { file: self.0.create(path)?, at: 0 }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(Open { file: Disk::open(&self.0, path)?, at: 0 }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk::rename(&self.0, from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk::remove(&self.0, path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        journal::make_directory(&self.0, path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.0.sync_directory(path)
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(()))
    }

    fn may_block(&self) -> bool {
        false
    }
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(bytes, self.at)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NewFile for Open {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Read for Open {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The first and last position of an object, and what its name begins with.
type Run = ((u64, u64), String);

/// Reads the directory as its documentation says, and gives the payload of every event by its id.
pub(super) fn read(disk: &SimulatedDisk) -> BTreeMap<String, String> {
    let names: BTreeSet<String> = disk
        .paths()
        .iter()
        .filter(|path| path.starts_with(ARCHIVE))
        .map(|path| path.strip_prefix(ARCHIVE).unwrap().to_str().unwrap().to_owned())
        .collect();
    let content = |name: &str| disk.content(Path::new(ARCHIVE).join(name)).unwrap();
    let mut events = BTreeMap::new();
    let mut runs: BTreeMap<u64, Vec<Run>> = BTreeMap::new();
    let mut chain: BTreeSet<(u64, Option<String>)> = BTreeSet::new();
    let (mut objects, mut described) = (BTreeSet::new(), BTreeSet::new());
    for name in names.iter().filter(|name| name.ends_with(".manifest.json")) {
        let manifest: Value = serde_json::from_slice(&content(name)).unwrap();
        let file = manifest["file"].as_str().unwrap();
        let own_name = format!("{file}.manifest.json");
        assert!(*name == own_name || *name == format!("{MANIFESTS}/{own_name}"), "{name} describes {file}");
        assert!(described.insert(file.to_owned()), "an object has two manifests: {names:?}");
        assert!(names.contains(file), "a manifest is there without its object: {names:?}");
        let bytes = content(file);
        let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((manifest["sha256"].as_str(), manifest["bytes"].as_u64()), (Some(&*sum), Some(bytes.len() as u64)));
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(manifest["records"].as_u64(), Some(text.lines().count() as u64));
        let shard = manifest["shard"].as_u64().unwrap();
        let run = (manifest["first"].as_u64().unwrap(), manifest["last"].as_u64().unwrap());
        let mut before = run.0 - 1;
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let (of_shard, sequence) = event["position"].as_str().unwrap().split_once(':').unwrap();
            let sequence: u64 = sequence.parse().unwrap();
            assert!(of_shard == shard.to_string() && before < sequence && sequence <= run.1, "{line} in {file}");
            before = sequence;
            let id = event["id"].as_str().unwrap().to_owned();
            let twice = events.insert(id, event["payload"].to_string());
            assert_eq!(twice, None, "an event is in two objects: {line}");
        }
        runs.entry(shard).or_default().push((run, file.split(&format!("{KEYED}-")).next().unwrap().to_owned()));
        let previous = manifest["previous"].as_str().map(str::to_owned);
        assert!(previous.as_ref().is_none_or(|previous| names.contains(previous)), "{previous:?} is missing");
        assert!(chain.insert((shard, previous)), "two objects follow the same one");
        objects.insert(file.to_owned());
    }
    for runs in runs.values_mut() {
        runs.sort_unstable();
        let are_apart = |pair: &[Run]| {
            let [(run, prefix), (next, next_prefix)] = pair else { return true };
            run.1 < next.0 || (run == next && prefix != next_prefix)
        };
        assert!(runs.windows(2).all(are_apart), "objects overlap: {runs:?}");
    }
    let others: Vec<_> =
        names.iter().filter(|name| !objects.contains(*name) && !name.ends_with(".manifest.json")).collect();
    assert!(others.is_empty(), "files that belong to no manifest: {others:?}");
    events
}
