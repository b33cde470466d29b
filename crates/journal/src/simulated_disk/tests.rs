//! Each rule of the model, over many seeds.

mod against_os;
mod faults;
mod files;
mod namespace;
mod seeds;

use std::path::Path;

use super::SimulatedDisk;
use crate::disk::{Disk, DiskFile};

/// How many seeds each rule is tried with: enough for dozens of cuts of every style.
const SEEDS: u64 = 500;

/// A disk with the durable file `/f` of these bytes, and a handle of it.
fn disk_with(seed: u64, bytes: &[u8]) -> (SimulatedDisk, Box<dyn DiskFile>) {
    let disk = SimulatedDisk::new(seed);
    disk.put("/f", bytes).unwrap();
    let file = disk.open(Path::new("/f")).unwrap();
    (disk, file)
}

/// Makes a file of these bytes and syncs it, but not its name.
fn make(disk: &SimulatedDisk, path: &str, bytes: &[u8]) {
    let file = disk.create(Path::new(path)).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

/// The files that are there, as `path=content`.
fn files(disk: &SimulatedDisk) -> Vec<String> {
    let text = |path: &Path| String::from_utf8(disk.content(path).unwrap()).unwrap();
    disk.paths().iter().map(|path| format!("{}={}", path.display(), text(path))).collect()
}
