//! The ids of the events that a request names.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use event::{EventId, InvalidEventId};
use limits::CHOSEN_IDS_MAX;

/// Ids that are shown to the operator, at most.
const SHOWN_MAX: usize = 3;

/// One id or several, each once; in a text with commas between them. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenIds(Arc<[EventId]>);

/// The text has an invalid id, or too many ids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChoice {
    /// The invalid id.
    #[error("'{0}' isn't valid: {InvalidEventId}. Separate ids with single commas")]
    Id(String),
    /// The number of ids.
    #[error("{0} ids are too many: name {CHOSEN_IDS_MAX} at most, or use another filter")]
    TooMany(usize),
}

impl FromStr for ChosenIds {
    type Err = InvalidChoice;

    fn from_str(text: &str) -> Result<Self, InvalidChoice> {
        let ids = text.split(',').map(|id| id.parse().map_err(|_| InvalidChoice::Id(id.to_owned())));
        // In order: the same choice is the same filter.
        let ids: BTreeSet<EventId> = ids.collect::<Result<_, _>>()?;
        if ids.len() > CHOSEN_IDS_MAX {
            return Err(InvalidChoice::TooMany(ids.len()));
        }
        Ok(Self(ids.into_iter().collect()))
    }
}

impl From<EventId> for ChosenIds {
    fn from(id: EventId) -> Self {
        Self(Arc::new([id]))
    }
}

impl fmt::Display for ChosenIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.0))
    }
}

impl ChosenIds {
    pub(crate) fn contains(&self, id: EventId) -> bool {
        self.0.binary_search(&id).is_ok()
    }

    /// For the operator: the first ones, and how many others there are.
    #[must_use]
    pub fn shown(&self) -> String {
        let (first, others) = self.0.split_at(self.0.len().min(SHOWN_MAX));
        let first = joined(first);
        if others.is_empty() { first } else { format!("{first} and {}", text::counted(others.len() as u64, "other")) }
    }
}

fn joined(ids: &[EventId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> EventId {
        EventId((number as u128).to_be_bytes())
    }

    fn parse(ids: impl IntoIterator<Item = usize>) -> Result<ChosenIds, InvalidChoice> {
        joined(&ids.into_iter().map(id).collect::<Vec<_>>()).parse()
    }

    #[test]
    fn choice_is_a_set_of_ids() {
        let choice = parse([7, 3, 7]).unwrap();
        assert_eq!(Ok(&choice), parse([3, 7]).as_ref(), "neither order nor repetition matters");
        assert_eq!(choice.to_string(), format!("{},{}", id(3), id(7)));
        assert!(choice.contains(id(3)) && choice.contains(id(7)) && !choice.contains(id(5)));
        assert_eq!(parse([5]), Ok(id(5).into()));
    }

    #[test]
    fn invalid_choice_is_named() {
        for (text, wrong) in [("", ""), ("1", "1"), (&format!("{},x", id(1)), "x"), (&format!("{},", id(1)), "")] {
            assert_eq!(text.parse::<ChosenIds>(), Err(InvalidChoice::Id(wrong.into())), "{text}");
        }
        assert!(parse(0..CHOSEN_IDS_MAX).is_ok());
        assert_eq!(parse(0..=CHOSEN_IDS_MAX), Err(InvalidChoice::TooMany(CHOSEN_IDS_MAX + 1)));
    }

    #[test]
    fn large_choice_is_shown_in_short() {
        assert_eq!(parse(1..=3).unwrap().shown(), parse(1..=3).unwrap().to_string());
        assert_eq!(parse(1..=9).unwrap().shown(), format!("{} and 6 others", joined(&[id(1), id(2), id(3)])));
    }
}
