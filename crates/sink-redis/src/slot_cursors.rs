//! A lane over several slots: the part of a batch that belongs to one slot is a place, with its own cursor next to its
//! data.
//!
//! The position of the whole lane is in its notes, with the position of each place at that time. The notes are written
//! after the places, so a place may be ahead of them, and skips duplicates. A place before its noted position has lost
//! its last writes. Then the lane returns to that place's position and resumes there, and the other places skip what
//! they have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use event::Lane;
use tokio::time::Instant;

use super::config::RedisConfig;
use super::error::Failure;
use super::execute::Execute;
use super::protocol::Command;
use super::script;
use sink::{Batch, Claim, Held, Takeover, WriteOutcome};

/// How often a lane checks all its places, including those without new records: a lost tail must be noticed before the
/// journal frees its segments.
const CHECK_EVERY: Duration = Duration::from_secs(10);
const NOTE: &str = include_str!("note.lua");

/// A lane's knowledge of its places.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The position up to which the lane is stored.
    position: u64,
    marks: BTreeMap<String, Mark>,
    /// Places that have rejected a record, and the position of the last one. The next batch, without the record, moves
    /// their cursors past it, even without other records for them.
    refused: BTreeMap<String, u64>,
    checked_at: Option<Instant>,
}

/// A place's positions.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// Its cursor.
    stored: u64,
    /// Its cursor at the time of the notes.
    noted: u64,
}

impl Mark {
    const fn has_lost(self) -> bool {
        self.stored < self.noted
    }
}

impl Places {
    /// The position up to which the lane is stored and from which it resumes, and the claims on it and its places.
    pub(super) async fn held<A: Execute>(
        &mut self,
        nodes: &mut A,
        config: &RedisConfig,
        lane: &Lane,
    ) -> Result<Held, Failure> {
        // First the whole lane: its claim is exchanged before those of its places.
        let claim = script::read_claim(nodes, &config.key.own(), lane).await?;
        let (position, mut claims) = self.read_state(nodes, config, lane).await?;
        claims.extend(claim);
        let claims = claims.into_iter().collect();
        self.position = position;
        Ok(Held { position, claims })
    }

    /// Exchanges the claim on the whole lane, and then the claims on its places, if `takeover` allows it.
    pub(super) async fn claim<A: Execute>(
        &mut self,
        nodes: &mut A,
        config: &RedisConfig,
        lane: &Lane,
        (claim, takeover): (Claim, &Takeover),
    ) -> Result<Held, Failure> {
        let own = config.key.own();
        // Its position is in its notes, and not next to this claim.
        let held = script::exchange(nodes, &own, lane, (claim, takeover), "").await?;
        if held.claims == [claim] {
            let (_, places) = read_notes(nodes, config, lane).await?;
            for place in places.keys() {
                script::claim(nodes, &config.own_of(place), lane, claim, takeover).await?;
            }
            if let Takeover::Forced(position) = takeover {
                let position = position.to_string();
                let key = notes_key(config, lane);
                let mut words = vec!["HSET", &key, "", &position];
                words.extend(places.keys().flat_map(|place| [place, position.as_str()]));
                nodes.execute(&key, Command::new(&words)).await?;
                self.refused.clear();
            }
        }
        self.held(nodes, config, lane).await
    }

    /// Reads the lane's position, and the claims on its places.
    async fn read_state<A: Execute>(
        &mut self,
        nodes: &mut A,
        config: &RedisConfig,
        lane: &Lane,
    ) -> Result<(u64, BTreeSet<Claim>), Failure> {
        // First the notes: in the meantime places may move ahead of them, but never before them.
        let (noted, places) = read_notes(nodes, config, lane).await?;
        let (mut marks, mut claims) = (BTreeMap::new(), BTreeSet::new());
        for (place, noted) in places {
            let held = script::read(nodes, &config.own_of(&place), lane).await?;
            claims.extend(held.claims);
            marks.insert(place, Mark { stored: held.position, noted });
        }
        let lost = marks.values().filter(|mark| mark.has_lost()).map(|mark| mark.stored).min();
        (self.marks, self.checked_at) = (marks, Some(Instant::now()));
        Ok((lost.map_or(noted, |lost| lost.min(noted)), claims))
    }

