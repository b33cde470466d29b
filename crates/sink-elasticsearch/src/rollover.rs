//! What may have been sent before, held against the older indices behind its name: before it is created, and again behind that, since the
//! store may have begun another index in between.

use std::collections::HashMap;

use super::backing_indices::{BackingIndex, looked_at};
use super::batch_outcomes::{Outcomes, Writing};
use super::bulk;
use super::config::Conflict;
use super::conflict::{Taken, Verdict, all_found, compare};
use super::error::Failure;
use super::in_doubt::Made;
use super::outcome::deletions;
use sink::{Reason, Retry, RetryScope};

/// What is known before a batch is sent of those of its records that may have been sent before.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Their indices within the batch, which ascend.
    doubted: Vec<usize>,
    /// Those that are there.
    pub(super) found: Vec<Taken>,
    /// Further documents of theirs in newer indices: an attempt has made these, and did not get to look behind it.
    repeated: Vec<Twice>,
    /// What was behind each of their names.
    backing_indices: HashMap<String, Vec<BackingIndex>>,
}

/// A document that was made although there is one of its id in an older index.
#[derive(Clone, Debug)]
struct Twice {
    made: Made,
    /// The older one.
    stored: Taken,
}

impl Before {
    /// Whether the record at this place may have been sent before.
    pub(super) fn doubts(&self, at: usize) -> bool {
        self.doubted.binary_search(&at).is_ok()
    }

    /// Whether nothing but this index was behind the name, so that no other one can have had the document before it was made there.
    fn was_only(&self, name: &str, index: &str) -> bool {
        self.backing_indices
            .get(name)
            .is_some_and(|before| before.len() == 1 && before.iter().all(|one| one.index == index))
    }
}

