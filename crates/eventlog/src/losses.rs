//! Acknowledged events that starts have found lost, until the operator accepts that.
//!
//! A start finds the loss of a log's end only once: then the log continues after it. So the loss is recorded before
//! the log is opened. The state file `losses` holds a [fact](crate::encode_facts) for each:
//!
//! ```text
//! {"format":"forebay-losses","version":2}
//! {"lost":{"shard":0,"case":"N","first":571,"last":600,"generation":3,"accepted":false}}
//! {"dead_letters":{"sink":"local","case":"H","first":null,"last":null,"generation":1,"accepted":true}}
//! ```

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use journal::{
    DataDirectory, Finding, LOG_BEGINS_LATE, LOG_ENDS_EARLY, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED, StateFile,
};
use serde::{Deserialize, Serialize};
use text::OperatorCommand;

use crate::saved_facts::{FactFormat, InvalidFact, decode_facts, encode_facts};

const FILE: &str = "losses";
const FORMAT: FactFormat = FactFormat { name: "forebay-losses", renamed: &[("dead", "dead_letters")] };
/// Cases in which events were acknowledged: the log continued after them, or was known to.
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
    /// The code of the recovery case.
    pub case: char,
    /// The first and the last position, if they are known.
    pub positions: Option<(u64, u64)>,
    /// The generation of the segment.
    pub generation: u64,
    /// Whether the operator has accepted it.
    pub is_accepted: bool,
}

impl Loss {
    /// The message for the operator.
    #[must_use]
    pub fn message(&self) -> String {
        format!(
            "{self}. Restore them from a copy, or accept the loss with {} while Forebay is stopped.",
            OperatorCommand::JournalAcceptLoss
        )
    }

    /// How many positions are lost; 0 if that is unknown.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.positions.map_or(0, |(first, last)| last - first + 1)
    }

    /// The permanent loss of a finding, if any; `counted` is the last position that is known to have been acknowledged.
    fn of(from: &LostFrom, finding: &Finding, counted: u64) -> Option<Self> {
        let ends = finding.lost.first().zip(finding.lost.last());
        let positions =
            ends.filter(|(first, last)| first.start < last.end).map(|(first, last)| (first.start, last.end - 1));
        let was_counted = positions.is_some_and(|(first, _)| first <= counted);
        let loss = Self {
            from: from.clone(),
            case: finding.case,
            positions,
            generation: finding.generation,
            is_accepted: false,
        };
        (ACKNOWLEDGED.contains(&finding.case) || was_counted).then_some(loss)
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_alike = (&self.from, self.case, self.positions) == (&other.from, other.case, other.positions);
        // Without positions only the segment distinguishes two losses.
        is_alike && (self.positions.is_some() || self.generation == other.generation)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.positions {
            Some((first, last)) => write!(f, "{}: positions {first} to {last} are lost, or some of them", self.from)?,
            None => write!(f, "{}: an unknown number of events is lost", self.from)?,
        }
        write!(f, " (case {})", self.case)
    }
}

/// The order of fields is version 1's.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Fact {
    Lost { shard: u16, case: char, first: Option<u64>, last: Option<u64>, generation: u64, accepted: bool },
    DeadLetters { sink: String, case: char, first: Option<u64>, last: Option<u64>, generation: u64, accepted: bool },
}

impl From<Loss> for Fact {
    fn from(loss: Loss) -> Self {
        let Loss { from, case, positions, generation, is_accepted: accepted } = loss;
        let (first, last) = positions.unzip();
        match from {
            LostFrom::Shard(shard) => Self::Lost { shard, case, first, last, generation, accepted },
            LostFrom::Dead(sink) => Self::DeadLetters { sink, case, first, last, generation, accepted },
        }
    }
}

impl From<Fact> for Loss {
    fn from(fact: Fact) -> Self {
        let (from, case, first, last, generation, is_accepted) = match fact {
            Fact::Lost { shard, case, first, last, generation, accepted } => {
                (LostFrom::Shard(shard), case, first, last, generation, accepted)
            }
            Fact::DeadLetters { sink, case, first, last, generation, accepted } => {
                (LostFrom::Dead(sink), case, first, last, generation, accepted)
            }
        };
        Self { from, case, positions: first.zip(last), generation, is_accepted }
    }
}

/// The losses that starts have found. They are kept in the data directory.
pub struct Losses(Mutex<Held>);

struct Held {
    /// Opened once there is a loss: most data directories never have one.
    file: Option<StateFile>,
    home: (journal::disk::SharedDisk, PathBuf),
    losses: Vec<Loss>,
}

impl Losses {
    /// Reads the losses that were found earlier.
    ///
    /// # Errors
    /// The file system's error; [`io::ErrorKind::InvalidData`] if both copies of the file are damaged, or another version wrote it.
    pub fn open(directory: &DataDirectory) -> io::Result<Self> {
        let (disk, path) = (directory.disk().clone(), directory.path().to_owned());
        let mut held = Held { file: None, home: (disk, path), losses: Vec::new() };
        if directory.disk().list(directory.path())?.iter().any(|name| name.strip_prefix(FILE).is_some_and(is_copy)) {
            held.read()?;
        }
        Ok(Self(Mutex::new(held)))
    }

