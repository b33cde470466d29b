//! Aggregates over real records against SQL over the same file: every group of every window.
//!
//! Skipped with a message where `FOREBAY_TEST_RECORDS` names no folder with `access.ndjson`, or `sqlite3` isn't there.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "what fails here is the test")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use aggregate::{AggregateRules, Definition, Fold};
use event::{Origin, Position, TypeName};
use serde_json::Value;
use text::rfc3339;

/// Window start in seconds, status: the result of SQL.
type Rows = BTreeMap<(i64, i64), Vec<String>>;

/// Each row of a query over the records, in table `r` with their line, second, status, client, path and bytes.
fn query(file: &Path, window: i64, select: &str) -> Option<Rows> {
    let mut sqlite = Command::new("sqlite3");
    let sqlite = sqlite.args(["-batch", ":memory:"]);
    let mut sqlite = sqlite.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let script = format!(
        r#"create table raw(line text);
.mode ascii
.separator "\037" "\n"
.import '{}' raw
create table r as select rowid as line, strftime('%s', line ->> '$.time') / {window} * {window} as w,
  cast(strftime('%s', line ->> '$.time') as integer) as second, line ->> '$.status' as status,
  line ->> '$.client' as client, line ->> '$.path' as path, line ->> '$.bytes' as bytes from raw;
.mode list
.separator "\t" "\n"
{select}
"#,
        file.display()
    );
    sqlite.stdin.take()?.write_all(script.as_bytes()).expect("sqlite3 reads its script");
    let output = sqlite.wait_with_output().expect("sqlite3 ends");
    assert!(output.status.success(), "sqlite3 fails");
    let text = String::from_utf8(output.stdout).expect("it is text");
    let mut rows = Rows::new();
    for row in text.lines() {
        let cells: Vec<_> = row.split('\t').map(str::to_owned).collect();
        let key = (cells[0].parse().expect("a window"), cells[1].parse().expect("a status"));
        rows.entry(key).or_default().extend_from_slice(&cells[2..]);
    }
    Some(rows)
}

fn folded(file: &Path, window: &str) -> BTreeMap<(i64, i64), Value> {
    let measures = [
        ("requests", "count"),
        ("bytes", "sum:/bytes"),
        ("least", "min:/bytes"),
        ("most", "max:/bytes"),
        ("mean", "mean:/bytes"),
        ("clients", "distinct:/client"),
        ("median", "p50:/bytes"),
        ("worst", "p99:/bytes"),
        ("first", "first:/path"),
        ("pages", "top(3):/path"),
    ];
    let definition = Definition {
        window: window.into(),
        group_by: vec!["/status".into()],
        measures: measures.map(|(name, text)| (name.into(), text.into())).into(),
        lateness: Some(Duration::from_hours(1)),
        ..Definition::default()
    };
    let rules = AggregateRules::new(TypeName::new("access.hits").unwrap(), &definition).unwrap();
    let mut fold = Fold::new(rules, Origin([1; 16]), &[0, 1]);
    let now = rfc3339::parse("2026-11-21T00:00:00Z").unwrap();
    let (mut results, mut sequence) = (Vec::new(), 0);
    for line in std::fs::read_to_string(file).unwrap().lines() {
        sequence += 1;
        let value: Value = serde_json::from_str(line).unwrap();
        let time = rfc3339::parse(value["time"].as_str().unwrap()).unwrap();
        let shard = u16::from(sequence % 3 == 0);
        fold.take(Position { shard, sequence }, Some(time), now, line);
        results.extend(fold.results(100));
    }
    (0..2).for_each(|shard| fold.tick(Position { shard, sequence: u64::MAX }, now));
    results.extend(fold.results(usize::MAX));
    assert_eq!(fold.counts().late + fold.counts().out_of_range + fold.counts().overflowed, 0);
    // Later results are newer ones.
    let parsed = results.iter().map(|result| {
        let value: Value = serde_json::from_str(&result.payload).unwrap();
        let start = rfc3339::parse(value["window"]["start"].as_str().unwrap()).unwrap();
        ((start / 1_000_000, value["group"]["/status"].as_i64().unwrap()), value)
    });
    parsed.collect()
}

