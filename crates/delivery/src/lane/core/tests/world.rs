//! A world around the core: a log, a model of a store, and a driver that does what the core says and checks that it may.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use random::Random;
use sink::{Batch, Claim, Held, RetryScope, SinkError, WriteOutcome};

use super::super::{Happened, Judgement, Newest, Next, Resent, Wait, dead_after_resend, left};
use super::mutants::{Bug, Core, resent};
use super::store::{Mode, ModelStore, Nature};
use super::{ALONE_MAX, CLAIM, batch, policy, sequences};

/// The claim of a process that takes the lane over.
const OTHER_CLAIM: Claim = Claim([2; 16]);
/// The documented exception to the rule that a record needs two rejections while the store accepts others: it was sent alone for so long.
const ALONE: Duration = Duration::from_secs(5);
/// From this step on the store works, and no other process takes the lane over.
const HEALTHY_FROM: u32 = 80;

/// How often something happened, so a test sees that it does.
#[derive(Debug, Default)]
pub(super) struct Counts(pub(super) BTreeMap<&'static str, u64>);

impl Counts {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// The violation of an invariant.
pub(super) type Violation = String;

/// Why a session ends.
enum Exit {
    Done,
    Moved,
}

/// What the store's answers to one batch prove, worked out from the store's side.
#[derive(Debug, Default)]
struct Evidence {
    /// Records that the store rejected once while it accepted others.
    suspects: BTreeSet<u64>,
    accepted_at: Option<Duration>,
    newest_accepted: bool,
    has_accepted: bool,
    rejected_since: Option<Duration>,
    /// Of the last answer: the records that may become dead letters, and those that may be deferred.
    dead: BTreeSet<u64>,
    deferred: BTreeSet<u64>,
}

#[derive(Debug)]
pub(super) struct World {
    random: Random,
    now: Duration,
    steps: u32,
    log: Vec<Nature>,
    durable: u64,
    store: ModelStore,
    cursor: u64,
    /// Records that the store has lost, and the lane hasn't noticed yet.
    lost: BTreeSet<u64>,
    dead: BTreeSet<u64>,
    /// Events that are deferred, and since when the store has rejected them without an outage.
    deferred: BTreeMap<u64, Duration>,
    room: usize,
    batch_max: usize,
    are_apart: bool,
    evidence: Evidence,
    /// A call to a transactional store failed, and the store wasn't asked since.
    must_ask: bool,
    /// The store has said that it holds another claim.
    has_lost_claim: bool,
    bug: Option<Bug>,
    pub(super) counts: Counts,
    pub(super) trace: Option<Vec<String>>,
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut random = Random::stream(20_261_126, seed);
        let fenced = random.once_in(3);
        // Some batches are larger than a sample.
        let is_large = random.once_in(20);
        let length = if is_large { 70 + random.index(60) } else { 1 + random.index(12) };
        let bad_each = random.pick(&[1, 2, 4, 1000]);
        let mut log: Vec<Nature> = (0..length).map(|_| any_nature(&mut random, fenced, bad_each)).collect();
        // The last events show that the store works.
        log.extend([Nature::Good, Nature::Good]);
        let rejects_batches = random.once_in(3);
        Self {
            now: Duration::ZERO,
            steps: 0,
            durable: 1 + random.below(log.len() as u64),
            log,
            store: ModelStore {
                fenced,
                rejects_batches,
                mode: Mode::Healthy,
                stored: BTreeSet::new(),
                cursor: 0,
                claim: CLAIM,
            },
            cursor: 0,
            lost: BTreeSet::new(),
            dead: BTreeSet::new(),
            deferred: BTreeMap::new(),
            room: random.index(4),
            // A transactional store that accepts no record of a full batch stops its lane: later events can't show what
            // is at fault.
            batch_max: if fenced {
                usize::MAX
            } else if is_large {
                100
            } else {
                1 + random.index(8)
            },
            are_apart: false,
            evidence: Evidence::default(),
            must_ask: false,
            has_lost_claim: false,
            bug,
            counts: Counts::default(),
            trace: None,
            random,
        }
    }

    /// Plays the history to its end.
    pub(super) fn play(&mut self) -> Result<(), Violation> {
        loop {
            match self.session()? {
                Exit::Done => break,
                Exit::Moved => {
                    self.counts.add("moved");
                    if self.store.claim != CLAIM && self.random.once_in(2) {
                        // The lane waits for the operator.
                        return self.check_ended_up_to(self.cursor);
                    }
                }
            }
        }
        self.resend_until_none()?;
        self.check_ended_up_to(self.log.len() as u64)?;
        let ends = |at: &u64| u8::from(self.store.stored.contains(at)) + u8::from(self.dead.contains(at));
        match (1..=self.log.len() as u64).find(|at| ends(at) != u8::from(self.is_routed(*at))) {
            Some(at) => Err(format!("record {at} has {} ends", ends(&at))),
            None => Ok(()),
        }
    }

    /// From the lane's claim until it must claim again.
    fn session(&mut self) -> Result<Exit, Violation> {
        (self.store.claim, self.has_lost_claim, self.must_ask) = (CLAIM, false, false);
        self.lost.clear();
        if self.store.fenced {
            self.cursor = self.store.cursor;
            self.check_ended_up_to(self.cursor)?;
        }
        let (fence, mut store_at) = (self.cursor, self.cursor);
        let mut last = self.cursor;
        while self.cursor < self.log.len() as u64 {
            self.step()?;
            last = self.gather(last);
            if last == self.cursor {
                self.pass_time(None);
                continue;
            }
            let records: Vec<u64> = (self.cursor + 1..=last).filter(|at| self.is_sent(*at)).collect();
            if !records.is_empty() || (self.store.fenced && last > fence) {
                self.evidence = Evidence::default();
                let open = batch(self.cursor + 1, last, records);
                match self.write(open, &mut store_at, &mut last)? {
                    Some(exit) => return Ok(exit),
                    None if self.cursor < last => continue,
                    None => {}
                }
            }
            self.cursor = last;
            self.check_ended_up_to(last)?;
            self.counts.add("advanced");
            self.resend()?;
        }
        // A lane without events asks the store from time to time.
        let held = Held::new(self.store.cursor, Some(self.store.claim));
        let has_moved = self.store.fenced && !policy(true).is_held_at(&held, store_at);
        Ok(if has_moved { Exit::Moved } else { Exit::Done })
    }

    /// Obeys the core until the batch has ended, or is to be begun again. Then the cursor shows which.
    fn write(&mut self, open: Batch, store_at: &mut u64, last: &mut u64) -> Result<Option<Exit>, Violation> {
        let first = open.first();
        let mut core = Core::new(policy(self.store.fenced), open, *store_at, self.bug);
        let mut next = core.send();
        loop {
            self.step()?;
            if let Some(trace) = &mut self.trace {
                trace.push(format!("{:?} {:?}: {}", self.now, self.store.mode, shown(&next)));
            }
            if self.has_lost_claim && !matches!(next, Next::Moved) {
                return Err("the lane continues although the store holds another claim".into());
            }
            let happened = match next {
                Next::Send(part) => {
                    let answer = self.send(&part, *store_at)?;
                    Happened::Answered(part, answer)
                }
                Next::Defer(judgement) => {
                    let count = self.defer(&judgement)?;
                    Happened::Deferred(judgement, count)
                }
                Next::DeadLetter(judgement) => {
                    self.write_dead_letters(&judgement)?;
                    Happened::DeadLettered(judgement)
                }
                Next::Wait(wait) => {
                    let is_full = self.is_full(first, *last);
                    self.pass_time(Some((&wait, is_full, *last == self.durable)));
                    Happened::Waited { wait, is_full }
                }
                Next::AskStore { needs_later } => {
                    self.must_ask = false;
                    let held = self.store.fenced.then(|| Held::new(self.store.cursor, Some(self.store.claim)));
                    self.has_lost_claim = held.as_ref().is_some_and(|held| held.claims != [CLAIM]);
                    Happened::Asked { needs_later, held, durable: self.durable }
                }
                Next::Grow => {
                    self.counts.add("grown");
                    *last = self.gather(*last);
                    let all = (first..=*last).filter(|at| self.is_routed(*at));
                    Happened::Grown(batch(first, *last, all))
                }
                Next::TryNewest => Happened::TriedNewest(self.try_newest(*last)?),
                Next::Advance => {
                    *store_at = core.store_at();
                    self.cursor = *last;
                    return Ok(None);
                }
                Next::AddLater => {
                    self.counts.add("added later");
                    return Ok(None);
                }
                Next::Moved => return Ok(Some(Exit::Moved)),
            };
            next = core.step(happened, self.now);
        }
    }

    fn send(&mut self, part: &Batch, floor: u64) -> Result<Result<WriteOutcome, SinkError>, Violation> {
        if self.must_ask {
            return Err("the lane sends after a failed call before it asks what the store holds".into());
        }
        if let Some(at) =
            sequences(part).into_iter().find(|at| self.dead.contains(at) || self.deferred.contains_key(at))
        {
            return Err(format!("record {at} is sent after it ended"));
        }
        let answer = self.store.write(&part.clone().sent_after(floor, 0), &self.log, self.now);
        self.must_ask = answer.is_err() && self.store.fenced;
        self.note_evidence(part, &answer);
        Ok(answer)
    }

    fn note_evidence(&mut self, part: &Batch, answer: &Result<WriteOutcome, SinkError>) {
        let evidence = &mut self.evidence;
        (evidence.dead, evidence.deferred) = (BTreeSet::new(), BTreeSet::new());
        let newest_accepted = std::mem::take(&mut evidence.newest_accepted);
        let at = |index: usize| part.get(index).unwrap().sequence;
        let (refused, retry) = match answer {
            Err(_) => {
                evidence.suspects.clear();
                evidence.rejected_since = None;
                return;
            }
            Ok(WriteOutcome::Committed) => return evidence.has_accepted = true,
            Ok(WriteOutcome::Rejected { refused }) => {
                evidence.newest_accepted = newest_accepted;
                evidence.dead = refused.iter().map(|refused| at(refused.index)).collect();
                return;
            }
            Ok(WriteOutcome::Partial { refused, retry }) => (refused, retry),
        };
        let left = left(refused, retry);
        evidence.has_accepted |= left.len() < part.len();
        let others = || part.records().enumerate().filter(|(_, record)| !evidence.suspects.contains(&record.sequence));
        let accepts_others = newest_accepted || others().any(|(index, _)| !left.contains(&index));
        let only_suspects = others().next().is_none();
        let is_alone = only_suspects && evidence.accepted_at.is_some_and(|at| self.now - at >= ALONE);
        let since = *evidence.rejected_since.get_or_insert(self.now);
        evidence.dead = refused.iter().map(|refused| at(refused.index)).collect();
        let mut suspects = BTreeSet::new();
        for retry in retry {
            let sequence = at(retry.index);
            match retry.scope {
                RetryScope::Unclear if evidence.suspects.contains(&sequence) && (accepts_others || is_alone) => {
                    evidence.dead.insert(sequence);
                }
                RetryScope::Unclear => {
                    suspects.insert(sequence);
                }
                RetryScope::Record if evidence.has_accepted => {
                    evidence.deferred.insert(sequence);
                    if self.now - since >= ALONE_MAX {
                        evidence.dead.insert(sequence);
                    }
                }
                RetryScope::Record | RetryScope::Store => {}
            }
        }
        if accepts_others {
            (evidence.suspects, evidence.accepted_at) = (suspects, Some(self.now));
        } else if !only_suspects {
            evidence.suspects.clear();
        }
    }

    fn defer(&mut self, Judgement { part, deferred, .. }: &Judgement) -> Result<usize, Violation> {
        let count = deferred.len().min(self.room.saturating_sub(self.deferred.len()));
        for retry in &deferred[..count] {
            let at = part.get(retry.index).unwrap().sequence;
            if !self.evidence.deferred.contains(&at) {
                return Err(format!("record {at} is deferred without a reason"));
            }
            self.check_open(at)?;
            self.deferred.insert(at, self.now);
            self.counts.add("deferred");
        }
        if count < deferred.len() {
            self.counts.add("without room");
        }
        Ok(count)
    }

    fn write_dead_letters(&mut self, Judgement { part, rejected, .. }: &Judgement) -> Result<(), Violation> {
        for rejected in rejected {
            let at = part.get(rejected.index).unwrap().sequence;
            if !self.evidence.dead.contains(&at) {
                return Err(format!("record {at} becomes a dead letter without proof that it is at fault"));
            }
            self.check_open(at)?;
            self.dead.insert(at);
            self.counts.add("dead letter");
        }
        Ok(())
    }

    fn try_newest(&mut self, last: u64) -> Result<Newest, Violation> {
        let from = self.durable.saturating_sub(4).max(last);
        let newest: Vec<u64> = (from + 1..=self.durable).filter(|at| self.is_sent(*at)).collect();
        if newest.is_empty() {
            return Ok(Newest::Missing);
        }
        let part = batch(from + 1, self.durable, newest);
        let is_accepted = match self.store.write(&part, &self.log, self.now) {
            Ok(WriteOutcome::Committed) => true,
            Ok(WriteOutcome::Partial { refused, retry }) => refused.len() + retry.len() < part.len(),
            Ok(WriteOutcome::Rejected { .. }) | Err(_) => false,
        };
        self.evidence.newest_accepted = is_accepted;
        self.evidence.has_accepted |= is_accepted;
        if !is_accepted {
            self.evidence.suspects.clear();
        }
        self.counts.add(if is_accepted { "newest accepted" } else { "newest not accepted" });
        Ok(if is_accepted { Newest::Accepted } else { Newest::NotAccepted })
    }

    /// Sends some of the events that are deferred again.
    fn resend(&mut self) -> Result<(), Violation> {
        let count = if self.are_apart { 1 } else { 3 };
        let events: Vec<u64> = self.deferred.keys().copied().filter(|at| *at <= self.cursor).take(count).collect();
        let Some(last) = events.last() else { return Ok(()) };
        let part = batch(1, *last, events.iter().copied());
        // A batch that is rejected as a whole counts as an outage, so the store answers for each event.
        let rejects_batches = std::mem::take(&mut self.store.rejects_batches);
        let answer = self.store.write(&part, &self.log, self.now);
        self.store.rejects_batches = rejects_batches;
        match resent(answer, part.len(), self.bug) {
            Resent::SendApart => self.are_apart = true,
            Resent::Outage => self.deferred.values_mut().for_each(|since| *since = self.now),
            Resent::Accepted { rejected, retry } => {
                self.are_apart = false;
                let left = left(&rejected, &retry);
                for (_, at) in events.iter().enumerate().filter(|(index, _)| !left.contains(index)) {
                    self.deferred.remove(at);
                    if !self.store.stored.contains(at) {
                        return Err(format!("record {at} counts as stored, and isn't"));
                    }
                }
                let rejected_for = |index: usize| Some(self.now - *self.deferred.get(&events[index])?);
                for (index, _) in dead_after_resend(&rejected, &retry, rejected_for, ALONE_MAX) {
                    self.deferred.remove(&events[index]);
                    self.check_open(events[index])?;
                    self.dead.insert(events[index]);
                    self.counts.add("dead after a resend");
                }
            }
        }
        Ok(())
    }

    fn resend_until_none(&mut self) -> Result<(), Violation> {
        while !self.deferred.is_empty() {
            self.step()?;
            self.pass_time(None);
            self.resend()?;
        }
        Ok(())
    }

    /// Counts a step. The store may change how it works.
    fn step(&mut self) -> Result<(), Violation> {
        self.steps += 1;
        if self.steps >= HEALTHY_FROM {
            if self.steps.is_multiple_of(40) && self.cursor < self.log.len() as u64 {
                // Later events show what is at fault.
                self.log.push(Nature::Good);
            }
            (self.store.mode, self.durable) = (Mode::Healthy, self.log.len() as u64);
            return if self.steps < HEALTHY_FROM + 1000 { Ok(()) } else { Err("the lane never ends".into()) };
        }
        if self.random.once_in(4) {
            self.store.mode = any_mode(&mut self.random);
        }
        if self.store.fenced && self.random.once_in(40) {
            self.store.claim = OTHER_CLAIM;
        }
        if self.store.fenced && self.random.once_in(40) {
            let cursor = self.random.below(self.store.cursor + 1);
            self.lost.extend(self.store.lose_from(cursor));
        }
        Ok(())
    }

    /// Passes the time of a pause, in which events may arrive.
    fn pass_time(&mut self, wait: Option<(&Wait, bool, bool)>) {
        let mut pause = Duration::from_millis(self.random.size(15));
        let arrived = (self.log.len() as u64).min(self.durable + self.random.below(4) * self.random.below(2));
        if arrived > self.durable {
            let after = wait.and_then(|(wait, is_full, has_read_all)| wait.ends_after_event(is_full, has_read_all));
            pause = pause.min(after.unwrap_or(Duration::MAX));
            self.durable = arrived;
        }
        self.now += pause;
    }

    /// The last position of the batch, with the events that have arrived and for which it has room.
    fn gather(&self, last: u64) -> u64 {
        let mut to = last;
        while to < self.durable && !self.is_full(self.cursor + 1, to) {
            to += 1;
        }
        to
    }

    fn is_full(&self, first: u64, last: u64) -> bool {
        (first..=last).filter(|at| self.is_routed(*at)).count() >= self.batch_max
    }

    fn is_routed(&self, at: u64) -> bool {
        self.log[usize::try_from(at).unwrap() - 1] != Nature::NotRouted
    }

    /// Whether a new batch has the record.
    fn is_sent(&self, at: u64) -> bool {
        self.is_routed(at) && !self.dead.contains(&at) && !self.deferred.contains_key(&at)
    }

    fn check_open(&self, at: u64) -> Result<(), Violation> {
        let has_ended = self.dead.contains(&at) || self.deferred.contains_key(&at) || self.store.stored.contains(&at);
        if has_ended { Err(format!("record {at} ends twice")) } else { Ok(()) }
    }

    /// No cursor passes a record that hasn't ended.
    fn check_ended_up_to(&self, cursor: u64) -> Result<(), Violation> {
        let is_open = |at: &u64| self.is_sent(*at) && !self.store.stored.contains(at) && !self.lost.contains(at);
        match (1..=cursor).find(is_open) {
            Some(at) => Err(format!("the cursor passes record {at}, which hasn't ended")),
            None => Ok(()),
        }
    }
}

fn shown(next: &Next) -> String {
    match next {
        Next::Send(part) => format!("send {:?} up to {}", sequences(part), part.last()),
        Next::Defer(Judgement { deferred, .. }) => {
            format!("deferred {:?}", deferred.iter().map(|at| at.index).collect::<Vec<_>>())
        }
        Next::DeadLetter(Judgement { rejected, .. }) => {
            format!("dead letters {:?}", rejected.iter().map(|at| at.index).collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

fn any_nature(random: &mut Random, fenced: bool, bad_each: u64) -> Nature {
    if !random.once_in(bad_each) {
        return Nature::Good;
    }
    match random.below(if fenced { 4 } else { 5 }) {
        0 => Nature::NotRouted,
        1 => Nature::Invalid,
        2 => Nature::Odd,
        // A transactional store makes its lane wait for such a record.
        3 => Nature::Passing(Duration::from_millis(random.size(if fenced { 12 } else { 18 }))),
        _ => Nature::Passing(Duration::MAX),
    }
}

fn any_mode(random: &mut Random) -> Mode {
    let scopes = [RetryScope::Unclear, RetryScope::Unclear, RetryScope::Record, RetryScope::Store];
    match random.below(8) {
        0..3 => Mode::Healthy,
        3 => Mode::Unreachable,
        4 => Mode::Misconfigured,
        5 => Mode::LosesAnswers,
        6 => Mode::Rejects(random.pick(&scopes), 0),
        _ => Mode::Rejects(random.pick(&scopes), random.index(3)),
    }
}