    /// Makes the losses of these findings durable, except known ones. `counted` is the last position that is known to
    /// have been acknowledged.
    ///
    /// # Errors
    /// The file system's error.
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

    /// The losses that the operator hasn't accepted yet.
    #[must_use]
    pub fn open_ones(&self) -> Vec<Loss> {
        self.all().into_iter().filter(|loss| !loss.is_accepted).collect()
    }

    /// Accepts all losses, and returns those that weren't accepted yet.
    ///
    /// # Errors
    /// The file system's error: then no loss was accepted.
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
        let invalid = |message| io::Error::new(io::ErrorKind::InvalidData, message);
        self.losses = match state.content {
            Some(text) => decode(&text).map_err(|error| {
                invalid(format!(
                    "this version of Forebay cannot read losses.0 and losses.1: {error}. Use the version that wrote \
                     them"
                ))
            })?,
            None if state.damaged.is_empty() => Vec::new(),
            None => return Err(invalid("the files losses.0 and losses.1 are damaged: remove both".into())),
        };
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
        if let Some(file) = &mut self.file {
            file.write(&encode(&losses)?)?;
        }
        self.losses = losses;
        Ok(())
    }
}

fn is_copy(extension: &str) -> bool {
    matches!(extension, ".0" | ".1")
}

fn encode(losses: &[Loss]) -> io::Result<Vec<u8>> {
    encode_facts(&FORMAT, losses.iter().cloned().map(Fact::from))
}

/// Reads the output of [`encode`], or version 1.
fn decode(text: &[u8]) -> Result<Vec<Loss>, InvalidFact> {
    let mut losses = Vec::new();
    let add = |fact: Fact| match Loss::from(fact) {
        Loss { positions: Some((first, last)), .. } if last < first => {
            Err(format!("the range of positions {first} to {last} ends before it begins"))
        }
        loss => {
            losses.push(loss);
            Ok(())
        }
    };
    decode_facts(&FORMAT, text, add)?;
    Ok(losses)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use journal::simulated_disk::{CutStyle, SimulatedDisk};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn finding(case: char, lost: Vec<std::ops::Range<u64>>) -> Finding {
        Finding { case, generation: 1, offset: 4096, first: None, lost, saved: None }
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "findings have ranges")]
    fn loss_is_listed_until_it_is_accepted() {
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
        let places: Vec<_> = losses.open_ones().into_iter().map(|loss| (loss.case, loss.positions)).collect();
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
    fn losses_of_version_1_are_loaded() {
        let loss =
            |from, positions, generation, is_accepted| Loss { from, case: 'N', positions, generation, is_accepted };
        let text = "forebay-losses 1\nlost 3 N 571 600 3 open\ndead local N - - 1 accepted\n";
        let losses = vec![
            loss(LostFrom::Shard(3), Some((571, 600)), 3, false),
            loss(LostFrom::Dead("local".into()), None, 1, true),
        ];
        assert_eq!(decode(text.as_bytes()), Ok(losses.clone()));
        let text = String::from_utf8(encode(&losses).unwrap()).unwrap();
        let lines = [
            r#"{"format":"forebay-losses","version":2}"#,
            r#"{"lost":{"shard":3,"case":"N","first":571,"last":600,"generation":3,"accepted":false}}"#,
            r#"{"dead_letters":{"sink":"local","case":"N","first":null,"last":null,"generation":1,"accepted":true}}"#,
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        assert_eq!(decode(b"forebay-losses 1\n"), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn saved_losses_are_loaded(
            losses in vec((any::<(bool, u16, char)>(), option::of((any::<u32>(), any::<u64>())), any::<(u64, bool)>()), 0..4)
        ) {
            let losses: Vec<Loss> = losses
                .into_iter()
                .map(|((is_shard, shard, case), positions, (generation, is_accepted))| Loss {
                    from: if is_shard { LostFrom::Shard(shard) } else { LostFrom::Dead(format!("sink-{shard}")) },
                    case,
                    positions: positions.map(|(first, last)| (first.into(), last.max(first.into()))),
                    generation,
                    is_accepted,
                })
                .collect();
            let text = encode(&losses).unwrap();
            prop_assert_eq!(decode(&text), Ok(losses));
        }
    }

    #[test]
    fn invalid_file_of_losses_is_an_error() {
        let line = |text: &str| decode(text.as_bytes()).unwrap_err().line;
        assert_eq!(line("forebay-losses 2\n"), 1);
        assert_eq!(line("forebay-losses 1\nlost 0 N 1 x 1 open\n"), 2);
        assert_eq!(line("forebay-losses 1\nlost 0 N 2 1 1 open\n"), 2);
        let header = "{\"format\":\"forebay-losses\",\"version\":2}\n";
        let loss = |fact, last| {
            let loss = format!(
                r#"{{"{fact}":{{"shard":0,"case":"N","first":2,"last":{last},"generation":1,"accepted":true}}}}"#
            );
            decode(format!("{header}{loss}\n").as_bytes()).map_err(|error| error.line)
        };
        assert_eq!(loss("lost", 2).unwrap().len(), 1);
        assert_eq!((loss("lost", 1), loss("found", 2)), (Err(2), Err(2)));
    }
}
