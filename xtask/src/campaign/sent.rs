//! The records that are sent, to compare with a store.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use generator::{Generator, RecordKind};
use xxhash_rust::xxh3::xxh3_128;

use crate::workspace::gzip;

/// Access records, if no file is given.
const GENERATED: usize = 9_999;

/// Records, how often they are sent, and how often each line is, by its hash: memory depends on the lines of the file, and not on what the
/// stores hold.
pub(super) struct Sent {
    records: Vec<Vec<u8>>,
    copies: u64,
    times: HashMap<u128, u64>,
}

impl Sent {
    /// The lines of a file, or generated ones, each so many times.
    pub(super) fn read(file: Option<&Path>, copies: u64) -> Result<Self> {
        let text = match file {
            Some(path) => std::fs::read(path).with_context(|| format!("reading {}", path.display()))?,
            None => {
                let mut generator = Generator::new(RecordKind::Access, 1);
                let mut text = Vec::new();
                (0..GENERATED).for_each(|_| generator.next_line(&mut text));
                text
            }
        };
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok(Self::new(lines.map(<[u8]>::to_vec).collect(), copies))
    }

    fn new(records: Vec<Vec<u8>>, copies: u64) -> Self {
        let mut times = HashMap::new();
        records.iter().for_each(|record| *times.entry(xxh3_128(record)).or_default() += copies);
        Self { records, copies, times }
    }

    /// The records, each line of the file once.
    pub(super) fn records(&self) -> &[Vec<u8>] {
        &self.records
    }

    /// The number of events that are sent.
    pub(super) const fn events(&self) -> u64 {
        self.records.len() as u64 * self.copies
    }

    /// Writes all of them into a file, and packs it.
    pub(super) fn packed(&self, folder: &Path) -> Result<PathBuf> {
        let file = folder.join("lines.ndjson");
        let mut out = File::create(&file).with_context(|| format!("writing {}", file.display()))?;
        let mut lines = self.records.join(&b'\n');
        lines.push(b'\n');
        (0..self.copies).try_for_each(|_| out.write_all(&lines))?;
        gzip(&file)
    }

    /// Compares payloads, one a line in any order, with the records sent.
    pub(super) fn compare(&self, payloads: &mut dyn BufRead) -> Result<()> {
        let mut left = self.times.clone();
        let mut line = Vec::new();
        while payloads.read_until(b'\n', &mut line).context("reading what is stored")? > 0 {
            let payload = line.strip_suffix(b"\n").unwrap_or(&line);
            let shown = || String::from_utf8_lossy(payload).into_owned();
            let times = left.get_mut(&xxh3_128(payload)).with_context(|| format!("never sent: {}", shown()))?;
            *times = times.checked_sub(1).with_context(|| format!("too often: {}", shown()))?;
            line.clear();
        }
        match left.values().sum() {
            0_u64 => Ok(()),
            missing => bail!("{missing} of {} events are missing", self.events()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_lines_must_equal_sent_lines() {
        let sent = Sent::new(vec![b"1".to_vec(), b"2".to_vec(), b"1".to_vec()], 2);
        assert_eq!(sent.events(), 6);
        let compare = |mut stored: &[u8]| sent.compare(&mut stored).map_err(|error| error.to_string());
        assert_eq!(compare(b"2\n1\n1\n2\n1\n1"), Ok(()));
        assert_eq!(compare(b"2\n1\n1\n2\n1\n"), Err("1 of 6 events are missing".to_owned()));
        assert_eq!(compare(b"2\n1\n1\n2\n1\n1\n1\n"), Err("too often: 1".to_owned()));
        assert_eq!(compare(b"2\n1\n1\n2\n1\n\n"), Err("never sent: ".to_owned()));
    }
}