fn is_near(found: &Value, exact: &str, error: f64) -> bool {
    let exact: f64 = exact.parse().unwrap();
    (found.as_f64().unwrap() - exact).abs() <= exact.abs() * error
}

/// The count and the exact figures, in this order, then quantiles, the first path, and the most frequent paths with their counts.
const FIGURES: &str =
    "select w, status, count(*), sum(bytes), min(bytes), max(bytes), avg(bytes), count(distinct client)
  from r group by w, status order by w, status;";
const QUANTILES: &str = "select w, status, max(case when n = (c + 1) / 2 - 1 then bytes end), max(case when n = (c * 99 + 99) / 100 - 1 then bytes end)
  from (select w, status, bytes, row_number() over (partition by w, status order by bytes) - 1 as n,
    count(*) over (partition by w, status) as c from r where bytes is not null) group by w, status;";
const FIRST: &str = "select w, status, path from (select w, status, path, row_number() over (partition by w, status
  order by second, line % 3 = 0, line) as n from r) where n = 1;";
const PAGES: &str =
    "select w, status, path, c from (select w, status, path, count(*) as c, row_number() over (partition by w, status
  order by count(*) desc, path) as n from r group by w, status, path) where n <= 3 order by w, status, n;";

fn compare(file: &Path, window: &str, seconds: i64) -> Option<()> {
    let figures = query(file, seconds, FIGURES)?;
    let (quantiles, firsts) = (query(file, seconds, QUANTILES)?, query(file, seconds, FIRST)?);
    let pages = query(file, seconds, PAGES)?;
    let found = folded(file, window);
    assert!(figures.keys().eq(found.keys()), "{window}: the same windows and groups");
    for (key, payload) in &found {
        let cells = &figures[key];
        let exact = |name: &str, cell: usize| {
            let said = if payload[name].is_null() { String::new() } else { payload[name].to_string() };
            assert_eq!(said, cells[cell], "{window} {key:?} {name}");
        };
        exact("requests", 0);
        exact("bytes", 1);
        exact("least", 2);
        exact("most", 3);
        if !payload["mean"].is_null() {
            assert!(is_near(&payload["mean"], &cells[4], 1e-12), "{window} {key:?}");
            // Nearly exact up to a thousand, beyond that within three standard errors.
            let error = if cells[5].len() < 4 { 0.002 } else { 3.0 * 0.01625 };
            assert!(
                is_near(&payload["clients"], &cells[5], error),
                "{window} {key:?}: {} {}",
                payload["clients"],
                cells[5]
            );
            assert!(is_near(&payload["median"], &quantiles[key][0], 0.008), "{window} {key:?}");
            assert!(is_near(&payload["worst"], &quantiles[key][1], 0.008), "{window} {key:?}");
        }
        assert_eq!(payload["first"].as_str(), Some(firsts[key][0].as_str()), "{window} {key:?}");
        compare_pages(payload["pages"].as_array().unwrap(), &pages[key]);
    }
    println!("{window}: {} results are those of SQL", found.len());
    Some(())
}

fn compare_pages(found: &[Value], expected: &[String]) {
    for (found, expected) in found.iter().zip(expected.chunks(2)) {
        let error = found["error"].as_u64().unwrap_or(0);
        let (count, exact) = (found["count"].as_u64().unwrap(), expected[1].parse::<u64>().unwrap());
        assert!(count <= exact && exact <= count + error, "{found} {expected:?}");
        if error == 0 {
            assert_eq!(found["value"].as_str(), Some(expected[0].as_str()));
        }
    }
}

#[test]
fn windows_match_sql() {
    let Some(file) = testkit::records::records("access.ndjson") else { return };
    for (window, seconds) in [("1m", 60), ("1h", 3_600), ("1day", 86_400), ("30days", 30 * 86_400)] {
        if compare(&file, window, seconds).is_none() {
            testkit::skipped::report("sqlite3 is not there");
            return;
        }
    }
}
