//! The directories after a power cut.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::{CutStyle, SimulatedDisk};
use super::{SEEDS, files, make};
use crate::disk::Disk;

/// All states that cuts leave of the disk that `work` creates.
fn outcomes(work: impl Fn(&SimulatedDisk)) -> BTreeSet<String> {
    let outcome = |seed| {
        let disk = SimulatedDisk::new(seed);
        work(&disk);
        disk.power_cut();
        files(&disk).join(" ")
    };
    (0..SEEDS).map(outcome).collect()
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn rename(disk: &SimulatedDisk, from: &str, to: &str) {
    disk.rename(Path::new(from), Path::new(to)).unwrap();
}

fn sync(disk: &SimulatedDisk, directory: &str) {
    disk.sync_directory(Path::new(directory)).unwrap();
}

#[test]
fn name_is_durable_after_its_directory_sync() {
    assert_eq!(outcomes(|disk| make(disk, "/a", b"1")), set(&["", "/a=1"]), "the file's own sync is not enough");
    let synced = outcomes(|disk| {
        make(disk, "/a", b"1");
        sync(disk, "/");
    });
    assert_eq!(synced, set(&["/a=1"]));
}

#[test]
fn any_subset_of_the_changes_survives() {
    let two = outcomes(|disk| {
        make(disk, "/a", b"1");
        make(disk, "/b", b"2");
    });
    assert_eq!(two, set(&["", "/a=1", "/b=2", "/a=1 /b=2"]));
    let removed = outcomes(|disk| {
        disk.put("/a", b"1").unwrap();
        disk.put("/b", b"2").unwrap();
        disk.remove(Path::new("/a")).unwrap();
        disk.remove(Path::new("/b")).unwrap();
    });
    assert_eq!(removed, set(&["", "/a=1", "/b=2", "/a=1 /b=2"]));
}

#[test]
fn a_rename_replaces_all_or_nothing() {
    let replaced = outcomes(|disk| {
        disk.put("/a", b"old").unwrap();
        make(disk, "/new", b"new");
        rename(disk, "/new", "/a");
    });
    assert_eq!(replaced, set(&["/a=old", "/a=old /new=new", "/a=new"]));
}

#[test]
fn changes_at_one_name_survive_in_order() {
    let recycled = outcomes(|disk| {
        disk.put("/a", b"1").unwrap();
        rename(disk, "/a", "/b");
        make(disk, "/a", b"2");
        disk.remove(Path::new("/a")).unwrap();
        make(disk, "/a", b"3");
    });
    assert_eq!(recycled, set(&["/a=1", "/b=1", "/a=2 /b=1", "/a=3 /b=1"]));
}

#[test]
fn recreated_name_is_another_entry() {
    let renamed = outcomes(|disk| {
        disk.put("/x", b"1").unwrap();
        disk.remove(Path::new("/x")).unwrap();
        make(disk, "/x", b"2");
        rename(disk, "/x", "/y");
    });
    assert_eq!(renamed, set(&["/x=1", "", "/x=2", "/y=2"]), "the first file is never called y");
}

#[test]
fn rename_is_durable_with_its_new_directory() {
    let work = |disk: &SimulatedDisk, directory: &str| {
        disk.put("/d/a", b"1").unwrap();
        disk.put("/e/other", b"2").unwrap();
        rename(disk, "/d/a", "/e/a");
        sync(disk, directory);
    };
    assert_eq!(outcomes(|disk| work(disk, "/e")), set(&["/e/a=1 /e/other=2"]));
    assert_eq!(outcomes(|disk| work(disk, "/d")), set(&["/e/a=1 /e/other=2", "/d/a=1 /e/other=2"]));
}

#[test]
fn sync_includes_changes_that_it_depends_on() {
    let moved = outcomes(|disk| {
        disk.put("/d/x", b"0").unwrap();
        disk.put("/e/x", b"0").unwrap();
        make(disk, "/d/a", b"1");
        rename(disk, "/d/a", "/e/a");
        make(disk, "/d/b", b"2");
        sync(disk, "/e");
    });
    assert_eq!(moved, set(&["/d/x=0 /e/a=1 /e/x=0", "/d/b=2 /d/x=0 /e/a=1 /e/x=0"]));
}

#[test]
fn new_directory_needs_the_sync_of_its_parent() {
    let work = |disk: &SimulatedDisk, above: &[&str]| {
        disk.create_directory(Path::new("/d/e")).unwrap();
        make(disk, "/d/e/a", b"1");
        sync(disk, "/d/e");
        above.iter().for_each(|directory| sync(disk, directory));
    };
    assert_eq!(outcomes(|disk| work(disk, &[])), set(&["", "/d/e/a=1"]));
    assert_eq!(outcomes(|disk| work(disk, &["/d"])), set(&["", "/d/e/a=1"]));
    assert_eq!(outcomes(|disk| work(disk, &["/d", "/"])), set(&["/d/e/a=1"]));
}

#[test]
fn lost_directory_is_created_again() {
    let disk = SimulatedDisk::new(1);
    disk.create_directory(Path::new("/d")).unwrap();
    make(&disk, "/d/a", b"1");
    sync(&disk, "/d");
    disk.power_cut_in_style(CutStyle::LoseAll);
    assert!(disk.list(Path::new("/d")).is_err());
    disk.create_directory(Path::new("/d")).unwrap();
    assert!(disk.list(Path::new("/d")).unwrap().is_empty(), "and what was in the lost one stays lost");
}

#[test]
fn removed_file_exists_only_for_its_handles() {
    let disk = SimulatedDisk::new(1);
    disk.put("/a", &[1; 5000]).unwrap();
    let file = disk.open(Path::new("/a")).unwrap();
    disk.remove(Path::new("/a")).unwrap();
    sync(&disk, "/");
    assert_eq!(file.read_at(&mut [0; 9], 0).unwrap(), 9);
    assert_eq!(disk.bytes_used(), 8192);
    drop(file);
    assert_eq!(disk.bytes_used(), 0);
    assert!(disk.paths().is_empty());
}

#[test]
fn unsynced_file_may_be_empty() {
    let unsynced = outcomes(|disk| {
        disk.create(Path::new("/a")).unwrap().write_all_at(b"1", 0).unwrap();
        sync(disk, "/");
    });
    assert_eq!(unsynced, set(&["/a=", "/a=\0", "/a=1"]));
}

#[test]
fn a_rename_to_the_same_name_changes_nothing() {
    let disk = SimulatedDisk::new(1);
    disk.put("/a", &[1; 4096]).unwrap();
    rename(&disk, "/a", "/a");
    sync(&disk, "/");
    assert_eq!(disk.bytes_used(), 4096);
}
