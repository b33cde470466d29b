//! A file's content and length after a power cut.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::CutStyle;
use super::{SEEDS, disk_with};
use crate::disk::Disk;

#[test]
fn synced_bytes_survive_every_cut() {
    for seed in 0..SEEDS {
        let (disk, file) = disk_with(seed, b"");
        file.write_all_at(&[1; 3000], 0).unwrap();
        file.write_all_at(&[2; 5000], 3000).unwrap();
        file.set_length(7000).unwrap();
        file.sync().unwrap();
        file.write_all_at(&[3; 5000], 7168).unwrap();
        disk.power_cut();
        assert_eq!(disk.content("/f").unwrap()[..7000], [vec![1; 3000], vec![2; 4000]].concat(), "seed {seed}");
    }
}

#[test]
fn unsynced_sector_is_new_or_old_or_torn() {
    let (mut masks, mut torn) = (BTreeSet::new(), 0);
    for seed in 0..SEEDS {
        let (disk, file) = disk_with(seed, &[1; 2048]);
        file.write_all_at(&[2; 2048], 0).unwrap();
        disk.power_cut();
        let content = disk.content("/f").unwrap();
        assert_eq!(content.len(), 2048);
        let mut mask = 0;
        for (number, sector) in content.chunks(512).enumerate() {
            let new = sector.iter().take_while(|byte| **byte == 2).count();
            assert!(sector[new..].iter().all(|byte| *byte == 1), "seed {seed}: a new prefix, then the old");
            mask |= u32::from(new == 512) << number;
            torn += u32::from(new > 0 && new < 512);
        }
        masks.insert(mask);
    }
    assert_eq!(masks.len(), 16, "any subset of four sectors survives: {masks:?}");
    assert!((2..100).contains(&torn), "few sectors are torn: {torn}");
}

#[test]
fn surviving_sector_includes_earlier_writes() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let (disk, file) = disk_with(seed, &[0; 512]);
        file.write_all_at(b"a", 0).unwrap();
        file.write_all_at(b"b", 1).unwrap();
        disk.power_cut();
        seen.insert(disk.content("/f").unwrap()[..2].to_vec());
    }
    assert_eq!(seen, BTreeSet::from([b"\0\0".to_vec(), b"a\0".to_vec(), b"ab".to_vec()]));
}

#[test]
fn grown_length_may_survive_without_its_bytes() {
    let (mut short, mut zeros, mut whole) = (0, 0, 0);
    for seed in 0..SEEDS {
        let (disk, file) = disk_with(seed, b"old");
        file.write_all_at(&[7; 512], 512).unwrap();
        disk.power_cut();
        let content = disk.content("/f").unwrap();
        assert_eq!(content[..3], *b"old");
        match &content[3..] {
            [] => short += 1,
            grown if grown[..509].iter().any(|byte| *byte != 0) || grown.len() != 1021 => panic!("seed {seed}"),
            grown if grown[509..].iter().all(|byte| *byte == 0) => zeros += 1,
            _ => whole += 1,
        }
    }
    assert!(short > 20 && zeros > 20 && whole > 20, "{short} {zeros} {whole}");
}

#[test]
fn truncated_end_returns_whole_or_not() {
    let mut lengths = BTreeSet::new();
    for seed in 0..SEEDS {
        let (disk, file) = disk_with(seed, &[5; 6000]);
        file.set_length(100).unwrap();
        file.set_length(5000).unwrap();
        assert_eq!(disk.content("/f").unwrap(), [vec![5; 100], vec![0; 4900]].concat());
        disk.power_cut();
        let content = disk.content("/f").unwrap();
        lengths.insert(content.len());
        let kept = if content.len() == 6000 { 6000 } else { 100 };
        assert!(content[..kept].iter().all(|byte| *byte == 5), "seed {seed}");
        assert!(content[kept..].iter().all(|byte| *byte == 0), "seed {seed}");
    }
    assert_eq!(lengths, BTreeSet::from([100, 5000, 6000]));
}

