//! Power cuts, over and over: runs of a journal on the simulated disk, each decided by a seed, and a model that
//! knows what must be there after each cut. One *state* is a moment of a run and a cut at that moment.
//!
//! `FOREBAY_POWER_CUT_STATES` sets how many states are checked, `FOREBAY_SEED` the first run's seed. A failure names
//! the seed of its run; set `FOREBAY_SEED` to it to repeat that run first.

mod fault_injector;
mod model;
mod process;
mod run;
mod tally;

use std::panic::{AssertUnwindSafe, catch_unwind};

use run::{PlantedBug, run};
use tally::Tally;

/// The seeds of a campaign's runs count up from its first.
const FIRST_SEED: u64 = 1;
/// States that the ordinary tests check: a few seconds.
#[cfg(not(feature = "mutant-no-checksum"))]
const STATES: u64 = 20_000;
/// States within which each wrong must have been noticed.
const STATES_UNTIL_NOTICED: u64 = 20_000;

/// Does runs until `states` states were checked; the error names the seed of the run that failed.
fn campaign(first_seed: u64, states: u64, wrong: Option<PlantedBug>) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for seed in first_seed.. {
        if tally.states >= states {
            break;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, wrong, &mut tally)));
        let failed = match outcome {
            Ok(Ok(_)) => continue,
            Ok(Err(violation)) => violation.0,
            Err(_) => "a panic, see above".into(),
        };
        let again = "FOREBAY_POWER_CUT_STATES=1 cargo test -p journal --test durability -- power_cuts_lose";
        return Err(format!("run {seed}: {failed}\nonly this run: FOREBAY_SEED={seed} {again}"));
    }
    Ok(tally)
}

#[cfg(not(feature = "mutant-no-checksum"))]
fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

#[cfg(not(feature = "mutant-no-checksum"))]
#[test]
fn power_cuts_lose_nothing_acknowledged() {
    let first_seed = number_of("FOREBAY_SEED").unwrap_or(FIRST_SEED);
    let states = number_of("FOREBAY_POWER_CUT_STATES").unwrap_or(STATES);
    let tally = campaign(first_seed, states, None).unwrap_or_else(|failure| panic!("{failure}"));
    println!("power cuts: seeds from {first_seed}: {tally}");
    if states >= STATES {
        tally.check();
    }
}

#[cfg(not(feature = "mutant-no-checksum"))]
#[test]
fn the_same_seed_gives_the_same_run() {
    let mut traces = Vec::new();
    for seed in [5, 5, 6] {
        traces.push(run(seed, None, &mut Tally::default()).unwrap_or_else(|violation| panic!("{violation:?}")));
    }
    assert_eq!(traces[0], traces[1]);
    assert_ne!(traces[1], traces[2]);
}

#[cfg(not(feature = "mutant-no-checksum"))]
#[test]
fn every_wrong_is_noticed() {
    use PlantedBug::{AnswersFirst, DirectorySyncs, FileSyncs, FreesFirst, UnsyncedState};
    for wrong in [FileSyncs, DirectorySyncs, UnsyncedState, FreesFirst, AnswersFirst] {
        let failure = campaign(FIRST_SEED, STATES_UNTIL_NOTICED, Some(wrong)).expect_err("it goes unnoticed");
        println!("{wrong:?} is noticed: {failure}");
    }
}

/// Run it with `--features mutant-no-checksum`: then the journal believes every byte, and must be found out.
#[cfg(feature = "mutant-no-checksum")]
#[test]
fn checksum_mutant() {
    let failure = campaign(FIRST_SEED, STATES_UNTIL_NOTICED, None).expect_err("a journal without checksums passes");
    println!("no checksums: noticed: {failure}");
}
