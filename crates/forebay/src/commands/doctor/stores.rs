//! Checks of stores: each is asked for its connection, version, clock, rights and settings.

use std::time::Duration;

use config::SinkConfig;
use sink::{Examination, SinkError};
use tokio::time::timeout;

use super::check::Check;

const SINK: &str = "sink";
const CLOCK: &str = "clock";
/// A store that takes longer to answer doesn't work.
const LIMIT: Duration = Duration::from_secs(15);
/// Connections that don't close in time are dropped.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// Clocks that differ by so many seconds are reported.
const CLOCK_WARNING: f64 = 5.0;
/// With this difference, tokens and signatures fail, and times of events are wrong.
const CLOCK_PROBLEM: f64 = 60.0;

/// Examines a sink's store.
pub(super) async fn checks(name: String, config: SinkConfig, may_write: bool) -> Vec<Check> {
    let sink = config.build();
    let looked = timeout(LIMIT, sink.examine(may_write)).await;
    // The process ends soon.
    let _ = timeout(CLOSE_MAX, sink.close()).await;
    let checks = match looked {
        Ok(Ok(found)) => of_found(found),
        Ok(Err(error)) => vec![of_error(&name, error)],
        Err(_) => {
            let seen = format!("no answer within {} s", LIMIT.as_secs());
            vec![Check::problem(SINK, seen, format!("Check the store, the network and the address in [sinks.{name}]"))]
        }
    };
    checks.into_iter().map(|check| check.about(&name)).collect()
}

fn of_error(name: &str, error: SinkError) -> Check {
    let remedy = match error {
        SinkError::Unavailable(_) => format!("Start the store, or correct its address in [sinks.{name}]"),
        SinkError::Misconfigured(_) | SinkError::OtherStore(_) => {
            format!("Change the store or [sinks.{name}] as the message says")
        }
    };
    Check::problem(SINK, error.to_string(), remedy)
}

fn of_found(found: Examination) -> Vec<Check> {
    let Examination { seen, clock_ahead, warnings, problems, unchecked, .. } = found;
    let mut checks = Vec::new();
    if !seen.is_empty() {
        checks.push(Check::ok(SINK, seen.join("; ")));
    }
    checks.extend(problems.into_iter().map(|advice| Check::problem(SINK, advice.seen, advice.remedy)));
    checks.extend(warnings.into_iter().map(|advice| Check::warning(SINK, advice.seen, advice.remedy)));
    checks.extend(unchecked.into_iter().map(|why| Check::skipped(SINK, why)));
    checks.extend(clock_ahead.map(clock));
    checks
}

fn clock(ahead: f64) -> Check {
    let direction = if ahead > 0.0 { "fast" } else { "slow" };
    let seen = format!("the store's clock is {:.0} s {direction}, compared with this machine's", ahead.abs());
    let remedy = "Set both clocks by a time service, such as chrony or systemd-timesyncd";
    match ahead.abs() {
        ..CLOCK_WARNING => Check::ok(CLOCK, "the store's and this machine's differ by less than 5 s"),
        ..CLOCK_PROBLEM => Check::warning(CLOCK, seen, remedy),
        _ => Check::problem(CLOCK, seen, remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn clocks_are_compared_both_ways() {
        for (ahead, state) in [
            (0.4, State::Ok),
            (-4.9, State::Ok),
            (6.0, State::Warning),
            (-300.0, State::Problem),
            (300.0, State::Problem),
        ] {
            assert_eq!(clock(ahead).state, state, "{ahead}");
        }
        assert_eq!(clock(-300.2).seen, "the store's clock is 300 s slow, compared with this machine's");
        assert_eq!(clock(6.0).seen, "the store's clock is 6 s fast, compared with this machine's");
    }
}
