//! The aggregates of a case, folded as in a server with one shard whose clock is the case's: no disk, and nothing waits.

use std::collections::BTreeMap;

use aggregate::{AggregateRules, Fold, WindowResult};
use event::{Origin, Position, TypeName};

/// The id of the data directory that a case's events have.
const ORIGIN: Origin = Origin([0; 16]);
const SHARD: u16 = 0;
/// How often a server checks whether the clock ends windows: here at each full second.
const LOOK_EVERY: i64 = 1_000_000;
/// The most results that are written at a time.
const RESULTS_MAX: usize = 1_000;

/// The aggregates of a type, for the events of a case.
pub(super) struct Folding {
    folds: Vec<Folded>,
    /// The time of the clock.
    clock: Option<i64>,
}

struct Folded {
    name: String,
    fold: Fold,
    /// The last position that was assigned.
    sequence: u64,
    /// A result a line.
    results: String,
}

impl Folding {
    /// The aggregates of `of`, before any event.
    pub(super) fn new<'r>(of: &str, rules: impl Iterator<Item = &'r AggregateRules>) -> Self {
        let folded = |rules: &AggregateRules| Folded {
            name: own_name(of, rules.name()).to_owned(),
            fold: Fold::new(rules.clone(), ORIGIN, &[SHARD]),
            sequence: 0,
            results: String::new(),
        };
        Self { folds: rules.map(folded).collect(), clock: None }
    }

    /// Advances the clock to this time, or sets it back. A repeated time ends nothing: no watermark falls.
    pub(super) fn run_to(&mut self, time: i64) {
        let from = self.clock.replace(time).unwrap_or(time);
        self.folds.iter_mut().for_each(|folded| folded.run(from, time));
    }

    /// An event as it is stored.
    pub(super) fn take(&mut self, received: i64, payload: &str) {
        for folded in &mut self.folds {
            let (position, time) = (folded.next(), folded.fold.rules().time_of(payload));
            folded.fold.take(position, time, received, payload);
            folded.gather();
        }
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.folds.iter().map(|folded| folded.name.as_str())
    }

    /// The results of each, by its name.
    pub(super) fn finish(self) -> BTreeMap<String, String> {
        self.folds.into_iter().map(|folded| (folded.name, folded.results)).collect()
    }
}

/// The name of an aggregate in the table of its type.
fn own_name<'n>(of: &str, name: &'n TypeName) -> &'n str {
    name.as_str().strip_prefix(of).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name.as_str())
}

impl Folded {
    fn next(&mut self) -> Position {
        self.sequence += 1;
        Position { shard: SHARD, sequence: self.sequence }
    }

    /// Visits each full second after `from` and up to `to`. The longer nothing changes, the more seconds there are to visit, so seconds
    /// without work are skipped.
    fn run(&mut self, from: i64, to: i64) {
        let (mut next, last) = (from.div_euclid(LOOK_EVERY) + 1, to.div_euclid(LOOK_EVERY));
        while self.fold.windows() > 0
            && let Some(look) = first(next, last, |look| !self.fold.ticks(look * LOOK_EVERY).is_empty())
        {
            for (_, time) in self.fold.ticks(look * LOOK_EVERY) {
                let position = self.next();
                self.fold.tick(position, time);
            }
            self.gather();
            next = look + 1;
        }
    }

    fn gather(&mut self) {
        loop {
            let results = self.fold.results(RESULTS_MAX);
            if results.is_empty() {
                return;
            }
            for result in &results {
                self.results += &line(result);
                self.results.push('\n');
            }
        }
    }
}

/// The first of these numbers for which `is_true`, if it also holds for all numbers after it.
fn first(mut least: i64, most: i64, is_true: impl Fn(i64) -> bool) -> Option<i64> {
    if least > most || !is_true(most) {
        return None;
    }
    let mut greatest = most;
    while least < greatest {
        let middle = least + (greatest - least) / 2;
        if is_true(middle) {
            greatest = middle;
        } else {
            least = middle + 1;
        }
    }
    Some(least)
}

/// A result without the members that no case can foresee: `origin`, which differs in each data directory, and `state`, which has the measures
/// in a form for machines.
fn line(result: &WindowResult) -> String {
    let mut payload = result.payload.clone();
    // It is the last member but one, after all measures.
    let origin = format!(",\"origin\":\"{ORIGIN}\"");
    if let Some(at) = payload.rfind(&origin) {
        let before = payload[..at].rfind(STATE).filter(|state| is_state(&payload[state + STATE.len()..at]));
        payload.replace_range(before.unwrap_or(at)..at + origin.len(), "");
    }
    payload
}

const STATE: &str = ",\"state\":\"";

/// Whether these are the digits of a state and its closing quote: `origin` follows.
fn is_state(text: &str) -> bool {
    text.strip_suffix('"').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aggregate::Definition;

    use super::*;

    const SECOND: i64 = 1_000_000;

    fn rules(window: &str, change: impl FnOnce(&mut Definition)) -> AggregateRules {
        let mut definition = Definition {
            window: window.into(),
            measures: vec![("n".into(), "count".into()), ("v".into(), "last:/v".into())],
            lateness: Some(Duration::ZERO),
            ..Definition::default()
        };
        change(&mut definition);
        AggregateRules::new(TypeName::new("a.b").unwrap(), &definition).unwrap()
    }

    fn results(rules: &AggregateRules, events: &[(i64, &str)], until: i64) -> Vec<String> {
        let mut folding = Folding::new("a", [rules].into_iter());
        for (received, payload) in events {
            folding.run_to(received * SECOND);
            folding.take(received * SECOND, payload);
        }
        folding.run_to(until * SECOND);
        folding.finish()["b"].lines().map(str::to_owned).collect()
    }

    #[test]
    fn clock_ends_windows_after_the_idle_timeout() {
        let rules = rules("10s", |definition| definition.quiet = Some(Duration::from_mins(1)));
        let events = [(5, "{\"v\":1}")];
        assert_eq!(results(&rules, &events, 64), [""; 0]);
        let found = results(&rules, &events, 65);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(r#""group":{},"n":1,"v":1,"revision":1}"#), "{found:?}");
    }

    #[test]
    fn year_of_silence_costs_no_work() {
        let rules = rules("100ms", |definition| definition.quiet = Some(Duration::from_secs(1)));
        let events: Vec<_> = (0..50).map(|n| (n * 400 * 24 * 3600, "{}")).collect();
        assert_eq!(results(&rules, &events, 60 * 400 * 24 * 3600).len(), 50);
    }

    #[test]
    fn result_lines_omit_only_origin_and_state() {
        let rules = rules("10s", |definition| definition.state = true);
        let value = format!(r#"{{"v":{{"a":1,"state":"00","origin":"{ORIGIN}","revision":3}}}}"#);
        let found = results(&rules, &[(5, value.as_str())], 1000);
        let measures = format!(r#""v":{{"a":1,"state":"00","origin":"{ORIGIN}","revision":3}},"revision":1}}"#);
        assert!(found[0].ends_with(&measures), "{found:?}");
    }
}
