//! `forebay test`: cases, with time windows, and the output if one fails.

use std::fs;
use std::path::Path;

use crate::support::{Folder, forebay};

const PAGE: &str = include_str!("../../../../docs/guides/test-a-configuration.md");

fn run(folder: &Folder, more: &[&str]) -> (i32, String, String) {
    let arguments = [&["test", "--config", "forebay.toml"], more].concat();
    let output = forebay().args(arguments).current_dir(folder.path("")).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The files that the page shows: each after a line that ends with its name and a colon.
fn of_the_page() -> Folder {
    let folder = Folder::new();
    let mut count = 0;
    for (at, _) in PAGE.match_indices("`:\n\n```") {
        let name = PAGE[..at].rsplit('`').next().unwrap();
        let (_, rest) = PAGE[at + "`:\n\n```".len()..].split_once('\n').unwrap();
        write(&folder, name, rest.split("```").next().unwrap());
        count += 1;
    }
    assert_eq!(count, 5, "configuration, case, events, what is stored, results");
    folder
}

fn write(folder: &Folder, name: &str, text: &str) {
    fs::create_dir_all(folder.path(name).parent().unwrap_or(Path::new(""))).unwrap();
    folder.write(name, text);
}

const RESULTS: &str = "cases/hits/results.hits.ndjson";

#[test]
fn page_example_works() {
    let folder = of_the_page();
    assert_eq!(run(&folder, &[]), (0, "ok      cases/hits\n1 case, 0 failed\n".to_owned(), String::new()));
    let before = fs::read_to_string(folder.path(RESULTS)).unwrap();
    fs::remove_file(folder.path(RESULTS)).unwrap();
    assert_eq!(run(&folder, &[]).0, 1, "nothing is expected of a file that is missing");
    assert_eq!(run(&folder, &["--update"]).0, 0);
    assert_eq!(fs::read_to_string(folder.path(RESULTS)).unwrap(), before);
    assert!(!folder.path("data").exists() && !folder.path("forebay-data").exists(), "nothing is kept");
}

#[test]
fn missing_wrong_and_extra_results_are_shown() {
    let folder = of_the_page();
    let right = fs::read_to_string(folder.path(RESULTS)).unwrap();
    let lines: Vec<&str> = right.lines().collect();
    let wrong = lines[2].replace("1500", "1501");
    let more = lines[3].replace("10:07:00", "10:08:00");
    folder.write(RESULTS, [lines[0], wrong.as_str(), lines[3], more.as_str(), ""].join("\n"));
    let (code, printed, _) = run(&folder, &[]);
    let expected = format!(
        "FAILED  cases/hits\nresults.hits.ndjson\n  {}\n- {wrong}\n+ {}\n+ {}\n  {}\n- {more}\n1 case, 1 failed\n",
        lines[0], lines[1], lines[2], lines[3]
    );
    assert_eq!((code, printed.as_str()), (1, expected.as_str()));
}

#[test]
fn clock_runs_up_to_until() {
    let folder = of_the_page();
    let until =
        |time: &str| write(&folder, "cases/hits/case.toml", &format!("type = \"access\"\nuntil = \"{time}\"\n"));
    // The last event was received at 10:06:05, and a shard is quiet after a minute.
    until("2026-11-21T10:07:04Z");
    let (code, printed, _) = run(&folder, &[]);
    assert!(code == 1 && printed.contains("\n- {\"window\":{\"start\":\"2026-11-21T10:06:00"), "{printed}");
    until("2026-11-21T10:07:05Z");
    assert_eq!(run(&folder, &[]).0, 0);
    until("2036-11-21T10:07:05Z");
    assert_eq!(run(&folder, &[]).0, 0);
}

#[test]
fn late_filtered_and_rejected_events_are_not_counted() {
    let folder = of_the_page();
    let config = fs::read_to_string(folder.path("forebay.toml")).unwrap();
    let filter = config.replace("as = \"integer\" }", "as = \"integer\" }, { filter = \"bytes != 13\" }");
    folder.write("forebay.toml", filter.replace("time = ", "schema = \"access.json\"\ntime = "));
    folder.write("access.json", r#"{"required": ["bytes"]}"#);
    let input = "cases/hits/input.timed";
    let at = |clock: &str| format!(r#""time":"2026-11-21T{clock}Z","status":"200""#);
    let events = fs::read_to_string(folder.path(input)).unwrap()
        // The watermark is at 10:06:30 by then, half a minute past the end of the window.
        + &format!("2026-11-21T10:06:30Z {{{},\"bytes\":13}}\n", at("10:06:10"))
        + &format!("2026-11-21T10:06:30Z {{{}}}\n", at("10:06:10"))
        + "2026-11-21T10:06:30Z {\n"
        + &format!("2026-11-21T10:06:31Z {{{},\"bytes\":2}}\n", at("10:06:30"))
        + &format!("2026-11-21T10:06:31Z {{{},\"bytes\":4}}\n", at("10:05:58"));
    folder.write(input, events);
    folder.write("cases/hits/case.toml", "type = \"access\"\nuntil = \"2026-11-21T10:10:00Z\"\n");
    assert_eq!(run(&folder, &["--update"]).0, 0);
    let read = |name: &str| fs::read_to_string(folder.path(&format!("cases/hits/{name}"))).unwrap();
    assert_eq!(read("expected.ndjson").lines().count(), 6);
    assert_eq!(read("filtered.ndjson"), "{\"line\":5,\"step\":2,\"operation\":\"filter\"}\n");
    let refused: Vec<String> = read("refused.ndjson").lines().map(|line| line.chars().take(24).collect()).collect();
    assert_eq!(refused, ["{\"line\":6,\"code\":\"schema", "{\"line\":7,\"code\":\"json\","]);
    let results = read("results.hits.ndjson");
    assert_eq!(results.lines().count(), 4, "{results}");
    assert!(results.ends_with("\"requests\":2,\"bytes\":9,\"clients\":1,\"revision\":2}\n"), "{results}");
}

#[test]
fn impossible_cases_are_reported() {
    let folder = of_the_page();
    let case = |text: &str| write(&folder, "cases/hits/case.toml", text);
    let expect_error = |wanted: &str| {
        let (code, printed, _) = run(&folder, &[]);
        assert!(code == 1 && printed.contains(wanted), "{wanted}: {printed}");
    };
    case("type = \"access\"\n");
    expect_error("the case has results and no `until`");
    case("type = \"access\"\nuntil = \"2026-11-21T10:06:04Z\"\n");
    expect_error("`until` is before the last event");
    case("type = \"access\"\nuntil = \"soon\"\n");
    expect_error("`until`: ");
    case("type = \"access\"\nuntil = \"2026-11-21T10:08:00Z\"\n");
    write(&folder, "cases/hits/results.hist.ndjson", "{}\n");
    expect_error("type access has no aggregate `hist`; it has hits");
    fs::remove_file(folder.path("cases/hits/results.hist.ndjson")).unwrap();
    write(&folder, "cases/hits/input.ndjson", "{}\n");
    expect_error("input.timed: the case has input.ndjson too");
    fs::remove_file(folder.path("cases/hits/input.ndjson")).unwrap();
    folder.write("cases/hits/input.timed", "2026-11-21T10:06:04Z {}\n{}\n");
    expect_error("input.timed: line 2 must be a time, a blank and an event");
}
