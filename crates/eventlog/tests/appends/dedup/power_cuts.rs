//! Power cuts and kills during posts that are resent often; a seed decides each run. An event that was acknowledged is
//! in the log, and no id is in it twice.
//!
//! `FOREBAY_POWER_CUT_STATES` says how many cuts are recovered from, `FOREBAY_SEED` the first run's seed.

use std::collections::BTreeMap;

use event::Position;
use eventlog::{EventLog, LogChunk};
use journal::simulated_disk::{Random, SimulatedDisk};

use super::{Harness, INLINE, Outcome, join_all};

/// A check that a negative control removes. A campaign must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// Events are appended without a lookup of earlier ids.
    NoCheck,
    /// Segments are freed before their ids are in the id files.
    FreesFirst,
}

const KEYS: u64 = 24;
const STEPS: u64 = 40;
const STATES: u64 = 5_000;
const SHARDS: usize = 2;

struct Run {
    random: Random,
    disk: SimulatedDisk,
    wrong: Option<Wrong>,
    /// The positions of acknowledged events, by key.
    acknowledged: BTreeMap<u8, Position>,
    /// The positions at which events were read in the log.
    found: BTreeMap<u8, Position>,
    /// Up to where each shard was read.
    read_up_to: [u64; SHARDS],
    tally: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    states: u64,
    cuts_in_recovery: u64,
    again: u64,
    freed: u64,
    unanswered_kept: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.states += other.states;
        self.cuts_in_recovery += other.cuts_in_recovery;
        self.again += other.again;
        self.freed += other.freed;
        self.unanswered_kept += other.unanswered_kept;
    }

    fn check(&self) {
        let met = [self.cuts_in_recovery, self.again, self.freed, self.unanswered_kept];
        assert!(met.into_iter().all(|count| count > self.states / 100), "vacuous: {self:?}");
    }
}

impl Run {
    fn new(seed: u64, wrong: Option<Wrong>) -> Self {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(random.number());
        let (acknowledged, found) = (BTreeMap::new(), BTreeMap::new());
        Self { random, disk, wrong, acknowledged, found, read_up_to: [0; SHARDS], tally: Tally::default() }
    }

    fn go(mut self) -> Result<Tally, String> {
        let mut harness = self.restart()?;
        for _ in 0..STEPS {
            if self.random.once_in(2) {
                self.disk.fail_power_at(1 + self.random.below(14));
            }
            let lives = match self.random.below(8) {
                0..=4 => self.post(&harness)?,
                5..=6 => self.save(&harness)?,
                _ => false,
            };
            if !lives || self.disk.power_is_off() {
                drop(harness);
                harness = self.restart()?;
            }
        }
        self.disk.clear_faults();
        Ok(self.tally)
    }

    /// Opens what a kill or a power cut has left; another may follow during the start.
    fn restart(&mut self) -> Result<Harness, String> {
        if self.disk.power_is_off() || self.random.once_in(2) {
            self.disk.power_cut();
            self.tally.states += 1;
        }
        self.disk.clear_faults();
        if self.random.once_in(4) {
            self.disk.fail_power_at(1 + self.random.below(20));
        }
        let harness = loop {
            match Harness::try_open(&self.disk, INLINE) {
                Ok(harness) => break harness,
                Err(error) if !self.disk.power_is_off() => return Err(format!("nothing was wrong, but: {error}")),
                Err(_) => {
                    self.disk.power_cut();
                    self.tally.states += 1;
                    self.tally.cuts_in_recovery += 1;
                }
            }
        };
        self.disk.clear_faults();
        if !self.read(&harness.log)? {
            return Err("the power is on, and the log can't be read".into());
        }
        match self.acknowledged.iter().find(|(key, position)| self.found.get(key) != Some(position)) {
            Some((key, position)) => Err(format!("{key} was acknowledged at {position}, and isn't there")),
            None => Ok(harness),
        }
    }

