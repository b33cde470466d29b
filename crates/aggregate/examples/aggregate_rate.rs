//! Measures the cost of an aggregate: for an event, as a ratio to checking its JSON; and in memory, with a million
//! groups in one window, next to what the fold counts and its budget.
//!
//! `cargo run --release --package aggregate --example aggregate_rate`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use aggregate::{AggregateRules, Definition, Fold, InvalidDefinition};
use event::{Origin, Position, TypeName};

const EVENTS: u64 = 300_000;
const ROUNDS: usize = 9;
const GROUPS: u64 = 1_000_000;
const HOSTILE: &str = "nine measures, expensive values";
/// The time of the first event: a full minute, in microseconds.
const BEGIN: i64 = 1_795_255_200_000_000;

const MEASURES: [(&str, &str); 9] = [
    ("requests", "count"),
    ("bytes", "sum:/bytes"),
    ("mean", "mean:/bytes"),
    ("most", "max:/bytes"),
    ("last", "last:/path"),
    ("clients", "distinct:/client"),
    ("median", "p50:/bytes"),
    ("worst", "p99:/bytes"),
    ("pages", "top(10):/path"),
];

fn event(number: u64) -> String {
    let (client, path, bytes) = (number * 7 % 10_007, number * 31 % 499, number * 104_729 % 1_000_003);
    let status = if number.is_multiple_of(50) { 404 } else { 200 };
    format!(
        r#"{{"type":"access","time":"2026-11-21T10:05:03+00:00","client":"192.0.{}.{}","method":"GET","path":"/reports/{path}/overview.png","protocol":"HTTP/1.1","status":{status},"bytes":{bytes},"referrer":"https://www.example.org/reports/quarterly/2026/","agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}}"#,
        client >> 8,
        client & 255,
    )
}

fn rules(
    window: &str,
    group_by: &[&str],
    measures: &[(&str, &str)],
    memory: usize,
) -> Result<AggregateRules, Box<dyn Error>> {
    let definition = Definition {
        window: window.into(),
        group_by: group_by.iter().map(|pointer| (*pointer).into()).collect(),
        measures: measures.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect(),
        lateness: Some(Duration::from_secs(10)),
        memory: Some(memory),
        ..Definition::default()
    };
    let joined =
        |mistakes: Vec<InvalidDefinition>| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Ok(AggregateRules::new(TypeName::new("access.hits")?, &definition).map_err(joined)?)
}

/// Nanoseconds of CPU time of this thread: on a shared machine, wall-clock time would include the work of others.
fn worked() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Nanoseconds of work for each event.
fn cost(events: &[String], round: impl FnOnce(&[String])) -> f64 {
    let begun = worked();
    round(events);
    (worked() - begun) / events.len() as f64
}

fn check(events: &[String]) {
    events.iter().for_each(|event| assert!(json::check(event.as_bytes()).is_ok()));
}

/// The median of the rounds' costs, and of their ratios to checking the events' JSON, each pair one after the other.
fn compare(events: &[String], round: impl Fn(&[String])) -> (f64, f64) {
    let pairs: Vec<_> = (0..ROUNDS).map(|_| (cost(events, check), cost(events, &round))).collect();
    let median = |mut figures: Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        figures[ROUNDS / 2]
    };
    (median(pairs.iter().map(|pair| pair.1).collect()), median(pairs.iter().map(|pair| pair.1 / pair.0).collect()))
}

