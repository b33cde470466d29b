//! Compares aggregates with the examples in `docs/reference/aggregates.md` and `docs/concepts/aggregation.md`: each definition
//! with its events and results, and the table of measures.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is the test")]

use std::time::Duration;

use aggregate::{AggregateRules, Definition, Emit, Fold, Late, TimeBasis, WindowResult};
use event::{Origin, Position, TypeName};
use text::rfc3339;
use toml::{Table, Value};

const PAGE: &str = include_str!("../../../../docs/reference/aggregates.md");
const CONCEPT: &str = include_str!("../../../../docs/concepts/aggregation.md");

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn length(value: &Value) -> Option<Duration> {
    Some(humantime::parse_duration(text(value)).expect("a length"))
}

fn definition(source: &str) -> Definition {
    let mut definition = Definition::default();
    for (name, value) in &source.parse::<Table>().expect("the example is TOML") {
        match name.as_str() {
            "window" => definition.window = text(value).into(),
            "group_by" => {
                definition.group_by = value.as_array().unwrap().iter().map(|value| text(value).into()).collect()
            }
            "measures" => {
                // A table of TOML loses the order in which it was written.
                let mut named: Vec<_> =
                    value.as_table().unwrap().iter().map(|(n, v)| (n.clone(), text(v).into())).collect();
                named.sort_by_key(|(name, _): &(String, String)| source.find(&format!("{name} =")));
                definition.measures = named;
            }
            "time" => definition.time = if text(value) == "received" { TimeBasis::Received } else { TimeBasis::Event },
            "late" => definition.late = if text(value) == "separate" { Late::Part } else { Late::Count },
            "emit" => definition.emit = if text(value) == "final" { Emit::Final } else { Emit::Close },
            "lateness" => definition.lateness = length(value),
            "early" => definition.early = length(value),
            other => panic!("the example sets {other}"),
        }
    }
    definition
}

fn fold(definition: &Definition) -> Fold {
    let rules = AggregateRules::new(TypeName::new("access.hits").unwrap(), definition).expect("the example is sound");
    Fold::new(rules, Origin([1; 16]), &[0])
}

fn time(text: &str) -> i64 {
    let whole = if text.contains('T') { text.to_owned() } else { format!("2026-11-21T{text}Z") };
    rfc3339::parse(&whole).expect("a time")
}

/// `TIME PAYLOAD`, `TIME received TIME PAYLOAD` or `TIME tick`.
fn feed(fold: &mut Fold, number: u64, line: &str) {
    let position = Position { shard: 0, sequence: number };
    let (at, rest) = line.split_once(' ').expect("a time and a payload");
    if rest == "tick" {
        return fold.tick(position, time(at));
    }
    let (received, payload) = match rest.strip_prefix("received ").and_then(|rest| rest.split_once(' ')) {
        Some((received, payload)) => (received, payload),
        None => (at, rest),
    };
    json::check(payload.as_bytes()).expect("the example is JSON");
    fold.take(position, Some(time(at)), time(received), payload);
}

fn payload(result: &WindowResult) -> String {
    result.payload.replace(&Origin([1; 16]).to_string(), "…")
}

/// The blocks of a page with this language, each with its start.
fn blocks(page: &'static str, language: &str) -> Vec<(usize, &'static str)> {
    let fence = format!("```{language}\n");
    let begins = page.match_indices(&fence).map(|(at, _)| at + fence.len());
    begins.map(|at| (at, page[at..].split("```").next().expect("it ends"))).collect()
}

#[test]
fn examples_match_the_pages() {
    for page in [PAGE, CONCEPT] {
        let [definitions, events, results] = ["toml", "text", "json"].map(|language| blocks(page, language));
        assert!(definitions.len() >= 3 && definitions.len() == events.len() && events.len() == results.len());
        for (((at, source), (after, events)), (last, expected)) in definitions.into_iter().zip(events).zip(results) {
            assert!(at < after && after < last, "definition, events and results follow each other");
            assert_eq!(results_of(source, events), expected.trim(), "{source}");
        }
    }
}

/// The results of a definition, each on a line.
fn results_of(source: &str, events: &str) -> String {
    let mut fold = fold(&definition(source));
    let mut found = Vec::new();
    for (number, line) in events.lines().enumerate() {
        feed(&mut fold, number as u64 + 1, line);
        found.extend(fold.results(usize::MAX).iter().map(payload));
    }
    found.join("\n")
}

#[test]
fn measures_match_the_table() {
    let code = |cell: &'static str| cell.trim().trim_matches('`');
    let start = PAGE.find("| measure | values | result |").expect("the table is there");
    let rows: Vec<_> = PAGE[start..].lines().skip(2).take_while(|row| row.starts_with('|')).collect();
    let mut kinds = std::collections::BTreeSet::new();
    for row in &rows {
        let cells: Vec<_> = row.split('|').collect();
        let (measure, values, expected) = (code(cells[1]), code(cells[2]), code(cells[3]));
        kinds.insert(measure.split([':', '(', '9']).next());
        let definition = Definition { measures: vec![("m".into(), measure.into())], ..definition("window = \"10s\"") };
        let mut fold = fold(&definition);
        for (number, value) in split(values).into_iter().enumerate() {
            feed(&mut fold, number as u64 + 1, &format!("10:00:01 {{\"v\":{value}}}"));
        }
        feed(&mut fold, 1_000, "10:00:10 tick");
        let result = payload(&fold.results(1)[0]);
        let found = result.split("\"m\":").nth(1).expect("the measure").split(",\"origin\"").next().unwrap();
        assert_eq!(found, expected, "{row}");
    }
    assert_eq!(kinds.len(), 13, "every measure has an example: {kinds:?}");
}

/// The unchanged values: numbers keep their digits.
fn split(values: &str) -> Vec<String> {
    let array = format!("[{values}]");
    let raw: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(&array).expect("the values are JSON");
    raw.iter().map(|value| value.get().to_owned()).collect()
}