/// The first bytes of eight sectors written by two writes of four, after a cut of this style; 0 if lost.
fn survivors(style: CutStyle, seed: u64) -> Vec<u8> {
    let (disk, file) = disk_with(seed, &[0; 4096]);
    file.write_all_at(&[1; 2048], 0).unwrap();
    file.write_all_at(&[2; 2048], 2048).unwrap();
    disk.power_cut_in_style(style);
    disk.content("/f").unwrap().chunks(512).map(|sector| sector[0]).collect()
}

#[test]
fn each_style_keeps_its_survivors() {
    let all = [1, 1, 1, 1, 2, 2, 2, 2];
    let holds = |style, text: &[u8]| match style {
        CutStyle::LoseNothing => text == all,
        CutStyle::LoseAll => text == [0; 8],
        CutStyle::WholeWrites => [[0; 4], [1; 4]].contains(&text[..4].try_into().unwrap()) && text[4] == text[7],
        CutStyle::LastWriteLost => text == [1, 1, 1, 1, 0, 0, 0, 0],
        CutStyle::FirstSectorsLost => text == [0, 1, 1, 1, 0, 2, 2, 2],
        CutStyle::FirstSectorsKept => text == [1, 0, 0, 0, 2, 0, 0, 0],
        CutStyle::InOrder => (0..=8).any(|kept| text[..kept] == all[..kept] && text[kept..] == [0; 8][kept..]),
        CutStyle::Reversed => (0..=8).any(|lost| text[..lost] == [0; 8][..lost] && text[lost..] == all[lost..]),
        CutStyle::FewLost | CutStyle::FewKept | CutStyle::Halves | CutStyle::Mixed => true,
    };
    let mut kept = [0; 12];
    for (style, kept) in CutStyle::ALL.into_iter().zip(&mut kept) {
        for seed in 0..SEEDS {
            let text = survivors(style, seed);
            assert!(holds(style, &text), "{style:?}, seed {seed}: {text:?}");
            *kept += text.iter().filter(|byte| **byte != 0).count();
        }
    }
    let share = |style| kept[CutStyle::ALL.iter().position(|s| *s == style).unwrap()] * 100 / (8 * 500);
    assert!((45..55).contains(&share(CutStyle::Halves)), "{kept:?}");
    assert!((90..97).contains(&share(CutStyle::FewLost)), "{kept:?}");
    assert!((3..10).contains(&share(CutStyle::FewKept)), "{kept:?}");
}

#[test]
fn every_style_comes_often() {
    let (disk, _file) = disk_with(3, b"");
    for style in CutStyle::ALL {
        let times = (0..1200).filter(|_| disk.power_cut() == style).count();
        assert!((50..200).contains(&times), "{style:?}: {times}");
    }
}

#[test]
fn mixed_cut_treats_files_differently() {
    let differ = (0..SEEDS).any(|seed| {
        let (disk, file) = disk_with(seed, &[0; 4096]);
        disk.put("/g", &[0; 4096]).unwrap();
        file.write_all_at(&[1; 4096], 0).unwrap();
        disk.open(Path::new("/g")).unwrap().write_all_at(&[1; 4096], 0).unwrap();
        disk.power_cut_in_style(CutStyle::Mixed);
        disk.content("/f").unwrap() == [0; 4096] && disk.content("/g").unwrap() == [1; 4096]
    });
    assert!(differ);
}

#[test]
fn handles_and_locks_end_with_the_power() {
    let (disk, file) = disk_with(1, b"x");
    let lock = disk.lock(Path::new("/f")).unwrap();
    assert_eq!(disk.lock(Path::new("/f")).err().unwrap().kind(), std::io::ErrorKind::WouldBlock);
    disk.power_cut();
    assert!(file.read_at(&mut [0], 0).is_err() && file.write_at(&[1], 0).is_err() && file.sync().is_err());
    assert!(file.length().is_err() && file.set_length(9).is_err());
    let again = disk.lock(Path::new("/f")).unwrap();
    drop((lock, file));
    assert!(disk.lock(Path::new("/f")).is_err(), "an old lock's end doesn't free the new one");
    drop(again);
    assert!(disk.lock(Path::new("/f")).is_ok());
}
