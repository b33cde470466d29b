//! What a replay sent last, as [facts](eventlog::encode_facts):
//!
//! ```text
//! {"format":"forebay-replay","version":2}
//! {"until":9}
//! {"sent":{"shard":0,"sequence":1,"number":7}}
//! ```

use std::collections::BTreeMap;
use std::io;

use eventlog::{FactFormat, InvalidFact, decode_facts, encode_facts};
use serde::{Deserialize, Serialize};

const FORMAT: FactFormat = FactFormat { name: "forebay-replay", renamed: &[] };

/// An event's position: its shard, and its sequence there.
pub(super) type Place = (u16, u64);

/// What was sent last, if it is not answered yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// The last position of the journal of dead letters before it was sent: later records were not part of it.
    pub(super) until: u64,
    pub(super) numbers: BTreeMap<Place, u64>,
}

/// The saved form.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Fact {
    Until(u64),
    Sent { shard: u16, sequence: u64, number: u64 },
}

impl Sent {
    /// Whether the dead letter at this position was part of it.
    pub(super) fn has(&self, at: u64, place: Place) -> bool {
        at <= self.until && self.numbers.contains_key(&place)
    }

    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let sent = |((shard, sequence), number): (&Place, &u64)| Fact::Sent {
            shard: *shard,
            sequence: *sequence,
            number: *number,
        };
        encode_facts(&FORMAT, std::iter::once(Fact::Until(self.until)).chain(self.numbers.iter().map(sent)))
    }

    /// Reads what [`Sent::encode`] wrote, or version 1, which had neither a heading nor names of numbers.
    pub(super) fn decode(text: &[u8]) -> Result<Self, InvalidFact> {
        if let Some(text) = std::str::from_utf8(text).ok().filter(|text| text.starts_with("until ")) {
            let facts = text.trim_end_matches('\n').replace('\n', "\nsent ");
            return Self::decode(format!("{} 1\n{facts}\n", FORMAT.name).as_bytes());
        }
        let (mut until, mut numbers) = (None, BTreeMap::new());
        let add = |fact| {
            match fact {
                Fact::Until(last) => until = Some(last),
                Fact::Sent { shard, sequence, number } => drop(numbers.insert((shard, sequence), number)),
            }
            Ok(())
        };
        decode_facts(&FORMAT, text, add)?;
        let until = until.ok_or_else(|| InvalidFact { line: 2, reason: "expected `until`".into() })?;
        Ok(Self { until, numbers })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sent_events_of_version_1_are_loaded() {
        let sent = Sent { until: 9, numbers: BTreeMap::from([((0, 1), 7), ((3, u64::MAX), u64::MAX - 1)]) };
        let text = "until 9\n0 1 7\n3 18446744073709551615 18446744073709551614\n";
        assert_eq!(Sent::decode(text.as_bytes()), Ok(sent));
        assert_eq!(Sent::decode(b"until 0\n"), Ok(Sent::default()));
        for wrong in ["1 2", "1 2 3 4", "70000 1 2", "\n1 2 3", "1 2 x"] {
            let text = format!("until 1\n{wrong}\n");
            assert_eq!(Sent::decode(text.as_bytes()).unwrap_err().line, 3, "{wrong:?}");
        }
    }

    #[test]
    fn rejected_line_is_named() {
        let header = r#"{"format":"forebay-replay","version":2}"#;
        for (text, line) in [
            ("1 2 3\n".into(), 1),
            (format!("{header}\n"), 2),
            (format!("{header}\n{{\"until\":1}}\n{{\"sent\":{{\"shard\":70000,\"sequence\":1,\"number\":2}}}}\n"), 3),
            (format!("{header}\n{{\"until\":1}}\n{{\"novel\":2}}\n"), 3),
        ] {
            assert_eq!(Sent::decode(text.as_bytes()).unwrap_err().line, line, "{text}");
        }
    }

    proptest! {
        #[test]
        fn saved_sent_events_are_loaded(
            until in any::<u64>(),
            numbers in btree_map(any::<Place>(), any::<u64>(), 0..4)
        ) {
            let sent = Sent { until, numbers };
            prop_assert_eq!(Sent::decode(&sent.encode().unwrap()), Ok(sent));
        }
    }
}
