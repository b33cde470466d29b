//! `forebay reload`: its output and its exit codes.

use std::process::Output;

use super::{Fixture, ONE, TWO};
use crate::support::forebay;
use crate::two_services::BackEnd;

/// Runs a command: the exit code, the standard output, and stderr.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = forebay().args(arguments).envs(variables.iter().copied()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn reload(fixture: &Fixture, configuration: &str, more: &[&str]) -> (i32, String, String) {
    fixture.folder.write("forebay.toml", configuration);
    run(&[&["reload", "--admin", &fixture.server().admin.to_string()], more].concat(), &[])
}

#[test]
fn valid_file_is_applied_and_changes_shown() {
    let fixture = Fixture::new(ONE);
    let file = fixture.folder.text("forebay.toml");
    let changed = TWO.replace("table = \"two\"", "table = \"two\"\nmax_backlog = \"1GiB\"");
    let limited = format!("{changed}[gateway]\nidle_timeout = \"7s\"\n");
    for (configuration, changes) in [
        (TWO, "type b is new\nsink two is new\n"),
        (&changed, "sink two has changed\n"),
        (&limited, "`[gateway]` has changed\n"),
        (&limited, "nothing has changed\n"),
        (ONE, "`[gateway]` has changed\ntype b is removed\nsink two is removed\n"),
    ] {
        let expected = (0, format!("reloaded {file}\n{changes}"), String::new());
        assert_eq!(reload(&fixture, configuration, &[]), expected, "{configuration}");
    }
    let (code, json, _) = reload(&fixture, TWO, &["--output", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let expected = serde_json::json!({ "applied": true, "file": file, "changes": ["type b is new", "sink two is new"], "warnings": null });
    assert_eq!((code, json), (0, expected));
    assert_eq!(fixture.post("b", "1"), 200);

    let admin = fixture.server().admin;
    fixture.folder.write("forebay.toml", format!("[gateway]\nadmin = \"{admin}\"\n{TWO}"));
    let (code, text, errors) = run(&["reload", "--config", &file], &[]);
    assert!(code == 0 && text.contains("nothing has changed"), "the file names the address: {text}{errors}");
}

#[test]
fn invalid_file_changes_nothing_and_errors_are_shown() {
    let fixture = Fixture::new(ONE);
    let wrong = format!("{ONE}size = 1\n[types.c]\nroutes = [\"four\"]\n");
    let (code, text, errors) = reload(&fixture, &wrong, &[]);
    assert_eq!((code, &*text), (2, ""), "{errors}");
    let data = fixture.folder.text("data");
    let (checked, _, report) = run(&["check", "--config", &fixture.folder.text("forebay.toml"), "--data", &data], &[]);
    assert!(checked == 2 && report.contains("four") && report.contains("^^^"), "{report}");
    assert!(errors.starts_with(&report), "{errors}\nisn't\n{report}");
    assert!(
        errors.ends_with(
            "nothing has changed: the server keeps its current configuration. Correct the errors and reload again\n"
        ),
        "{errors}"
    );
    assert_eq!((fixture.post("a", "1"), fixture.post("c", "1")), (200, 404));

    let (code, _, errors) = reload(&fixture, &format!("[gateway]\nshards = 7\n{ONE}"), &[]);
    assert!(
        code == 2 && errors.contains("`gateway.shards` is 7 now") && errors.contains("restart Forebay to apply it"),
        "{errors}"
    );
    let (code, json, _) = reload(&fixture, "[types", &["--output", "json"]);
    assert!(code == 2 && json.starts_with("{\"status\":422,\"code\":\"configuration\",\"detail\":\"error: "), "{json}");
}

#[test]
fn warning_is_shown_with_the_changes() {
    let fixture = Fixture::new(ONE);
    let lonely = format!("{ONE}[sinks.lonely]\nkind = \"sqlite\"\ntable = \"lonely\"\n");
    let (code, text, errors) = reload(&fixture, &lonely, &[]);
    assert!(code == 0 && text.ends_with("sink lonely is new\n"), "{text}{errors}");
    assert!(errors.starts_with("warning: ") && errors.contains("lonely"), "{errors}");
}

#[test]
fn unreachable_and_unsupported_servers_are_reported() {
    let mut fixture = Fixture::new(ONE);
    let admin = fixture.server().admin.to_string();
    assert_eq!(fixture.stop("-KILL"), None);
    let (code, text, errors) = run(&["reload", "--admin", &admin], &[]);
    assert!(
        code == 1 && text.is_empty() && errors.contains(&format!("can't ask the server at http://{admin}")),
        "{errors}"
    );

    let writer = BackEnd::start_on(&fixture.folder.path("writer"), "127.0.0.1:0", &[]);
    let admin = writer.admin.to_string();
    let (code, _, errors) = run(&["reload", "--admin", &admin], &[]);
    assert!(code == 1 && errors.contains("the server has no /api/reload, so it has another role"), "{errors}");
    let (code, _, errors) = run(&["reload", "--admin", &admin], &[("FOREBAY_ROLE", "writer")]);
    assert!(code == 1 && errors.contains("a writer doesn't reload its configuration"), "{errors}");
}
