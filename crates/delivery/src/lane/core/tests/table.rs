//! Each result of a step in each state, against tables of what comes next. Every case fits exactly one row, and every row has a case.

use std::collections::BTreeSet;
use std::time::Duration;

use sink::{Claim, Held, RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome};

use super::super::{AfterWait, BatchProgress, Happened, Newest, Next, Wait};
use super::{ALONE_MAX, CLAIM, batch, policy, sequences};

/// Now, in all cases: long after the lane began.
const NOW: Duration = Duration::from_secs(1000);

/// The record that is judged, another one that may be sent with it, and one that isn't sent with them.
const RECORD: u64 = 11;
const OTHER: u64 = 12;
const UNSENT: u64 = 13;
/// The store holds the lane's events up to here.
const STORE_AT: u64 = 10;

/// The store's answer to one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Accepted,
    Refused,
    Retry(RetryScope),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Committed,
    /// Only this record is rejected, and none is stored.
    Rejected,
    RejectedNone,
    /// The second reply is for the other record, if that is sent too.
    Partial(Reply, Option<Reply>),
    Unavailable,
    Misconfigured,
    OtherStore,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    fenced: bool,
    has_accepted: bool,
    newer_accepted: bool,
    /// The batch has a record that isn't sent.
    is_sample: bool,
    is_suspect: bool,
    /// The store has accepted others long enough ago for a rejection of a record alone to count.
    is_alone: bool,
    /// The store has rejected records for `alone_max`.
    is_old: bool,
    has_room: bool,
    answer: Answer,
}

impl Case {
    fn other(&self) -> Option<Reply> {
        if let Answer::Partial(_, other) = self.answer { other } else { None }
    }

    fn is(&self, reply: Reply) -> bool {
        matches!(self.answer, Answer::Partial(found, _) if found == reply)
    }

    fn has_accepted_any(&self) -> bool {
        self.has_accepted || matches!(self.answer, Answer::Partial(Reply::Accepted, _)) || self.accepts_other()
    }

    fn accepts_other(&self) -> bool {
        self.other() == Some(Reply::Accepted)
    }

    fn is_error(&self) -> bool {
        matches!(self.answer, Answer::Unavailable | Answer::Misconfigured | Answer::OtherStore)
    }

    fn progress(&self) -> BatchProgress {
        let records = [RECORD, OTHER, UNSENT];
        let open = records.into_iter().filter(|at| match *at {
            OTHER => self.is_other_sent(),
            UNSENT => self.is_sample,
            _ => true,
        });
        let mut progress = BatchProgress::new(policy(self.fenced), batch(RECORD, 20, open), STORE_AT);
        (progress.has_accepted, progress.newer_accepted) = (self.has_accepted, self.newer_accepted);
        progress.sends_sample = self.is_sample;
        progress.rejections.suspects = BTreeSet::from_iter(self.is_suspect.then_some(RECORD));
        let seconds = |is_long: bool, long: Duration| Some(NOW - if is_long { long } else { long / 2 });
        progress.rejections.accepted_at = seconds(self.is_alone, Duration::from_secs(5));
        progress.rejections.since = seconds(self.is_old, ALONE_MAX);
        progress
    }

    fn is_other_sent(&self) -> bool {
        !matches!(self.answer, Answer::Partial(_, None))
    }

    fn happened(&self) -> Happened {
        let sent = [Some(RECORD), self.is_other_sent().then_some(OTHER)];
        let part = batch(RECORD, 20, sent.into_iter().flatten());
        let answer = match self.answer {
            Answer::Committed => Ok(WriteOutcome::Committed),
            Answer::Rejected => Ok(WriteOutcome::Rejected { refused: vec![rejected(0)] }),
            Answer::RejectedNone => Ok(WriteOutcome::Rejected { refused: Vec::new() }),
            Answer::Partial(reply, other) => {
                let (mut refused, mut retry) = (Vec::new(), Vec::new());
                for (index, reply) in [Some(reply), other].into_iter().flatten().enumerate() {
                    match reply {
                        Reply::Accepted => {}
                        Reply::Refused => refused.push(rejected(index)),
                        Reply::Retry(scope) => retry.push(Retry { index, reason: "later".into(), scope }),
                    }
                }
                Ok(WriteOutcome::Partial { refused, retry })
            }
            Answer::Unavailable => Err(SinkError::Unavailable("down".into())),
            Answer::Misconfigured => Err(SinkError::Misconfigured("wrong".into())),
            Answer::OtherStore => Err(SinkError::OtherStore(sink::Mark([3; 16]))),
        };
        Happened::Answered(part, answer)
    }
}