/// Kilobytes of the process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Values that are all different and widely spread: the worst case for sketches.
fn hostile(number: u64) -> String {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(r#"{{"status":200,"client":"{spread:x}","path":"{spread:x}","bytes":{}e{}}}"#, spread >> 40, spread % 300)
}

fn costs() -> Result<(), Box<dyn Error>> {
    let events: Vec<String> = (0..EVENTS).map(event).collect();
    let made: Vec<String> = (0..EVENTS).map(hostile).collect();
    for (name, window, group_by, measures) in [
        ("count", "1m", &["/status"][..], &MEASURES[..1]),
        ("count, sum, distinct", "1m", &["/status"], &[MEASURES[0], MEASURES[1], MEASURES[5]]),
        ("nine measures", "1m", &["/status"], &MEASURES),
        (HOSTILE, "1m", &["/status"], &MEASURES),
        ("nine measures by client (10,000 groups)", "1m", &["/client"], &MEASURES),
        ("count, sum, distinct in 5m every 1m", "5m every 1m", &["/status"], &[MEASURES[0], MEASURES[1], MEASURES[5]]),
        (
            "count, sum, distinct in sessions by client",
            "session 30s",
            &["/client"],
            &[MEASURES[0], MEASURES[1], MEASURES[5]],
        ),
    ] {
        let rules = rules(window, group_by, measures, 1 << 30)?;
        let (cost, ratio) = compare(if name == HOSTILE { &made } else { &events }, |events| {
            let mut fold = Fold::new(rules.clone(), Origin([0; 16]), &[0]);
            for (number, event) in (0_u64..).zip(events) {
                // A thousand events a second.
                let time = BEGIN + number.cast_signed() * 1_000;
                fold.take(Position { shard: 0, sequence: number + 1 }, Some(time), time, black_box(event));
                if number.is_multiple_of(1_000) {
                    black_box(fold.results(usize::MAX));
                }
            }
        });
        println!("{name:49} {cost:7.0} ns an event, ratio {ratio:.2}");
    }
    Ok(())
}

/// The cases with a million groups: a name, measures, the memory.
const MILLION: [(&str, &[&str], usize); 3] = [
    ("count", &["count"], 8 << 30),
    ("count, sum, distinct", &["count", "sum:/bytes", "distinct:/client"], 8 << 30),
    ("count, sum, distinct in 256 MiB", &["count", "sum:/bytes", "distinct:/client"], 256 << 20),
];

fn million(number: usize) -> Result<(), Box<dyn Error>> {
    let (name, measures, memory) = MILLION[number];
    let rules = rules("1h", &["/g"], &measures.iter().map(|text| (*text, *text)).collect::<Vec<_>>(), memory)?;
    let budget = rules.window_bytes();
    let before = resident();
    let mut fold = Fold::new(rules, Origin([0; 16]), &[0]);
    let begun = worked();
    for number in 0..2 * GROUPS {
        let group = number * 611_953 % GROUPS;
        let payload = format!(r#"{{"g":"group-{group}","bytes":{number},"client":"c{}"}}"#, number % 1_009);
        fold.take(Position { shard: 0, sequence: number + 1 }, Some(BEGIN), BEGIN, &payload);
    }
    let took = worked() - begun;
    let (counted, grown) = (fold.memory_bytes() >> 20, (resident() - before) >> 10);
    println!("{GROUPS} groups, twice each, {name}: {:.0} ns an event", took / (2 * GROUPS) as f64);
    println!("  budget of the window {} MiB, counted {counted} MiB, resident {grown} MiB", budget >> 20);
    println!("  {} groups kept, {} events in the overflow group", fold.groups(), fold.counts().overflowed);
    let begun = worked();
    let saved = fold.save();
    println!("  saved in {:.2} s, {} MiB", (worked() - begun) / 1e9, saved.len() >> 20);
    drop(saved);
    fold.tick(Position { shard: 0, sequence: u64::MAX }, BEGIN + 3_600_000_000);
    let (mut results, mut longest, begun) = (0, 0.0_f64, worked());
    while fold.has_results() {
        let before = worked();
        results += fold.results(1_000).len();
        longest = longest.max(worked() - before);
    }
    let took = worked() - begun;
    println!("  {results} results in {:.2} s, the longest thousand in {:.1} ms", took / 1e9, longest / 1e6);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(number) = std::env::args().nth(1) {
        return million(number.parse()?);
    }
    costs()?;
    // Each in a separate process: memory that the allocator kept of one would count for the next.
    for number in 0..MILLION.len() {
        std::process::Command::new(std::env::current_exe()?).arg(number.to_string()).status()?;
    }
    Ok(())
}
