//! The seed decides everything, and forks are independent disks.

use std::path::Path;

use super::super::{CutStyle, SimulatedDisk};
use super::{SEEDS, disk_with, files};
use crate::disk::Disk;
use random::Random;

/// A life of 60 operations and a few power cuts, chosen by `work`; all errors are part of it.
fn live(disk: &SimulatedDisk, work: u64) {
    let mut work = Random::new(work);
    let path = |work: &mut Random| format!("/{}", ["a", "b", "d/a"][work.index(3)]);
    for _ in 0..60 {
        let (path, other) = (path(&mut work), path(&mut work));
        let (path, other) = (Path::new(&path), Path::new(&other));
        match work.index(8) {
            0 => drop(disk.create(path)),
            1 => drop(disk.rename(path, other)),
            2 => drop(disk.remove(path)),
            3 => drop(disk.sync_directory(path.parent().unwrap())),
            4 => drop(disk.create_directory(Path::new("/d"))),
            5 => drop(disk.open(path).and_then(|file| file.sync())),
            6 if work.once_in(8) => drop(disk.power_cut()),
            _ => drop(disk.open(path).map(|file| file.write_at(&[7; 3000], work.number() % 9000))),
        }
    }
}

#[test]
fn same_seed_and_operations_give_same_disk() {
    let disk = |seed, work| {
        let disk = SimulatedDisk::new(seed);
        live(&disk, work);
        format!("{:?}", disk.state())
    };
    let mut differ = 0;
    for seed in 0..40 {
        assert!(disk(seed, seed) == disk(seed, seed), "seed {seed}");
        differ += u32::from(disk(seed, seed) != disk(seed + 1, seed));
    }
    assert!(differ > 20, "and other seeds give other disks: {differ}");
}

#[test]
fn fork_has_undecided_changes_and_is_independent() {
    let (disk, file) = disk_with(1, &[0; 4096]);
    file.write_all_at(&[1; 4096], 0).unwrap();
    let _lock = disk.lock(Path::new("/f")).unwrap();
    let before = format!("{:?}", disk.state());
    let mut contents = std::collections::BTreeSet::new();
    for seed in 0..SEEDS {
        let fork = disk.fork(seed);
        assert!(fork.lock(Path::new("/f")).is_ok(), "locks stay with the first disk");
        fork.power_cut();
        contents.insert(fork.content("/f").unwrap());
        fork.put("/f", b"").unwrap();
    }
    assert!(contents.len() > 50, "each seed is another cut: {}", contents.len());
    assert!(before == format!("{:?}", disk.state()), "and the first disk knows nothing of them");
    assert_eq!(file.length().unwrap(), 4096, "nor do its handles");
}

#[test]
fn fork_forgets_files_of_handles() {
    let (disk, _file) = disk_with(1, &[1; 4096]);
    disk.remove(Path::new("/f")).unwrap();
    assert_eq!((disk.bytes_used(), disk.fork(1).bytes_used()), (4096, 0));
    let fork = disk.fork(1);
    fork.power_cut_in_style(CutStyle::LoseAll);
    assert_eq!(fork.paths(), [Path::new("/f")], "but the name may come back");
    disk.sync_directory(Path::new("/")).unwrap();
    disk.power_cut();
    assert!(files(&disk).is_empty());
}