fn rejected(index: usize) -> RejectedRecord {
    RejectedRecord { index, reason: "no".into() }
}

const BOTH: [bool; 2] = [false, true];

fn answers() -> Vec<Answer> {
    let replies = [
        Reply::Accepted,
        Reply::Refused,
        Reply::Retry(RetryScope::Unclear),
        Reply::Retry(RetryScope::Record),
        Reply::Retry(RetryScope::Store),
    ];
    let others = || std::iter::once(None).chain(replies.map(Some));
    let partial = replies.into_iter().flat_map(|reply| others().map(move |other| Answer::Partial(reply, other)));
    let whole = [
        Answer::Committed,
        Answer::Rejected,
        Answer::RejectedNone,
        Answer::Unavailable,
        Answer::Misconfigured,
        Answer::OtherStore,
    ];
    whole.into_iter().chain(partial).collect()
}

/// All states that a lane can be in, with all answers.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for bits in 0..256_u32 {
        let is = |bit: u32| bits & (1 << bit) != 0;
        for answer in answers() {
            let case = Case {
                fenced: is(0),
                has_accepted: is(1),
                newer_accepted: is(2),
                is_sample: is(3),
                is_suspect: is(4),
                is_alone: is(5),
                is_old: is(6),
                has_room: is(7),
                answer,
            };
            // An accepted newer event counts as accepted, and the batch is then sent as a whole.
            if !case.newer_accepted || (case.has_accepted && !case.is_sample) {
                cases.push(case);
            }
        }
    }
    cases
}

/// What immediately becomes of the judged record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stored,
    Dead,
    Deferred,
    Open,
}

/// What comes after all records of the answer are dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Advance,
    /// What is left is sent.
    Send,
    Pause,
    PauseForNeighbours,
    Ask {
        needs_later: bool,
    },
}

struct Row<T> {
    is: fn(&Case) -> bool,
    then: T,
}

const UNCLEAR: Reply = Reply::Retry(RetryScope::Unclear);
const PASSING: Reply = Reply::Retry(RetryScope::Record);
const BUSY: Reply = Reply::Retry(RetryScope::Store);

#[rustfmt::skip]
const FATES: [Row<Fate>; 16] = [
    Row { is: |case| case.answer == Answer::Committed, then: Fate::Stored },
    Row { is: |case| case.answer == Answer::Rejected, then: Fate::Dead },
    Row { is: |case| case.answer == Answer::RejectedNone, then: Fate::Open },
    Row { is: Case::is_error, then: Fate::Open },
    Row { is: |case| case.is(Reply::Accepted), then: Fate::Stored },
    Row { is: |case| case.is(Reply::Refused), then: Fate::Dead },
    Row { is: |case| case.is(BUSY), then: Fate::Open },
    // The first rejection proves nothing.
    Row { is: |case| case.is(UNCLEAR) && !case.is_suspect, then: Fate::Open },
    // The second one does if the store accepts others,
    Row { is: |case| case.is(UNCLEAR) && case.is_suspect && (case.accepts_other() || case.newer_accepted), then: Fate::Dead },
    // not if the store rejects them too,
    Row { is: |case| case.is(UNCLEAR) && case.is_suspect && !case.newer_accepted && case.is_other_sent() && !case.accepts_other(), then: Fate::Open },
    // and after a while if there are no others.
    Row { is: |case| case.is(UNCLEAR) && case.is_suspect && !case.newer_accepted && !case.is_other_sent() && case.is_alone, then: Fate::Dead },
    Row { is: |case| case.is(UNCLEAR) && case.is_suspect && !case.newer_accepted && !case.is_other_sent() && !case.is_alone, then: Fate::Open },
    Row { is: |case| case.is(PASSING) && !case.has_accepted_any(), then: Fate::Open },
    Row { is: |case| case.is(PASSING) && case.has_accepted_any() && !case.fenced && case.has_room, then: Fate::Deferred },
    Row { is: |case| case.is(PASSING) && case.has_accepted_any() && (case.fenced || !case.has_room) && !case.is_old, then: Fate::Open },
    Row { is: |case| case.is(PASSING) && case.has_accepted_any() && (case.fenced || !case.has_room) && case.is_old, then: Fate::Dead },
];