    /// Writes the records of `batch` after the cursors of their places.
    pub(super) async fn write<A: Execute>(
        &mut self,
        nodes: &mut A,
        config: &RedisConfig,
        batch: &Batch,
    ) -> Result<WriteOutcome, Failure> {
        // If the lane's position differs from the expected one, another process may have written.
        if self.position != batch.floor()
            || self.checked_at.is_none_or(|checked_at| checked_at.elapsed() >= CHECK_EVERY)
        {
            let (position, _) = self.read_state(nodes, config, batch.lane()).await?;
            if position < batch.floor() {
                return Err(Failure::LostTail { position, stored: batch.floor() });
            }
            self.position = position;
        }
        let parts = self.parts(config, batch)?;
        // A new place has no claim: the claim of the whole lane is checked before the place is written.
        if parts.keys().any(|place| !self.marks.contains_key(place)) {
            let held = script::read_claim(nodes, &config.key.own(), batch.lane()).await?;
            if !Claim::admits(held, batch.claim()) {
                return Err(Failure::Claimed);
            }
        }
        let mut refused = Vec::new();
        for (place, indices) in &parts {
            let mark = self.marks.entry(place.clone()).or_default();
            let keys = config.own_of(place);
            match script::write(nodes, config, &keys, batch, indices, &mut mark.stored).await? {
                WriteOutcome::Rejected { refused: found } => {
                    let last =
                        found.iter().filter_map(|refusal| batch.get(refusal.index)).map(|record| record.sequence).max();
                    self.refused.extend(last.map(|last| (place.clone(), last)));
                    refused.extend(found);
                }
                WriteOutcome::Committed | WriteOutcome::Partial { .. } => {}
            }
        }
        if !refused.is_empty() {
            refused.sort_by_key(|refusal| refusal.index);
            return Ok(WriteOutcome::Rejected { refused });
        }
        self.note(nodes, config, batch, parts.keys()).await?;
        Ok(WriteOutcome::Committed)
    }

    /// The records of each place. Places that have lost data are included even without a record: their missing records
    /// are in this batch or in an earlier one. If there were none, these places are up to date.
    fn parts(&mut self, config: &RedisConfig, batch: &Batch) -> Result<BTreeMap<String, Vec<usize>>, Failure> {
        let mut parts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, record) in batch.records().enumerate() {
            parts.entry(config.place_of(&record)).or_default().push(index);
        }
        let marks = &self.marks;
        self.refused.retain(|place, last| marks.get(place).is_none_or(|mark| mark.stored < *last));
        for place in self.refused.keys() {
            parts.entry(place.clone()).or_default();
        }
        for (place, mark) in self.marks.iter().filter(|(_, mark)| mark.has_lost()) {
            if batch.first() > mark.stored + 1 {
                return Err(Failure::LostTail { position: mark.stored, stored: batch.first() - 1 });
            }
            parts.entry(place.clone()).or_default();
        }
        Ok(parts)
    }

    async fn note<'p, A: Execute>(
        &mut self,
        nodes: &mut A,
        config: &RedisConfig,
        batch: &Batch,
        places: impl Iterator<Item = &'p String> + Clone,
    ) -> Result<(), Failure> {
        let (key, last) = (notes_key(config, batch.lane()), batch.last().to_string());
        let floor = batch.floor().to_string();
        let (claims, lane) = (config.key.own().cursors, script::field(batch.lane()));
        let claim = script::claim_text(batch.claim());
        let mut command = Command::new(&["EVAL", NOTE, "2", &key, &claims, &lane, &claim, &floor, &last]);
        for place in places.clone() {
            command.word(place);
            command.word(&last);
        }
        let words = nodes.execute(&key, command).await?.texts().ok_or(script::INVALID_RESULT)?;
        let [outcome, noted] = words.as_slice() else { return Err(script::INVALID_RESULT) };
        match outcome.as_str() {
            "stored" => {}
            "claimed" => return Err(Failure::Claimed),
            _ => return Err(Failure::LostTail { position: script::position(noted)?, stored: batch.floor() }),
        }
        self.position = batch.last().max(self.position);
        for place in places {
            if let Some(mark) = self.marks.get_mut(place) {
                mark.noted = mark.noted.max(batch.last());
            }
        }
        Ok(())
    }
}

fn notes_key(config: &RedisConfig, lane: &Lane) -> String {
    format!("forebay:{{{}}}:lane:{}", config.key.tag(), script::field(lane))
}

/// The noted positions of the lane, and of each of its places.
async fn read_notes<A: Execute>(
    nodes: &mut A,
    config: &RedisConfig,
    lane: &Lane,
) -> Result<(u64, HashMap<String, u64>), Failure> {
    let key = notes_key(config, lane);
    let notes = nodes.execute(&key, Command::new(&["HGETALL", &key])).await?.pairs().ok_or(script::INVALID_RESULT)?;
    let position = |(place, position): (String, String)| Ok((place, script::position(&position)?));
    let mut places = notes.into_iter().map(position).collect::<Result<HashMap<_, _>, Failure>>()?;
    // The whole lane has an empty name.
    let whole = places.remove("").unwrap_or(0);
    Ok((whole, places))
}

#[cfg(test)]
pub(crate) mod tests;
