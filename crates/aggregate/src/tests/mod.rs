//! Whole folds: cases with a name, and properties over random sequences.

mod cases;
mod properties;
mod reference;

use std::collections::BTreeMap;
use std::time::Duration;

use event::{Origin, Position, TypeName};
use text::rfc3339;

use super::{AggregateRules, Definition, Fold, WindowResult};

const ORIGIN: Origin = Origin([7; 16]);
const SECOND: i64 = 1_000_000;

fn rules(definition: &Definition) -> AggregateRules {
    AggregateRules::new(TypeName::new("access.hits").unwrap(), definition).unwrap()
}

fn definition(window: &str, group_by: &[&str], measures: &[(&str, &str)]) -> Definition {
    Definition {
        window: window.into(),
        group_by: group_by.iter().map(|pointer| (*pointer).to_owned()).collect(),
        measures: measures.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
        lateness: Some(Duration::ZERO),
        ..Definition::default()
    }
}

fn at(shard: u16, sequence: u64) -> Position {
    Position { shard, sequence }
}

/// A time today, as `10:00:00`, or a whole one.
fn time(text: &str) -> i64 {
    let whole = if text.contains('T') { text.to_owned() } else { format!("2026-11-21T{text}Z") };
    rfc3339::parse(&whole).unwrap()
}

/// A fold of one shard, for tests that add single events.
struct Hand {
    fold: Fold,
    sequence: u64,
}

impl Hand {
    fn new(definition: &Definition) -> Self {
        Self { fold: Fold::new(rules(definition), ORIGIN, &[0]), sequence: 0 }
    }

    /// An event that arrives at its own time.
    fn event(&mut self, event_time: &str, payload: &str) {
        self.received(event_time, event_time, payload);
    }

    fn received(&mut self, event_time: &str, received: &str, payload: &str) {
        self.sequence += 1;
        self.fold.take(at(0, self.sequence), Some(time(event_time)), time(received), payload);
    }

    fn tick(&mut self, now: &str) {
        self.sequence += 1;
        self.fold.tick(at(0, self.sequence), time(now));
    }

    /// Each result as `start group measures revision`, without the common parts.
    fn results(&mut self) -> Vec<String> {
        all(&mut self.fold).iter().map(short).collect()
    }
}

fn all(fold: &mut Fold) -> Vec<WindowResult> {
    let mut results = Vec::new();
    loop {
        let some = fold.results(3);
        assert!(some.len() >= 3 || !fold.has_results(), "what is due comes out");
        if some.is_empty() {
            return results;
        }
        results.extend(some);
    }
}

/// `10:00:00-10:01:00 {"/a":1} "n":2 r2`, with the group and the measures as they are.
fn short(result: &WindowResult) -> String {
    let payload: serde_json::Value = serde_json::from_str(&result.payload).unwrap();
    let clock = |side: &str| {
        let text = payload["window"][side].as_str().unwrap().to_owned();
        text[11..].trim_end_matches('Z').trim_end_matches(".000000").to_owned()
    };
    let text = &result.payload;
    let from = text.find("\"group\":").unwrap() + 8;
    let to = text.find(",\"origin\"").unwrap();
    let revision = if result.revision == super::WITHDRAWN { "gone".into() } else { result.revision.to_string() };
    assert_eq!(payload["revision"], result.revision);
    assert_eq!(payload["origin"], ORIGIN.to_string());
    format!("{}-{} {} r{revision}", clock("start"), clock("end"), &text[from..to])
}

/// A store that keeps the highest revision of each id.
#[derive(Debug, Default, PartialEq, Eq)]
struct Store(BTreeMap<[u8; 16], (u64, String)>);

impl Store {
    fn put(&mut self, results: Vec<WindowResult>) {
        for result in results {
            let kept = self.0.entry(result.id.0).or_default();
            assert!(result.revision != kept.0 || result.payload == kept.1, "one revision has one payload");
            if result.revision > kept.0 {
                *kept = (result.revision, result.payload);
            }
        }
    }

    /// The payloads that were not withdrawn.
    fn payloads(&self) -> Vec<&str> {
        self.0
            .values()
            .filter(|(revision, _)| *revision != super::WITHDRAWN)
            .map(|(_, payload)| payload.as_str())
            .collect()
    }
}