/// Whether the other record stays in the batch. It is never a suspect.
fn keeps_other(case: &Case) -> bool {
    match case.other() {
        None | Some(Reply::Accepted | Reply::Refused) => false,
        Some(Reply::Retry(RetryScope::Unclear | RetryScope::Store)) => true,
        Some(Reply::Retry(RetryScope::Record)) => {
            fate(&Case { answer: Answer::Partial(PASSING, None), ..with_accepted(case) }) == Fate::Open
        }
    }
}

fn with_accepted(case: &Case) -> Case {
    Case { has_accepted: case.has_accepted_any(), has_room: case.has_room, ..*case }
}

/// The scopes of the records that stay in the batch.
fn kept(case: &Case) -> Vec<RetryScope> {
    let Answer::Partial(reply, other) = case.answer else { return Vec::new() };
    let keeps = [(Some(reply), fate(case) == Fate::Open), (other, keeps_other(case))];
    keeps
        .into_iter()
        .filter_map(|(reply, is_kept)| match reply {
            Some(Reply::Retry(scope)) if is_kept => Some(scope),
            _ => None,
        })
        .collect()
}

fn is_partial(case: &Case) -> bool {
    matches!(case.answer, Answer::Partial(..))
}

fn needs_neighbours(case: &Case) -> bool {
    let kept = kept(case);
    (kept.contains(&RetryScope::Unclear) || !case.has_accepted_any()) && !kept.contains(&RetryScope::Store)
}

#[rustfmt::skip]
const THENS: [Row<Then>; 11] = [
    Row { is: |case| case.answer == Answer::Committed && !case.is_sample, then: Then::Advance },
    Row { is: |case| case.answer == Answer::Committed && case.is_sample, then: Then::Send },
    Row { is: |case| case.answer == Answer::Rejected, then: Then::Send },
    Row { is: |case| case.answer == Answer::RejectedNone, then: Then::Pause },
    Row { is: |case| case.answer == Answer::Misconfigured && case.fenced, then: Then::Ask { needs_later: true } },
    Row { is: |case| case.answer == Answer::Misconfigured && !case.fenced, then: Then::Ask { needs_later: false } },
    Row { is: |case| case.is_error() && case.answer != Answer::Misconfigured, then: Then::Ask { needs_later: false } },
    Row { is: |case| is_partial(case) && kept(case).is_empty() && !case.is_sample, then: Then::Advance },
    Row { is: |case| is_partial(case) && kept(case).is_empty() && case.is_sample, then: Then::Send },
    Row { is: |case| is_partial(case) && !kept(case).is_empty() && needs_neighbours(case), then: Then::PauseForNeighbours },
    Row { is: |case| is_partial(case) && !kept(case).is_empty() && !needs_neighbours(case), then: Then::Pause },
];

fn fate(case: &Case) -> Fate {
    FATES.iter().find(|row| (row.is)(case)).map(|row| row.then).unwrap()
}

