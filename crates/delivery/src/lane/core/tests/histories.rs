//! Random histories of a lane and its store. In each of them:
//!
//! * No cursor passes a record that hasn't ended.
//! * Each record ends once: the store has it, it is a dead letter, or its route does not include the store. Deferred
//!   events end later.
//! * A record whose fault isn't certain becomes a dead letter only if the store rejected it twice while it accepted others, so none does while
//!   the store accepts nothing.
//! * Nothing is sent after the store has said that it holds another claim, and nothing after a failed call before the store was asked.
//! * A lane that takes its position again sends what follows the store's cursor.
//! * If the store works in the end, the lane passes the whole log.
//!
//! `PROPTEST_CASES` sets how many histories are played, at least 20,000.

use std::collections::BTreeMap;

use super::mutants::Bug;
use super::world::World;

const HISTORIES: u64 = 20_000;

fn histories() -> u64 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(0).max(HISTORIES)
}

/// The history of a seed, for a message.
fn trace(seed: u64, bug: Option<Bug>) -> String {
    let mut world = World::new(seed, bug);
    world.trace = Some(Vec::new());
    let _ = world.play();
    let trace = world.trace.take().unwrap_or_default().join("\n");
    format!("{trace}\n{world:?}")
}

#[test]
fn every_history_ends_each_record_once() {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..histories() {
        let mut world = World::new(seed, None);
        if let Err(violation) = world.play() {
            panic!("history {seed}: {violation}\n{}", trace(seed, None));
        }
        world.counts.0.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    let expected = [
        "added later",
        "advanced",
        "dead after a resend",
        "dead letter",
        "grown",
        "moved",
        "newest accepted",
        "newest not accepted",
        "deferred",
        "without room",
    ];
    assert!(expected.iter().all(|what| counts.get(what).is_some_and(|count| *count > 10)), "{counts:?}");
}

#[test]
fn every_planted_error_is_found() {
    for bug in Bug::ALL {
        let found = (0..HISTORIES).find_map(|seed| World::new(seed, Some(bug)).play().err());
        assert!(found.is_some(), "no history finds {bug:?}");
    }
}
