//! What became of the records of a request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use limits::REFUSALS_LISTED_MAX;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordVerdict {
    /// It is on disk, or was before, or was dropped as its type's transform says.
    Accepted,
    /// Other bytes with its id are on disk.
    IdReused,
    /// It is rejected permanently.
    Rejected,
}

/// Why a record was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The stable name of the reason.
    pub code: &'static str,
    /// What is wrong, and what to do.
    pub detail: Cow<'static, str>,
}

/// What became of the records of a request: one byte for each, and details of the first rejected ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    verdicts: Vec<RecordVerdict>,
    details: BTreeMap<u32, Detail>,
}

impl Verdicts {
    /// `count` records that are on disk.
    #[must_use]
    pub fn accepted(count: usize) -> Self {
        Self { verdicts: vec![RecordVerdict::Accepted; count], details: BTreeMap::new() }
    }

    /// Sets the verdict on the record at `index`, from 0. Nothing happens if there is no such record.
    pub fn set(&mut self, index: usize, verdict: RecordVerdict) {
        if let Some(known) = self.verdicts.get_mut(index) {
            *known = verdict;
        }
    }

    /// Adds the verdict on the next record.
    pub fn push(&mut self, verdict: RecordVerdict) {
        self.verdicts.push(verdict);
    }

    /// Sets a verdict, and why. Details beyond the first [`REFUSALS_LISTED_MAX`] are left out.
    pub fn reject(&mut self, index: usize, verdict: RecordVerdict, detail: impl FnOnce() -> Detail) {
        self.set(index, verdict);
        if let Ok(number) = u32::try_from(index)
            && self.details.len() < REFUSALS_LISTED_MAX
        {
            self.details.insert(number, detail());
        }
    }

    /// The verdicts in the order of the records.
    #[must_use]
    pub fn all(&self) -> &[RecordVerdict] {
        &self.verdicts
    }

    /// Why the record at `index` was rejected, if that is among the details.
    #[must_use]
    pub fn detail(&self, index: usize) -> Option<&Detail> {
        self.details.get(&u32::try_from(index).ok()?)
    }

    /// How many records aren't stored.
    #[must_use]
    pub fn rejected(&self) -> usize {
        self.verdicts.iter().filter(|verdict| !verdict.is_stored()).count()
    }

    /// The index of the first record that isn't stored, and why.
    #[must_use]
    pub fn first_rejected(&self) -> Option<(usize, Option<&Detail>)> {
        let index = self.verdicts.iter().position(|verdict| !verdict.is_stored())?;
        Some((index, self.detail(index)))
    }

    /// About how many bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.verdicts.len() + self.details.values().map(|detail| 64 + detail.detail.len()).sum::<usize>()
    }
}

impl RecordVerdict {
    /// Whether its record is on disk.
    #[must_use]
    pub const fn is_stored(self) -> bool {
        matches!(self, Self::Accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_bounded() {
        let mut verdicts = Verdicts::accepted(REFUSALS_LISTED_MAX + 2);
        let detail = Detail { code: "json", detail: "bad".into() };
        for index in 1..verdicts.all().len() {
            verdicts.reject(index, RecordVerdict::Rejected, || detail.clone());
        }
        assert_eq!(verdicts.rejected(), REFUSALS_LISTED_MAX + 1);
        assert_eq!(verdicts.first_rejected(), Some((1, Some(&detail))));
        assert_eq!(verdicts.detail(REFUSALS_LISTED_MAX + 1), None);
    }
}