/// What the core does in a case.
fn decided(case: &Case) -> (Fate, Then) {
    let mut progress = case.progress();
    let mut next = progress.step(case.happened(), NOW);
    let mut fate = None;
    loop {
        next = match next {
            Next::Defer(judgement) => {
                let count = if case.has_room { judgement.deferred.len() } else { 0 };
                if case.has_room && judgement.deferred.iter().any(|retry| retry.index == 0) {
                    assert_eq!(fate.replace(Fate::Deferred), None);
                }
                progress.step(Happened::Deferred(judgement, count), NOW)
            }
            Next::DeadLetter(judgement) => {
                assert!(!judgement.rejected.is_empty(), "{case:?}");
                if judgement.rejected.iter().any(|rejected| rejected.index == 0) {
                    assert_eq!(fate.replace(Fate::Dead), None, "{case:?}");
                }
                progress.step(Happened::DeadLettered(judgement), NOW)
            }
            Next::Send(part) => {
                assert_eq!(sequences(&part), sequences(&progress.open), "a batch of few records is its own sample");
                return (fate.unwrap_or_else(|| left_over(&progress)), Then::Send);
            }
            Next::Advance => return (fate.unwrap_or(Fate::Stored), Then::Advance),
            Next::Wait(wait) => return (fate.unwrap_or_else(|| left_over(&progress)), pause(&wait)),
            other => panic!("{case:?}: {other:?}"),
        };
    }
}

fn left_over(progress: &BatchProgress) -> Fate {
    if sequences(&progress.open).contains(&RECORD) { Fate::Open } else { Fate::Stored }
}

fn pause(wait: &Wait) -> Then {
    match wait.then {
        AfterWait::Send => Then::Pause,
        AfterWait::SendWithNeighbours => Then::PauseForNeighbours,
        AfterWait::AskStore { needs_later } => Then::Ask { needs_later },
    }
}

#[test]
fn answers_are_decided_as_the_table_says() {
    let cases = cases();
    for case in &cases {
        assert_eq!(FATES.iter().filter(|row| (row.is)(case)).count(), 1, "rows for the record of {case:?}");
        assert_eq!(THENS.iter().filter(|row| (row.is)(case)).count(), 1, "rows for what follows {case:?}");
        let then = THENS.iter().find(|row| (row.is)(case)).unwrap().then;
        assert_eq!(decided(case), (fate(case), then), "{case:?}");
    }
    assert!(FATES.iter().all(|row| cases.iter().any(row.is)), "a row has no case");
    assert!(THENS.iter().all(|row| cases.iter().any(row.is)), "a row has no case");
}

#[test]
fn pause_is_an_outage_while_nothing_is_accepted() {
    for case in cases() {
        let mut progress = case.progress();
        let mut next = progress.step(case.happened(), NOW);
        while !matches!(next, Next::Wait(_) | Next::Advance | Next::Send(_)) {
            next = match next {
                Next::Defer(judgement) => progress.step(Happened::Deferred(judgement, 0), NOW),
                Next::DeadLetter(judgement) => progress.step(Happened::DeadLettered(judgement), NOW),
                other => panic!("{other:?}"),
            };
        }
        if let Next::Wait(wait) = next {
            assert_eq!(wait.is_outage(), case.is_error() || pause(&wait) == Then::PauseForNeighbours, "{case:?}");
        }
        let accepts_others = is_partial(&case)
            && (case.newer_accepted || case.accepts_other() || (case.is(Reply::Accepted) && !case.is_suspect));
        assert_eq!(progress.accepts_others(), accepts_others, "{case:?}");
    }
}

#[test]
fn pause_is_followed_by_its_purpose() {
    let thens = [
        AfterWait::Send,
        AfterWait::AskStore { needs_later: false },
        AfterWait::AskStore { needs_later: true },
        AfterWait::SendWithNeighbours,
    ];
    for (then, fenced, is_full, has_read_all) in
        thens.into_iter().flat_map(|then| (0..8).map(move |bits| (then, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0)))
    {
        let wait = Wait { reason: "r".into(), logged: None, then };
        let early = wait.ends_after_event(is_full, has_read_all).map(|after| after.as_millis());
        let mut progress = BatchProgress::new(policy(fenced), batch(11, 20, [11]), STORE_AT);
        let next = progress.step(Happened::Waited { wait, is_full }, NOW);
        let expected = match then {
            AfterWait::Send => (None, matches!(next, Next::Send(_))),
            AfterWait::AskStore { needs_later: wanted } => (
                (wanted && has_read_all).then_some(500),
                matches!(next, Next::AskStore { needs_later } if needs_later == wanted),
            ),
            AfterWait::SendWithNeighbours if is_full => (None, matches!(next, Next::TryNewest)),
            AfterWait::SendWithNeighbours if fenced => (Some(1000), matches!(next, Next::Send(_))),
            AfterWait::SendWithNeighbours => (Some(1000), matches!(next, Next::Grow)),
        };
        assert_eq!((early, true), expected, "{then:?}, {fenced}, {is_full}, {has_read_all}: {next:?}");
    }
}