    /// Some concurrent posts, of keys that may be duplicates; returns whether the process is still running.
    fn post(&mut self, harness: &Harness) -> Result<bool, String> {
        let some = 1 + self.random.below(5);
        let posts: Vec<(usize, u8)> = (0..some)
            .map(|_| (self.random.index(SHARDS), u8::try_from(self.random.below(KEYS)).unwrap_or_default()))
            .collect();
        let checks = self.wrong != Some(Wrong::NoCheck);
        let outcomes = harness.run(async |harness| {
            join_all(posts.iter().map(|(shard, key)| harness.post_with(*shard, *key, payload(*key), checks))).await
        });
        for ((_, key), outcome) in posts.iter().zip(outcomes) {
            match outcome {
                Outcome::New(position) => drop(self.acknowledged.entry(*key).or_insert(position)),
                Outcome::Again(position) => {
                    self.tally.again += 1;
                    let first = *self.acknowledged.entry(*key).or_insert(position);
                    if first != position {
                        return Err(format!("{key} is at {first}, but a duplicate got {position}"));
                    }
                }
                Outcome::OtherBytes => return Err(format!("{key} was resent with the same bytes, and was rejected")),
                Outcome::Failed(_) if self.disk.power_is_off() => return Ok(false),
                Outcome::Failed(error) => return Err(format!("nothing was wrong, but: {error}")),
            }
        }
        self.read(&harness.log)
    }

    /// Saves the ids, and frees the segments that were read; returns whether the process is still running.
    fn save(&mut self, harness: &Harness) -> Result<bool, String> {
        let safe = if self.wrong == Some(Wrong::FreesFirst) {
            Ok(self.read_up_to.to_vec())
        } else {
            harness.log.save_ids(&self.read_up_to)
        };
        let freed = safe.and_then(|safe| {
            let shards = harness.log.shards().iter().zip(self.read_up_to).zip(safe);
            shards.map(|((shard, read), safe)| shard.segments().free_up_to(read.min(safe))).sum::<Result<usize, _>>()
        });
        match freed {
            Ok(freed) => self.tally.freed += freed as u64,
            Err(error) if !self.disk.power_is_off() => return Err(format!("nothing was wrong, but: {error}")),
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the new part of the log; returns whether the process is still running.
    fn read(&mut self, log: &EventLog) -> Result<bool, String> {
        for (shard, read_up_to) in log.shards().iter().zip(&mut self.read_up_to) {
            let mut lane = shard.reader(*read_up_to);
            loop {
                let chunk = match lane.read() {
                    Ok(Some(chunk)) => chunk,
                    Ok(None) => break,
                    Err(_) if self.disk.power_is_off() => return Ok(false),
                    Err(error) => return Err(format!("nothing was wrong, but: {error}")),
                };
                let LogChunk::Block(block) = chunk else { return Err("a damaged stretch".into()) };
                for (sequence, record) in block.records().filter(|(sequence, _)| *sequence > *read_up_to) {
                    let (key, at) = (record.id.0[0], Position { shard: shard.number(), sequence });
                    let first = *self.found.entry(key).or_insert(at);
                    if first != at {
                        return Err(format!("{key} is at {first} and again at {at}"));
                    }
                    self.tally.unanswered_kept += u64::from(!self.acknowledged.contains_key(&key));
                }
                *read_up_to = block.header().end() - 1;
            }
        }
        Ok(true)
    }
}

/// Always the same bytes under a key; enough that segments end.
fn payload(key: u8) -> &'static str {
    const LONG: &str = match std::str::from_utf8(&[b'7'; 20_000]) {
        Ok(text) => text,
        Err(_) => "",
    };
    &LONG[..1 + 700 * usize::from(key)]
}

/// Does runs until `states` cuts were recovered from; the error names the seed of the run that failed.
fn campaign(first_seed: u64, states: u64, wrong: Option<Wrong>) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for seed in first_seed.. {
        if tally.states >= states {
            break;
        }
        tally.add(Run::new(seed, wrong).go().map_err(|failure| format!("run {seed}: {failure}"))?);
    }
    Ok(tally)
}

fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

#[test]
fn power_cuts_store_nothing_twice() {
    let states = number_of("FOREBAY_POWER_CUT_STATES").unwrap_or(STATES);
    let tally = campaign(number_of("FOREBAY_SEED").unwrap_or(1), states, None);
    let tally = tally.unwrap_or_else(|failure| panic!("{failure}"));
    println!("power cuts with resent posts: {tally:?}");
    if states >= STATES {
        tally.check();
    }
}

#[test]
fn without_the_check_the_campaign_fails() {
    for wrong in [Wrong::NoCheck, Wrong::FreesFirst] {
        let failure = campaign(1, STATES, Some(wrong)).expect_err("it goes unnoticed");
        println!("{wrong:?} is noticed: {failure}");
    }
}
