//! Acknowledged events that starts have found lost, until the operator accepts that.
//!
//! A start finds the loss of a log's end once: then it goes on behind it. So the loss is made durable before the log is opened. The
//! state file `losses` holds a line for each:
//!
//! ```text
//! forebay-losses 1                     the version
//! lost 0 N 571 600 3 open              shard, case, first and last position (`-` if unknown), the segment's generation, `open` or `accepted`
//! dead local N 12 18 1 accepted          the same of the journal of a sink's dead letters
//! ```

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use journal::{
    DataDirectory, Finding, LOG_BEGINS_LATE, LOG_ENDS_EARLY, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED, StateFile,
};
use text::OperatorCommand;

const FILE: &str = "losses";
const HEADING: &str = "forebay-losses 1";
const SHARD: &str = "lost";
const DEAD: &str = "dead";
const ACCEPTED: &str = "accepted";
const UNKNOWN: &str = "-";
/// Cases in which events were acknowledged before: the log went on behind them, or was known to.
const ACKNOWLEDGED: [char; 7] =
    ['B', 'D', 'F', SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED, LOG_ENDS_EARLY, LOG_BEGINS_LATE];

/// The journal that lost something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostFrom {
    /// The journal of a shard.
    Shard(u16),
    /// The journal of a sink's dead letters.
    Dead(String),
}

impl fmt::Display for LostFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard(shard) => write!(f, "the journal of shard {shard}"),
            Self::Dead(sink) => write!(f, "the dead letters of sink {sink}"),
        }
    }
}

/// Events that are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The journal.
    pub from: LostFrom,
    /// The letter of the case.
    pub letter: char,
    /// The first and the last position, where they are known.
    pub positions: Option<(u64, u64)>,
    /// The generation of the segment.
    pub generation: u64,
    /// Whether the operator has accepted it.
    pub is_accepted: bool,
}

impl Loss {
    /// What the operator is told of it.
    #[must_use]
    pub fn message(&self) -> String {
        format!(
            "{self}. Restore them from a copy, or accept the loss with {} while Forebay is stopped.",
            OperatorCommand::JournalAcceptLoss
        )
    }

    /// How many positions are lost, as far as is known.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.positions.map_or(0, |(first, last)| last - first + 1)
    }

    /// What of a finding is lost for good; `counted` is the last position that is known to have been acknowledged.
    fn of(from: &LostFrom, finding: &Finding, counted: u64) -> Option<Self> {
        let ends = finding.lost.first().zip(finding.lost.last());
        let positions =
            ends.filter(|(first, last)| first.start < last.end).map(|(first, last)| (first.start, last.end - 1));
        let was_counted = positions.is_some_and(|(first, _)| first <= counted);
        let loss = Self {
            from: from.clone(),
            letter: finding.letter,
            positions,
            generation: finding.generation,
            is_accepted: false,
        };
        (ACKNOWLEDGED.contains(&finding.letter) || was_counted).then_some(loss)
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_alike = (&self.from, self.letter, self.positions) == (&other.from, other.letter, other.positions);
        // Without positions only the segment tells two losses apart.
        is_alike && (self.positions.is_some() || self.generation == other.generation)
    }

    fn encode(&self) -> String {
        let (word, name) = match &self.from {
            LostFrom::Shard(shard) => (SHARD, shard.to_string()),
            LostFrom::Dead(sink) => (DEAD, sink.clone()),
        };
        let position = |at: Option<u64>| at.map_or(UNKNOWN.to_owned(), |at| at.to_string());
        let (first, last) = (position(self.positions.map(|(first, _)| first)), position(self.positions.map(|at| at.1)));
        let state = if self.is_accepted { ACCEPTED } else { "open" };
        format!("{word} {name} {} {first} {last} {} {state}\n", self.letter, self.generation)
    }

    fn decode(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [word, name, letter, first, last, generation, state] = words[..] else { return None };
        let from = match word {
            SHARD => LostFrom::Shard(name.parse().ok()?),
            DEAD => LostFrom::Dead(name.into()),
            _ => return None,
        };
        let positions = if first == UNKNOWN { None } else { Some((first.parse().ok()?, last.parse().ok()?)) };
        if positions.is_some_and(|(first, last): (u64, u64)| last < first) {
            return None;
        }
        let (letter, generation) = (letter.parse().ok()?, generation.parse().ok()?);
        Some(Self { from, letter, positions, generation, is_accepted: state == ACCEPTED })
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.positions {
            Some((first, last)) => write!(f, "{}: positions {first} to {last} are lost, or some of them", self.from)?,
            None => write!(f, "{}: an unknown number of events is lost", self.from)?,
        }
        write!(f, " (case {})", self.letter)
    }
}

/// What starts have found lost. It is kept in the data directory.
pub struct Losses(Mutex<Held>);

struct Held {
    /// Opened once there is a loss: most data directories never have one.
    file: Option<StateFile>,
    home: (journal::disk::SharedDisk, PathBuf),
    losses: Vec<Loss>,
}

impl Losses {
    /// Reads what was found before.
    ///
    /// # Errors
    /// What the file system says; [`io::ErrorKind::InvalidData`] where both copies of the file are damaged.
    pub fn open(directory: &DataDirectory) -> io::Result<Self> {
        let (disk, path) = (directory.disk().clone(), directory.path().to_owned());
        let mut held = Held { file: None, home: (disk, path), losses: Vec::new() };
        if directory.disk().list(directory.path())?.iter().any(|name| name.strip_prefix(FILE).is_some_and(is_copy)) {
            held.read()?;
        }
        Ok(Self(Mutex::new(held)))
    }

