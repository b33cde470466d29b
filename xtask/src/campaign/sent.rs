//! What was sent, and whether a store holds just that.

use std::collections::HashMap;
use std::io::BufRead;

use anyhow::{Context, Result, bail};
use xxhash_rust::xxh3::xxh3_128;

/// How often each line was sent, by its hash: memory depends on the lines of the file, and not on what the stores hold.
pub(super) struct Sent {
    times: HashMap<u128, u64>,
    events: u64,
}

impl Sent {
    /// These records, each so many times.
    pub(super) fn new(records: &[Vec<u8>], times: u64) -> Self {
        let mut sent = HashMap::new();
        records.iter().for_each(|record| *sent.entry(xxh3_128(record)).or_default() += times);
        Self { times: sent, events: records.len() as u64 * times }
    }

    /// How many events were sent.
    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    /// Holds payloads, one a line in any order, against what was sent.
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
            missing => bail!("{missing} of {} events are missing", self.events),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_must_be_what_was_sent_each_line_as_often() {
        let sent = Sent::new(&[b"1".to_vec(), b"2".to_vec(), b"1".to_vec()], 2);
        assert_eq!(sent.events(), 6);
        let compare = |mut stored: &[u8]| sent.compare(&mut stored).map_err(|error| error.to_string());
        assert_eq!(compare(b"2\n1\n1\n2\n1\n1"), Ok(()));
        assert_eq!(compare(b"2\n1\n1\n2\n1\n"), Err("1 of 6 events are missing".to_owned()));
        assert_eq!(compare(b"2\n1\n1\n2\n1\n1\n1\n"), Err("too often: 1".to_owned()));
        assert_eq!(compare(b"2\n1\n1\n2\n1\n\n"), Err("never sent: ".to_owned()));
    }
}