impl Writing<'_> {
    /// Looks for the records that may have been sent before, where there is more than one index that they can stand in.
    pub(super) async fn look_before(&self, doubted: Vec<usize>) -> Result<Before, Failure> {
        let mut before = Before { doubted, ..Before::default() };
        let mut wanted = Vec::new();
        for (name, records) in self.by_name(before.doubted.iter().map(|at| (*at, ()))) {
            let backing_indices = self.backing_indices.behind(self.server, &name).await?;
            if backing_indices.len() > 1 {
                let looked = looked_at(&backing_indices, self.received_first(&records));
                wanted.extend(records.into_iter().map(|(at, ())| places(at, looked)));
            }
            before.backing_indices.insert(name, backing_indices);
        }
        for places in all_found(self.config, self.server, self.batch, wanted).await? {
            let mut places = places.into_iter();
            let Some((stored, _)) = places.next() else { continue };
            before.repeated.extend(places.map(|(_, made)| Twice { made, stored: stored.clone() }));
            before.found.push(stored);
        }
        Ok(before)
    }

    /// Holds what was made just now against the older indices behind its name. What is in one of these was stored before: the document that was
    /// made is deleted, if it still is as it was made.
    pub(super) async fn look_behind(&self, before: Before, all: &mut Outcomes) {
        let made = std::mem::take(&mut all.made);
        if made.is_empty() && before.repeated.is_empty() {
            return;
        }
        let records: Vec<usize> =
            made.iter().map(|(at, _)| *at).chain(before.repeated.iter().map(|twice| twice.stored.at)).collect();
        let twice = match self.judged(before, made).await {
            Ok(twice) => twice,
            Err(failure) => return all.unsettled(records, failure),
        };
        let made: Vec<(usize, Made)> = twice.iter().map(|(twice, _)| (twice.stored.at, twice.made.clone())).collect();
        match self.delete(&made).await {
            Ok(done) => {
                for ((twice, verdict), done) in twice.into_iter().zip(done) {
                    match done {
                        Ok(()) => all.judge(&twice.stored, verdict),
                        Err(reason) => all.still_twice(twice.stored.at, reason),
                    }
                }
            }
            Err(failure) => all.unsettled(records, failure),
        }
    }

    /// Those that stand in an older index too, compared with what is there. Where that has gone meanwhile, the one that was made stays.
    async fn judged(&self, before: Before, made: Vec<(usize, Made)>) -> Result<Vec<(Twice, Verdict)>, Failure> {
        let repeated = self.only_same(&before.repeated).await?;
        let twice = self.made_twice(&before, made).await?;
        let verdicts = if self.config.conflict == Conflict::DeadLetter {
            let stored: Vec<Taken> = twice.iter().map(|twice| twice.stored.clone()).collect();
            compare(self.config, self.server, self.batch, &stored).await?
        } else {
            vec![Verdict::Same; twice.len()]
        };
        let made = twice.into_iter().zip(verdicts).filter(|(_, verdict)| *verdict != Verdict::Gone);
        Ok(made.chain(repeated.into_iter().map(|twice| (twice, Verdict::Same))).collect())
    }

    /// Those of which both documents are the record's: it isn't known that an attempt of this record has made the newer one.
    async fn only_same(&self, repeated: &[Twice]) -> Result<Vec<Twice>, Failure> {
        let newer = |twice: &Twice| Taken { at: twice.stored.at, index: twice.made.index.clone() };
        let both: Vec<Taken> = repeated.iter().flat_map(|twice| [twice.stored.clone(), newer(twice)]).collect();
        let verdicts = compare(self.config, self.server, self.batch, &both).await?;
        let are_same = verdicts.chunks(2).map(|pair| pair.iter().all(|verdict| *verdict == Verdict::Same));
        Ok(repeated.iter().zip(are_same).filter(|(_, are_same)| *are_same).map(|(twice, _)| twice.clone()).collect())
    }

    /// Those of the documents made that stand in an older index too.
    async fn made_twice(&self, before: &Before, made: Vec<(usize, Made)>) -> Result<Vec<Twice>, Failure> {
        let (mut asked, mut wanted) = (Vec::new(), Vec::new());
        for (name, mut records) in self.by_name(made) {
            records.iter().for_each(|(_, made)| self.backing_indices.went_to(&name, &made.index));
            records.retain(|(_, made)| made.index != name && !before.was_only(&name, &made.index));
            if records.is_empty() {
                continue;
            }
            let backing_indices = self.backing_indices.behind(self.server, &name).await?;
            let looked = looked_at(&backing_indices, self.received_first(&records));
            for (at, made) in records {
                // Only older ones: of two that find each other, one stays.
                let older = looked.iter().position(|backing_index| backing_index.index == made.index).unwrap_or(0);
                wanted.push(places(at, &looked[..older]));
                asked.push(made);
            }
        }
        let found = all_found(self.config, self.server, self.batch, wanted).await?;
        let first = found.into_iter().map(|places| places.into_iter().next());
        Ok(asked.into_iter().zip(first).filter_map(|(made, first)| Some(Twice { made, stored: first?.0 })).collect())
    }

    /// Deletes documents that nobody has changed since they were made, and says of each why it couldn't be done.
    async fn delete(&self, made: &[(usize, Made)]) -> Result<Vec<Result<(), Reason>>, Failure> {
        if made.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.server.bulk(bulk::deletions(self.config, self.batch, made), false).await?;
        deletions(&answer, made.len())
    }

    /// Records by the names that they are written to.
    fn by_name<T>(&self, records: impl IntoIterator<Item = (usize, T)>) -> HashMap<String, Vec<(usize, T)>> {
        let mut names: HashMap<String, Vec<(usize, T)>> = HashMap::new();
        for (at, what) in records {
            if let Some(record) = self.batch.get(at) {
                names.entry(self.config.index.of(&record)).or_default().push((at, what));
            }
        }
        names
    }

    /// When the first of them was received: microseconds since 1970, UTC.
    fn received_first<T>(&self, records: &[(usize, T)]) -> i64 {
        let received = records.iter().filter_map(|(at, _)| self.batch.get(*at)).map(|record| record.received_at);
        received.min().unwrap_or(0)
    }
}

impl Outcomes {
    /// It isn't known whether the documents of these records are one too many.
    fn unsettled(&mut self, records: Vec<usize>, failure: Failure) {
        let reason: Reason = format!("it can't be held against older indices of its name: {}", failure.what()).into();
        records.into_iter().for_each(|at| self.still_twice(at, reason.clone()));
        self.failures.push(failure);
    }

    /// The record is to be sent again, and looked for then.
    fn still_twice(&mut self, at: usize, reason: Reason) {
        self.retry.push(Retry { index: at, reason, scope: RetryScope::Store });
    }
}

fn places(at: usize, backing_indices: &[BackingIndex]) -> Vec<Taken> {
    backing_indices.iter().map(|backing_index| Taken { at, index: backing_index.index.clone() }).collect()
}