    /// Makes durable what of these findings is lost, but for what is known already. `counted` is the last position that is known to
    /// have been acknowledged.
    ///
    /// # Errors
    /// What the file system says.
    pub fn add(&self, from: &LostFrom, findings: &[Finding], counted: u64) -> io::Result<()> {
        let new = findings.iter().filter_map(|finding| Loss::of(from, finding, counted));
        self.held().change(|losses| {
            let before = losses.len();
            for loss in new {
                if !losses.iter().any(|known| known.is_same(&loss)) {
                    losses.push(loss);
                }
            }
            losses.len() > before
        })
    }

    /// All that is lost.
    #[must_use]
    pub fn all(&self) -> Vec<Loss> {
        self.held().losses.clone()
    }

    /// What the operator hasn't accepted yet.
    #[must_use]
    pub fn open_ones(&self) -> Vec<Loss> {
        self.all().into_iter().filter(|loss| !loss.is_accepted).collect()
    }

    /// Accepts all, and says what was accepted just now.
    ///
    /// # Errors
    /// What the file system says: then nothing was accepted.
    pub fn accept(&self) -> io::Result<Vec<Loss>> {
        let accepted = self.open_ones();
        self.held().change(|losses| {
            losses.iter_mut().for_each(|loss| loss.is_accepted = true);
            !accepted.is_empty()
        })?;
        Ok(accepted)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn read(&mut self) -> io::Result<()> {
        let (file, state) = StateFile::open(self.home.0.clone(), &self.home.1, FILE)?;
        let damaged =
            || io::Error::new(io::ErrorKind::InvalidData, "the files losses.0 and losses.1 are damaged: remove both");
        let content = match state.content {
            None if state.damaged.is_empty() => Vec::new(),
            content => content.ok_or_else(damaged)?,
        };
        self.losses = if content.is_empty() { Vec::new() } else { decode(&content).ok_or_else(damaged)? };
        self.file = Some(file);
        Ok(())
    }

    /// Keeps a change once it is durable. `change` says whether there is one.
    fn change(&mut self, change: impl FnOnce(&mut Vec<Loss>) -> bool) -> io::Result<()> {
        let mut losses = self.losses.clone();
        if !change(&mut losses) {
            return Ok(());
        }
        if self.file.is_none() {
            self.read()?;
        }
        let lines: String = losses.iter().map(Loss::encode).collect();
        let text = format!("{HEADING}\n{lines}");
        if let Some(file) = &mut self.file {
            file.write(text.as_bytes())?;
        }
        self.losses = losses;
        Ok(())
    }
}

fn is_copy(extension: &str) -> bool {
    matches!(extension, ".0" | ".1")
}

fn decode(content: &[u8]) -> Option<Vec<Loss>> {
    let mut lines = std::str::from_utf8(content).ok()?.lines();
    (lines.next()? == HEADING).then_some(())?;
    lines.map(Loss::decode).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use journal::simulated_disk::{CutStyle, SimulatedDisk};

    use super::*;

    fn finding(letter: char, lost: Vec<std::ops::Range<u64>>) -> Finding {
        Finding { letter, generation: 1, offset: 4096, first: None, lost, saved: None }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "findings have ranges")]
    fn what_is_lost_is_known_until_it_is_accepted_and_is_no_news_afterwards() {
        let disk = SimulatedDisk::new(1);
        let open = || DataDirectory::open(Arc::new(disk.clone()), Path::new("/data")).unwrap();
        let directory = open();
        let losses = Losses::open(&directory).unwrap();
        let shard = LostFrom::Shard(3);
        losses.add(&shard, &[finding('I', Vec::new()), finding('C', vec![8..9])], 7).unwrap();
        assert_eq!(losses.all(), [], "a torn commit was never acknowledged");
        let found = [finding('N', vec![5..8]), finding('E', vec![7..8, 9..12]), finding('H', Vec::new())];
        losses.add(&shard, &found, 7).unwrap();
        losses.add(&LostFrom::Dead("local".into()), &found[..1], 7).unwrap();
        drop((losses, directory));
        disk.power_cut_in_style(CutStyle::LoseAll);

        let directory = open();
        let losses = Losses::open(&directory).unwrap();
        losses.add(&shard, &found, 7).unwrap();
        let places: Vec<_> = losses.open_ones().into_iter().map(|loss| (loss.letter, loss.positions)).collect();
        assert_eq!(places, [('N', Some((5, 7))), ('E', Some((7, 11))), ('H', None), ('N', Some((5, 7)))]);
        assert_eq!(losses.accept().unwrap().len(), 4);
        assert_eq!(losses.accept().unwrap(), []);
        drop((losses, directory));
        let losses = Losses::open(&open()).unwrap();
        losses.add(&shard, &found, 7).unwrap();
        assert_eq!((losses.open_ones(), losses.all().len()), (Vec::new(), 4));
        let other = Finding { generation: 2, ..finding('H', Vec::new()) };
        losses.add(&shard, &[other], 7).unwrap();
        assert_eq!(losses.open_ones().len(), 1, "another segment is another loss");
    }

    #[test]
    fn a_file_that_makes_no_sense_is_an_error() {
        assert_eq!(decode(b"forebay-losses 2\n"), None);
        assert_eq!(decode(b"forebay-losses 1\nlost 0 N 1 x 1 open\n"), None);
        assert_eq!(decode(b"forebay-losses 1\nlost 0 N 2 1 1 open\n"), None);
    }
}
