//! `role` and `data` at the top of the configuration file: the file is enough for every command.

use std::path::Path;

use crate::support::{Folder, Running, forebay, wait_until};

/// Runs a command in the folder `elsewhere`, with these variables: its exit code and all output.
fn run(folder: &Folder, variables: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = forebay();
    command.args(arguments).envs(variables.iter().copied()).current_dir(folder.path("elsewhere"));
    let output = command.output().unwrap();
    (output.status.code(), [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat())
}

fn folder(text: &str) -> (Folder, String) {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    let file = folder.write("forebay.toml", text);
    (folder, file)
}

#[test]
fn configuration_file_is_enough_for_every_command() {
    let listen = testkit::ports::free_address();
    let admin = testkit::ports::free_address();
    let (folder, file) =
        folder(&format!("role = \"serve\"\ndata = \"store\"\n[gateway]\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n"));
    let named = [("FOREBAY_CONFIG", file.as_str())];
    assert_eq!(run(&folder, &named, &["token", "new", "ops", "--scope", "ingest"]).0, Some(0));
    let mut command = forebay();
    command.args(["--config", &file]).current_dir(folder.path("elsewhere"));
    let mut server = Running(command.spawn().unwrap());
    assert!(wait_until(|| run(&folder, &named, &["health", "--ready"]).0 == Some(0)));
    for command in [&["status"][..], &["reload"], &["dead", "list"], &["route", "list"], &["token", "list"], &["check"]]
    {
        for (variables, flags) in [(&named[..], &[][..]), (&[], &["--config", &file])] {
            let (code, output) = run(&folder, variables, &[command, flags].concat());
            assert_eq!(code, Some(0), "{command:?}: {output}");
        }
    }
    server.signal("-TERM");
    assert_eq!(server.wait_end(), Some(0));
    for command in [&["journal", "verify"][..], &["dead", "list"], &["route", "list"], &["drain"]] {
        let (code, output) = run(&folder, &named, command);
        // The embedded store of a drained directory remains.
        assert!(code == Some(0) || command == ["drain"] && code == Some(3), "{command:?}: {output}");
    }
    assert!(folder.path("store/tokens.json").is_file());
    assert!(
        std::fs::read_dir(folder.path("elsewhere")).unwrap().next().is_none(),
        "nothing is in the working directory"
    );
}

#[test]
fn flag_wins_over_environment_and_environment_over_file() {
    let (folder, file) = folder("data = \"of-file\"\n");
    let token = |variables: &[(&str, &str)], flags: &[&str]| {
        let arguments = [&["token", "new", "x", "--scope", "read", "--config", &file], flags].concat();
        assert_eq!(run(&folder, variables, &arguments).0, Some(0));
    };
    let has = |name: &str| Path::new(&folder.path(name)).join("tokens.json").is_file();
    let (of_environment, of_flag) = (folder.text("of-environment"), folder.text("of-flag"));
    token(&[("FOREBAY_DATA", &of_environment)], &["--data", &of_flag]);
    assert_eq!([has("of-flag"), has("of-environment"), has("of-file")], [true, false, false]);
    token(&[("FOREBAY_DATA", &of_environment)], &[]);
    assert_eq!([has("of-environment"), has("of-file")], [true, false]);
    token(&[], &[]);
    assert!(has("of-file"));
}

#[test]
fn role_of_the_file_runs_without_a_command() {
    let (folder, file) = folder("role = \"writer\"\n[writer]\nlisten = \"127.0.0.1:0\"\n");
    let (code, output) = run(&folder, &[], &["check", "--config", &file]);
    assert!(code == Some(0) && output.contains("sink    local: sqlite"), "{output}");
    let (code, output) = run(&folder, &[], &["serve", "--config", &file]);
    assert!(code == Some(2) && output.contains("a writer's table"), "{output}");
    let (code, output) = run(&folder, &[], &["token", "new", "x", "--scope", "deliver", "--config", &file]);
    assert!(code == Some(0) && output.contains("forebay-writer/tokens.json"), "{output}");
}

#[test]
fn broken_file_never_changes_the_data_directory() {
    for (text, reason) in [
        ("data = 3\n", "expected a string"),
        ("data = \"\"\n", "`data`: expected the path"),
        ("data =\n", "cannot use"),
    ] {
        let (folder, file) = folder(text);
        let (code, output) = run(&folder, &[], &["token", "new", "x", "--scope", "read", "--config", &file]);
        assert!(code == Some(2) && output.contains(reason) && output.contains("--data"), "{output}");
        assert!(std::fs::read_dir(folder.path("elsewhere")).unwrap().next().is_none());
        assert_eq!(run(&folder, &[], &["check", "--config", &file]).0, Some(2));
    }
    let (folder, file) = folder("role = \"reader\"\n");
    let (code, output) = run(&folder, &[], &["check", "--config", &file]);
    assert!(code == Some(2) && output.contains("invalid value for `role`"), "{output}");
}
