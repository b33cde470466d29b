//! Aggregates from the file to the rows of a store: late and early events, crashes and reloads.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::Value;
use text::rfc3339;

use crate::fixture::Fixture;
use crate::support::wait_until;

/// One shard gives a known order, without ticks in between.
pub(crate) fn config(aggregate: &str) -> String {
    format!(
        "[gateway]\nshards = 1\n[types.access]\ntime = \"/time\"\nroutes = [\"local\"]\n[types.access.aggregate.hits]\n{aggregate}\n\
         routes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n"
    )
}

pub(crate) const MINUTES: &str = "window = \"1m\"\ngroup_by = [\"/status\"]\nlateness = \"1m\"\nidle_timeout = \"1day\"\n\
                       measures = { requests = \"count\", bytes = \"sum:/bytes\", clients = \"distinct:/client\" }";

impl Fixture {
    fn kill(&mut self) {
        drop(self.server.take());
    }

    /// Events of one time each, with a status and bytes; one POST for each.
    fn hit(&self, time: &str, status: u16, bytes: u64) {
        let body = format!(r#"{{"time":"{time}","status":{status},"bytes":{bytes},"client":"192.0.2.{bytes}"}}"#);
        let (code, answer) = self.server().post("/ingest/event/access", &body);
        assert_eq!(code, 200, "{answer}");
    }

    fn metric(&self, name: &str) -> u64 {
        self.server().metric(&format!("forebay_aggregate_{name}{{aggregate=\"access.hits\"}}"))
    }

    /// Waits until the results are these: each with its window's start, its group's value and its measures.
    fn expect(&self, wanted: &[&str]) {
        let mut found = Vec::new();
        let done = wait_until(|| {
            found = results(&self.folder.data(), "access.hits").iter().map(short).collect();
            found.sort();
            found == wanted
        });
        assert!(done, "{found:#?}\nin place of\n{wanted:#?}\n{}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path("log")).unwrap()
    }

    fn reload(&self, config: &str) {
        let applied = self.server().metric("forebay_reloads_total{result=\"applied\"}");
        self.folder.write("forebay.toml", config);
        self.server().signal("-HUP");
        self.server().wait("forebay_reloads_total{result=\"applied\"}", |now| now == applied + 1);
    }
}

pub(crate) fn results(data: &Path, aggregate: &str) -> Vec<Value> {
    let Ok(store) = rusqlite::Connection::open(data.join("events.db")) else { return Vec::new() };
    let Ok(mut select) = store.prepare("select payload from events where type = ?1") else { return Vec::new() };
    let payloads = select.query_map([aggregate], |row| row.get::<_, String>(0)).unwrap().filter_map(Result::ok);
    payloads.map(|payload| serde_json::from_str(&payload).unwrap()).collect()
}

/// `2026-11-20T10:00 200 requests 2 bytes 30 clients 2`
pub(crate) fn short(result: &Value) -> String {
    let start = result["window"]["start"].as_str().unwrap().trim_end_matches('Z').trim_end_matches(".000000");
    let mut text = format!("{start} {}", result["group"]["/status"]);
    if let Some(part) = result.get("part") {
        text += &format!(" part {part}");
    }
    for name in ["requests", "bytes", "clients"] {
        if let Some(value) = result.get(name) {
            text += &format!(" {name} {value}");
        }
    }
    text
}

#[test]
fn out_of_order_late_and_too_late() {
    let fixture = Fixture::new(&config(MINUTES));
    fixture.hit("2026-11-20T10:00:20Z", 200, 1);
    fixture.hit("2026-11-20T10:00:40Z", 200, 2);
    fixture.hit("2026-11-20T10:00:10Z", 404, 3);
    fixture.hit("2026-11-20T10:00:00Z", 200, 1);
    fixture.hit("2026-11-20T09:59:59.999Z", 200, 9);
    fixture.hit("2026-11-20T10:01:00Z", 200, 4);
    let hour = "2026-11-20T09:59:00 200 requests 1 bytes 9 clients 1";
    let not_found = "2026-11-20T10:00:00 404 requests 1 bytes 3 clients 1";
    fixture.expect(&[hour, "2026-11-20T10:00:00 200 requests 3 bytes 4 clients 2", not_found]);
    // Late within the lateness: the row is another one then.
    fixture.hit("2026-11-20T10:00:50Z", 200, 5);
    let later = "2026-11-20T10:00:00 200 requests 4 bytes 9 clients 3";
    fixture.expect(&[hour, later, not_found]);
    fixture.hit("2026-11-20T10:02:00Z", 200, 6);
    // Too late: the watermark is a minute past the window's end.
    fixture.hit("2026-11-20T10:00:59Z", 200, 7);
    fixture.expect(&[hour, later, not_found, "2026-11-20T10:01:00 200 requests 1 bytes 4 clients 1"]);
    fixture.server().wait("forebay_aggregate_late_total{", |late| late == 1);
    assert_eq!((fixture.metric("events_total"), fixture.metric("misdated_total")), (9, 0));
    fixture.server().wait_delivered();
    let of_results = |name: &str| fixture.server().metric(&format!("forebay_events_{name}{{type=\"access.hits\""));
    assert_eq!(of_results("derived_total"), of_results("stored_total"));
    assert_eq!((of_results("accepted_total"), of_results("derived_total")), (0, 5), "four rows, one of them twice");
    assert_eq!(fixture.server().metric("forebay_events_derived_total{type=\"access\""), 0);
}

#[test]
fn future_events_do_not_advance_the_watermark() {
    let fixture = Fixture::new(&config(&MINUTES.replace("window = \"1m\"", "window = \"1s\"").replace("1day", "1s")));
    let now = i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros()).unwrap();
    let years_ahead = rfc3339::format(now + 4 * 366 * 86_400 * 1_000_000);
    let soon = now / 1_000_000 * 1_000_000 + 2_000_000;
    fixture.hit(&years_ahead, 200, 1);
    fixture.hit(&rfc3339::format(soon), 200, 2);
    let start = rfc3339::format(soon);
    let start = start.trim_end_matches('Z').trim_end_matches(".000000");
    fixture.expect(&[&format!("{start} 200 requests 1 bytes 2 clients 1")]);
    assert_eq!((fixture.metric("misdated_total"), fixture.metric("events_total")), (1, 2));
}

#[test]
fn silent_type_emits_its_results() {
    let fixture = Fixture::new(&config(&MINUTES.replace("1day", "1s")));
    // One request, without a tick in between.
    let lines = ["10:00:01", "10:00:59", "10:01:00"]
        .map(|time| format!(r#"{{"time":"2026-11-20T{time}Z","status":1,"bytes":1}}"#));
    assert_eq!(fixture.server().post("/ingest/batch/access", &lines.join("\n")).0, 200);
    fixture.expect(&[
        "2026-11-20T10:00:00 1 requests 2 bytes 2 clients 0",
        "2026-11-20T10:01:00 1 requests 1 bytes 1 clients 0",
    ]);
    fixture.server().wait("forebay_aggregate_windows{", |windows| windows == 0);
}

#[test]
fn windows_over_midnight_and_over_a_leap_second() {
    let fixture = Fixture::new(&config(&MINUTES.replace("window = \"1m\"", "window = \"1h\"")));
    fixture.hit("2016-12-31T23:59:59.999Z", 200, 1);
    fixture.hit("2016-12-31T23:59:60Z", 200, 2);
    fixture.hit("2017-01-01T00:00:00Z", 200, 3);
    fixture.hit("2017-01-01T01:00:00+01:00", 200, 4);
    fixture.hit("2017-01-01T00:59:59Z", 200, 5);
    fixture.hit("2017-01-01T02:00:00Z", 200, 6);
    fixture.expect(&[
        "2016-12-31T23:00:00 200 requests 2 bytes 3 clients 2",
        "2017-01-01T00:00:00 200 requests 3 bytes 12 clients 3",
    ]);
}

#[test]
fn late_events_have_parts_where_that_is_configured() {
    let fixture = Fixture::new(&config(&format!("{MINUTES}\nlate = \"part\"")));
    for (second, bytes) in [("10:00:10", 1), ("10:02:00", 2), ("10:00:20", 3), ("10:04:00", 4)] {
        fixture.hit(&format!("2026-11-20T{second}Z"), 200, bytes);
    }
    fixture.expect(&[
        "2026-11-20T10:00:00 200 part 1 requests 1 bytes 3 clients 1",
        "2026-11-20T10:00:00 200 requests 1 bytes 1 clients 1",
        "2026-11-20T10:02:00 200 requests 1 bytes 2 clients 1",
    ]);
}

#[test]
fn kill_in_open_windows_changes_no_result() {
    let mut fixture = Fixture::new(&config(MINUTES));
    for second in 0..60 {
        fixture.hit(&format!("2026-11-20T10:00:{second:02}Z"), 200 + second % 2, 1);
        if second % 20 == 19 {
            fixture.kill();
            fixture.start();
        }
    }
    fixture.hit("2026-11-20T10:01:00Z", 200, 1);
    let whole = [
        "2026-11-20T10:00:00 200 requests 30 bytes 30 clients 1",
        "2026-11-20T10:00:00 201 requests 30 bytes 30 clients 1",
    ];
    fixture.expect(&whole);
    fixture.kill();
    fixture.start();
    fixture.hit("2026-11-20T10:01:01Z", 200, 1);
    fixture.server().wait("forebay_aggregate_lag_events{", |lag| lag == 0);
    fixture.server().wait_delivered();
    fixture.expect(&whole);
    assert_eq!(
        fixture.server().metric("forebay_events_derived_total{type=\"access.hits\""),
        2,
        "nothing is journaled again"
    );
    assert_eq!(fixture.metric("events_total"), 62);
}

#[test]
fn hangup_adds_changes_and_removes() {
    let none = "[gateway]\nshards = 1\n[types.access]\ntime = \"/time\"\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";
    let mut fixture = Fixture::new(none);
    fixture.hit("2026-11-20T10:00:01Z", 200, 1);
    fixture.reload(&config(MINUTES));
    fixture.hit("2026-11-20T10:00:02Z", 200, 2);
    fixture.hit("2026-11-20T10:01:00Z", 200, 3);
    let added = "2026-11-20T10:00:00 200 requests 1 bytes 2 clients 1";
    fixture.expect(&[added]);
    // Routes and other settings leave it as it is.
    fixture.reload(&format!("[log]\nlevel = \"info\"\n{}", config(MINUTES)));
    fixture.hit("2026-11-20T10:02:00Z", 200, 4);
    let kept = "2026-11-20T10:01:00 200 requests 1 bytes 3 clients 1";
    fixture.expect(&[added, kept]);
    fixture.reload(&config(&MINUTES.replace("\"1m\"\ngroup", "\"2m\"\ngroup")));
    assert!(wait_until(|| fixture.log().contains("the aggregate's definition has changed")), "{}", fixture.log());
    fixture.hit("2026-11-20T10:02:30Z", 200, 5);
    fixture.hit("2026-11-20T10:04:00Z", 200, 6);
    let changed = "2026-11-20T10:02:00 200 requests 1 bytes 5 clients 1";
    fixture.expect(&[added, kept, changed]);
    fixture.reload(none);
    assert!(!fixture.server().metrics().contains("aggregate=\"access.hits\""));
    fixture.hit("2026-11-20T10:06:00Z", 200, 7);
    fixture.server().wait_delivered();
    fixture.kill();
    fixture.start();
    fixture.expect(&[added, kept, changed]);
    let left = std::fs::read_dir(fixture.folder.data().join("aggregates")).unwrap().count();
    assert_eq!(left, 0, "its state goes with it");
}

/// Window start and status: requests, bytes, clients.
type Rows = BTreeMap<(i64, i64), [String; 3]>;

/// The result of SQL over the raw file.
fn by_sql(file: &Path) -> Option<Rows> {
    let mut sqlite = Command::new("sqlite3");
    let mut sqlite = sqlite.args(["-batch", ":memory:"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let script = format!(
        ".mode ascii\n.separator \"\\037\" \"\\n\"\ncreate table raw(line text);\n.import '{}' raw\n.mode list\n.separator \"\\t\" \"\\n\"\n\
         select strftime('%s', line ->> '$.time') / 60 * 60 as w, line ->> '$.status' as status, count(*), \
         sum(line ->> '$.bytes'), count(distinct line ->> '$.client') from raw group by w, status;\n",
        file.display()
    );
    sqlite.stdin.take()?.write_all(script.as_bytes()).unwrap();
    let output = sqlite.wait_with_output().unwrap();
    assert!(output.status.success(), "sqlite3 fails");
    let mut rows = Rows::new();
    for row in String::from_utf8(output.stdout).unwrap().lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        let [window, status, figures @ ..] = &cells[..] else { panic!("{row}") };
        let figures: [&str; 3] = figures.try_into().unwrap();
        rows.insert((window.parse().unwrap(), status.parse().unwrap()), figures.map(str::to_owned));
    }
    Some(rows)
}

#[test]
fn results_equal_sql_over_the_raw_file() {
    let Some(file) = testkit::records::records("access.ndjson") else { return };
    let Some(wanted) = by_sql(&file) else {
        testkit::skipped::report("sqlite3 is not there");
        return;
    };
    let fixture = Fixture::new(&config(&MINUTES.replace("lateness = \"1m\"", "lateness = \"1h\"")));
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for batch in lines.chunks(500) {
        assert_eq!(fixture.server().post("/ingest/batch/access", &batch.join("\n")).0, 200);
    }
    // Long after all of them: their windows end.
    fixture.hit("2015-06-01T00:00:00Z", 1, 1);
    fixture.server().wait("forebay_aggregate_events_total{", |events| events == lines.len() as u64 + 1);
    let mut found = Rows::new();
    let done = wait_until(|| {
        found = results(&fixture.folder.data(), "access.hits").iter().map(row).collect();
        is_near(&found, &wanted)
    });
    let differ: Vec<_> = wanted.iter().filter(|(key, figures)| found.get(key) != Some(figures)).take(20).collect();
    assert!(done, "{} results, {} by SQL; {differ:?}", found.len(), wanted.len());
    assert_eq!(
        (fixture.metric("late_total"), fixture.metric("overflowed_total"), fixture.metric("misdated_total")),
        (0, 0, 0)
    );
    println!("{} results are those of SQL", found.len());
}

fn row(result: &Value) -> ((i64, i64), [String; 3]) {
    let start = rfc3339::parse(result["window"]["start"].as_str().unwrap()).unwrap() / 1_000_000;
    let text = |name: &str| if result[name].is_null() { String::new() } else { result[name].to_string() };
    ((start, result["group"]["/status"].as_i64().unwrap()), ["requests", "bytes", "clients"].map(text))
}

/// All equal, but for distinct clients: those are exact within one.
fn is_near(found: &Rows, wanted: &Rows) -> bool {
    found.keys().eq(wanted.keys())
        && found.iter().zip(wanted).all(|((_, [requests, bytes, clients]), (_, exact))| {
            let [clients, exact_clients] = [clients, &exact[2]].map(|count| count.parse::<i64>().unwrap());
            (requests, bytes) == (&exact[0], &exact[1]) && (clients - exact_clients).abs() <= 1
        })
}