/// The batch ends at position 20, and the journal is durable up to 25.
#[test]
fn store_cursor_decides_whether_a_failed_call_counted() {
    let other = Claim([2; 16]);
    let claims = [vec![CLAIM], vec![other], vec![], vec![CLAIM, other]];
    let places: Vec<Option<u64>> = std::iter::once(None).chain([0, 9, 10, 11, 19, 20, 21, 25, 26].map(Some)).collect();
    for (fenced, needs_later, claims, place) in BOTH.into_iter().flat_map(|fenced| {
        let (places, claims) = (places.clone(), claims.clone());
        BOTH.into_iter().flat_map(move |needs_later| {
            let places = places.clone();
            claims.clone().into_iter().flat_map(move |claims| {
                places.clone().into_iter().map(move |place| (fenced, needs_later, claims.clone(), place))
            })
        })
    }) {
        let mut progress = BatchProgress::new(policy(fenced), batch(11, 20, [11, 12]), STORE_AT);
        let held = place.map(|position| Held { position, claims: claims.clone() });
        let next = progress.step(Happened::Asked { needs_later, held, durable: 25 }, NOW);
        let is_unchanged = matches!(
            (&next, needs_later, fenced),
            (Next::AddLater, true, _) | (Next::Send(_), false, true) | (Next::Grow, false, false)
        );
        let is_expected = match place {
            None => is_unchanged,
            Some(_) if claims != [CLAIM] => matches!(next, Next::Moved),
            Some(position @ 20..=25) => matches!(next, Next::Advance) && progress.store_at() == position,
            Some(STORE_AT) => is_unchanged,
            Some(_) => matches!(next, Next::Moved),
        };
        assert!(is_expected, "{place:?}, {claims:?}, {needs_later}, {fenced}: {next:?}");
    }
}

#[test]
fn newest_events_show_whether_the_records_are_at_fault() {
    for newest in [Newest::Missing, Newest::Accepted, Newest::NotAccepted] {
        let mut progress = BatchProgress::new(policy(false), batch(1, 100, 1..=100), 0);
        progress.sends_sample = true;
        progress.rejections.suspects = BTreeSet::from([7]);
        let next = progress.step(Happened::TriedNewest(newest), NOW);
        let is_accepted = newest == Newest::Accepted;
        assert_eq!((progress.has_accepted, progress.newer_accepted), (is_accepted, is_accepted));
        assert_eq!(progress.rejections.suspects.is_empty(), newest == Newest::NotAccepted);
        let Next::Send(part) = next else { panic!("{next:?}") };
        assert_eq!(part.len(), if is_accepted { 100 } else { 64 });
    }
}

#[test]
fn grown_batch_keeps_open_records_and_adds_later_ones() {
    let mut progress = BatchProgress::new(policy(false), batch(1, 9, [2, 5, 9]), 0);
    let next = progress.step(Happened::Grown(batch(1, 14, [2, 3, 5, 8, 9, 10, 14])), NOW);
    let Next::Send(part) = next else { panic!("{next:?}") };
    assert_eq!((sequences(&part), part.last()), (vec![2, 5, 9, 10, 14], 14));
}

#[test]
fn a_sample_has_both_ends_of_the_batch() {
    let mut progress = BatchProgress::new(policy(false), batch(1, 100, 1..=100), 0);
    progress.sends_sample = true;
    let Next::Send(part) = progress.send() else { panic!() };
    assert_eq!(sequences(&part), (1..=32).chain(69..=100).collect::<Vec<_>>());
}
