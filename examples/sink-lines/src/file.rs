//! The file. Each call locks it, so several sinks and processes can use one file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use event::Lane;
use sink::envelope::write_members;
use sink::{Batch, CLAIMED_BY_ANOTHER, Claim, Held, Takeover, WriteOutcome};

/// How a *commit* begins: the line after a batch, `["LANE",POSITION,"CLAIM"]`. All other lines are events, which are objects.
const COMMIT: &[u8] = b"[";

/// The content of the file's commits. The last one that was read ends at byte `end`.
#[derive(Debug, Default)]
pub(crate) struct Known {
    end: u64,
    lanes: HashMap<String, Held>,
}

impl Known {
    /// Opens and locks the file, and reads the commits of other sinks.
    pub(crate) fn open(&mut self, path: &Path) -> io::Result<File> {
        let mut file = File::options().read(true).append(true).create(true).open(path)?;
        file.lock()?;
        let length = file.metadata()?.len();
        if length == 0 {
            // The file must be in its directory before a cursor in it counts.
            File::open(path.parent().unwrap_or(path))?.sync_all()?;
        }
        if length < self.end {
            *self = Self::default();
        }
        if length > self.end {
            // The process that appended may have ended before its lines were durable, or before its commit.
            file.sync_data()?;
            self.read(&mut file)?;
            file.set_len(self.end)?;
        }
        Ok(file)
    }

    pub(crate) fn held(&self, lane: &Lane) -> Held {
        self.lanes.get(&name(lane)).cloned().unwrap_or_default()
    }

    pub(crate) fn claim(&mut self, file: &mut File, lane: &Lane, new: Claim, takeover: &Takeover) -> io::Result<Held> {
        let held = self.held(lane);
        if takeover.replaces(held.claims.first().copied(), new) {
            self.append(file, lane, Vec::new(), Held::new(takeover.position(held.position), Some(new)))?;
        }
        Ok(self.held(lane))
    }

    pub(crate) fn write(&mut self, file: &mut File, batch: &Batch) -> io::Result<WriteOutcome> {
        let (lane, held) = (batch.lane(), self.held(batch.lane()));
        if !Claim::admits(held.claims.first().copied(), batch.claim()) {
            return Err(io::Error::other(CLAIMED_BY_ANOTHER));
        }
        if held.position < batch.floor() {
            return Err(io::Error::other("events that were stored are missing: restore the file"));
        }
        let mut lines = Vec::new();
        for record in batch.records().filter(|record| record.sequence > held.position) {
            lines.push(b'{');
            write_members(&mut lines, lane.shard, &record);
            lines.extend_from_slice(br#","payload":"#);
            // In JSON, a line break is always between tokens.
            lines.extend(record.payload.iter().map(|byte| if b"\r\n".contains(byte) { b' ' } else { *byte }));
            lines.extend_from_slice(b"}\n");
        }
        if batch.last() > held.position {
            self.append(file, lane, lines, Held::new(batch.last(), batch.claim()))?;
        }
        Ok(WriteOutcome::Committed)
    }

    /// Appends events and their commit. After a failure, it removes the incomplete part.
    fn append(&mut self, file: &mut File, lane: &Lane, mut lines: Vec<u8>, held: Held) -> io::Result<()> {
        let claim = held.claims.first().map(Claim::to_string);
        serde_json::to_writer(&mut lines, &(name(lane), held.position, claim))?;
        lines.push(b'\n');
        if let Err(error) = file.write_all(&lines).and_then(|()| file.sync_data()) {
            file.set_len(self.end)?;
            return Err(error);
        }
        self.end += lines.len() as u64;
        self.lanes.insert(name(lane), held);
        Ok(())
    }

    /// Reads the lines after `end`.
    fn read(&mut self, file: &mut File) -> io::Result<()> {
        let (mut text, mut at) = (Vec::new(), self.end);
        file.seek(SeekFrom::Start(self.end))?;
        file.read_to_end(&mut text)?;
        for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            at += line.len() as u64;
            if line.starts_with(COMMIT) {
                let (lane, position, claim): (_, _, Option<String>) = serde_json::from_slice(line)?;
                self.lanes.insert(lane, Held::new(position, claim.and_then(|claim| claim.parse().ok())));
                self.end = at;
            }
        }
        Ok(())
    }
}

/// The lane, as commits name it.
fn name(lane: &Lane) -> String {
    format!("{}/{lane}", lane.origin)
}
