//! `forebay check` on the command line: exit codes and outputs.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::forebay;

fn check(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = forebay();
    command.current_dir(directory).env_clear().envs(variables.iter().copied());
    command.arg("check").args(arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("outputs are UTF-8")
}

#[test]
fn valid_configuration_exits_with_0() {
    let directory = tempfile::tempdir().unwrap();
    let output = check(directory.path(), &["--listen", "127.0.0.1:1"], &[("FOREBAY_DATA", "/srv/data")]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
    assert_eq!(
        text(&output.stdout),
        "ok\nlisten  127.0.0.1:1\nadmin   127.0.0.1:9000\ntype    * → local\n\
         sink    local: sqlite /srv/data/events.db, table events\n"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "check makes nothing");
}

#[test]
fn unread_file_of_the_usual_name_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("forebay.toml"), "wrong").unwrap();
    let output = check(directory.path(), &[], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("is not read: name it with --config forebay.toml"), "{output:?}");
    let output = check(directory.path(), &["--config", "forebay.toml"], &[]);
    assert!(!text(&output.stderr).contains("is not read"), "{output:?}");
}

#[test]
fn invalid_configuration_exits_with_2_and_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("f.toml"), "[gateway]\nlisten = 1\nallow_anonymous = 2\n").unwrap();
    let expected = "\
error: invalid value for `gateway.listen`: expected a string
 --> f.toml:2:10
  |
2 | listen = 1
  |          ^ this is an integer

error: invalid value for `gateway.allow_anonymous`: expected true or false
 --> f.toml:3:19
  |
3 | allow_anonymous = 2
  |                   ^ this is an integer

2 mistakes
";
    for (arguments, variables) in [(&["--config", "f.toml"][..], &[][..]), (&[], &[("FOREBAY_CONFIG", "f.toml")])] {
        let output = check(directory.path(), arguments, variables);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!((text(&output.stdout), text(&output.stderr)), ("", expected));
    }
}

#[test]
fn missing_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let output = check(directory.path(), &["--config", "absent.toml"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: cannot read the configuration file absent.toml: "));
}

#[test]
fn unknown_variable_gets_a_suggestion() {
    let directory = tempfile::tempdir().unwrap();
    let variables = [
        ("FOREBAY_LISTEN", "0.0.0.0:80"),
        ("FOREBAY_ADMINN", "0.0.0.0:90"),
        ("FOREBAY_CONFG", "f.toml"),
        ("FOREBAY_TOKEN", "of another command"),
        ("FOREBAY_PASSWORD", "of a sink"),
        ("FOREBAY_SERVICE_HOST", "10.0.0.7"),
    ];
    let file = "[types.a]\nroutes = [\"x\"]\n[sinks.x]\nkind = \"sqlite\"\npath = \"${FOREBAY_PASSWORD}\"\n";
    fs::write(directory.path().join("f.toml"), file).unwrap();
    let output = check(directory.path(), &["--config", "f.toml"], &variables);
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    for (name, meant) in [
        ("FOREBAY_LISTEN", "FOREBAY_GATEWAY_LISTEN"),
        ("FOREBAY_ADMINN", "FOREBAY_GATEWAY_ADMIN"),
        ("FOREBAY_CONFG", "FOREBAY_CONFIG"),
    ] {
        let part = shown.split("warning: ").find(|part| part.starts_with(&format!("unused variable `{name}`")));
        assert!(part.is_some_and(|part| part.contains(&format!("did you mean `{meant}`?"))), "{name}: {shown}");
    }
    assert!(shown.ends_with("3 warnings\n") && !shown.contains("0.0.0.0"), "{shown}");
}

#[test]
fn impossible_pointer_warning_is_as_documented() {
    const PAGE: &str = include_str!("../../../../docs/guides/test-a-configuration.md");
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    let shown = PAGE.split("```text\nwarning: ").nth(1).unwrap().split("```").next().unwrap();
    write("access.json", r#"{"properties": {"method": {"type": "string"}}, "additionalProperties": false}"#);
    let transform = "transform = [{ lower = \"/methd\" }]";
    let config = |transform: &str| {
        format!("[types.access]\nschema = \"access.json\"\n{transform}\nroutes = [\"s\"]\n[sinks.s]\nkind = \"null\"\n")
    };
    write("forebay.toml", &config(transform));
    let output = check(directory.path(), &["--config", "forebay.toml"], &[]);
    assert_eq!(output.status.code(), Some(0), "it is no mistake");
    assert_eq!(text(&output.stderr), format!("warning: {shown}\n1 warning\n"));
    assert!(text(&output.stdout).starts_with("ok\n"));
    write("forebay.toml", &config(&transform.replace("methd", "method")));
    assert_eq!(text(&check(directory.path(), &["--config", "forebay.toml"], &[]).stderr), "");
}
