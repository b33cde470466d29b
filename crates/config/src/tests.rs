//! The configuration's errors, as operators see them.
//!
//! A case is a folder in `tests/config`: `forebay.toml` (none: no file), `environment.txt` (a `NAME=value` a line),
//! `arguments.txt` (`--flag value` a line, or a role), `tokens.txt` (a scope of a token a line), and `expected.txt`.
//! The latter is the whole report, or the summary if the configuration is valid. With `FOREBAY_TEST_BLESS` set, the
//! expectations are written instead of compared.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use access::Scopes;
use settings::{Diagnostics, Environment};

use crate::configuration::{BUILT_IN, read};
use crate::sinks::{every_sink, kinds};
use crate::{Flags, Inputs, Role, SinkSettings, writer};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn shown(file: Option<&[u8]>, folder: &Path, environment: &Environment, flags: &Flags, scopes: Scopes) -> String {
    let inputs = Inputs {
        folder,
        file: file.map(|bytes| ("forebay.toml", bytes)),
        environment,
        flags,
        data: Path::new("./forebay-data"),
        scopes,
    };
    shown_as(&inputs, read)
}

fn shown_as<T: fmt::Display>(
    inputs: &Inputs<'_>,
    read: impl FnOnce(&Inputs<'_>) -> Result<(T, Diagnostics), Diagnostics>,
) -> String {
    match read(inputs) {
        Ok((configuration, warnings)) if warnings.is_empty() => format!("ok\n{configuration}"),
        Ok((configuration, warnings)) => format!("{warnings}ok\n{configuration}"),
        Err(report) => report.to_string(),
    }
}

fn run_case(case: &Path) -> String {
    let text = |name: &str| fs::read_to_string(case.join(name)).unwrap_or_default();
    let environment = text("environment.txt").lines().filter_map(|line| line.split_once('=')).collect();
    let arguments = text("arguments.txt");
    let flag = |name: &str| arguments.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let flags = Flags {
        listen: flag("--listen "),
        admin: flag("--admin "),
        log_level: flag("--log-level "),
        writers: arguments.lines().filter_map(|line| line.strip_prefix("--writer ")).map(str::to_owned).collect(),
        role: Role::ALL.into_iter().find(|role| arguments.lines().any(|line| line == role.name())),
    };
    let scopes = text("tokens.txt").lines().map(|scope| scope.parse::<access::Scope>().unwrap()).collect();
    // A relative path, so no path of this machine is shown.
    let within = Path::new("tests/config").join(case.file_name().unwrap());
    let file = fs::read(case.join("forebay.toml")).ok();
    if !arguments.lines().any(|line| line == "writer") {
        return shown(file.as_deref(), &within, &environment, &flags, scopes);
    }
    let file = file.as_deref().map(|bytes| ("forebay.toml", bytes));
    let data = Path::new("./forebay-writer");
    shown_as(&Inputs { file, folder: &within, environment: &environment, flags: &flags, data, scopes }, writer::read)
}

#[test]
fn every_case_is_shown_as_expected() {
    let mut cases: Vec<PathBuf> =
        fs::read_dir(folder("tests/config")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 15, "the cases are missing");
    let mut wrong = String::new();
    for case in cases {
        let shown = run_case(&case);
        assert!(!shown.contains("TOPSECRET"), "{shown}");
        let expected = case.join("expected.txt");
        if std::env::var_os("FOREBAY_TEST_BLESS").is_some() {
            fs::write(&expected, &shown).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != shown {
            wrong += &format!("---- {}\n{shown}", case.display());
        }
    }
    assert!(wrong.is_empty(), "not as expected:\n{wrong}");
}

#[test]
fn no_file_means_the_documented_default() {
    let flags = Flags::default();
    let environment = Environment::default();
    let read_text = |text: &str| {
        let file = Some(("forebay.toml", text.as_bytes()));
        read(&Inputs {
            file,
            folder: Path::new(""),
            environment: &environment,
            flags: &flags,
            data: Path::new("d"),
            scopes: Scopes::default(),
        })
        .unwrap()
        .0
    };
    let inputs = Inputs {
        file: None,
        folder: Path::new(""),
        environment: &environment,
        flags: &flags,
        data: Path::new("d"),
        scopes: Scopes::default(),
    };
    let (configuration, warnings) = read(&inputs).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(configuration, read_text(BUILT_IN));
    assert_eq!(configuration, read_text("[gateway]\nallow_anonymous = false"));
    let sinks: Vec<_> = configuration.sinks.values().map(SinkSettings::to_string).collect();
    assert_eq!(sinks, ["sqlite d/events.db, table events"]);
}

#[test]
fn only_a_hundred_mistakes_are_shown() {
    let text: String = (0..250).map(|number| format!("unknown_{number} = 1\n")).collect();
    let report =
        shown(Some(text.as_bytes()), Path::new(""), &Environment::default(), &Flags::default(), Scopes::default());
    assert_eq!(report.matches("unknown setting").count(), 100);
    assert!(report.ends_with("250 mistakes, 150 of them not shown\n"), "{report}");
}

#[test]
fn every_kind_of_sink_has_an_example() {
    let page = |name: &str| fs::read_to_string(folder("../../docs").join(name)).unwrap();
    let sinks = page("reference/configuration/sinks.md");
    for kind in kinds::names() {
        assert!(sinks.contains(&format!("kind = \"{kind}\"")), "no example for {kind}");
        assert!(every_sink::SETTINGS[0].text.contains(&format!("`{kind}`")), "the setting doesn't name {kind}");
    }
    assert!(page("concepts/configuration.md").contains(BUILT_IN), "the default is not shown as it is");
}

/// Pieces of configurations, so arbitrary texts reach deep into the reader.
fn fragment() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "[gateway]\n",
        "[types.a]\n",
        "[types.a.aggregate.b]\n",
        "window = ",
        "measures = { n = ",
        "lateness = ",
        "[types.\"*\"]\n",
        "[[sinks]]\n",
        "[sinks.a]\n",
        "listen = ",
        "routes = ",
        "kind = ",
        "path = ",
        "table = ",
        "shards = ",
        "id = ",
        "schema = ",
        "schema_formats = ",
        "\"a\"",
        "\"sqlite\"",
        "\"${A}",
        "${",
        "}",
        "[",
        "]",
        "\"",
        "'''",
        "\n",
        "\r",
        "\t",
        "1",
        "-0x1",
        "true",
        "é",
        "\u{1F600}",
        "\u{200B}",
        "\0",
        "1979-05-27",
        "{",
        ",",
        ".",
        "=",
        "#",
    ];
    prop_oneof![proptest::sample::select(PIECES).prop_map(str::to_owned), ".{0,3}"]
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = shown(Some(&bytes), Path::new(""), &Environment::default(), &Flags::default(), Scopes::default());
    }

    #[test]
    fn no_text_panics(pieces in prop::collection::vec(fragment(), 0..24), value in ".{0,6}") {
        let names = ["A", "FOREBAY_GATEWAY_LISTEN", "FOREBAY_TYPES_A_ROUTES", "FOREBAY_SINKS_A_PATH", "FOREBAY_GATEWAY_X"];
        let environment = names.into_iter().map(|name| (name, value.clone())).collect();
        let flags = Flags { listen: Some(value), ..Flags::default() };
        let text = pieces.concat();
        let _ = shown(Some(text.as_bytes()), Path::new(""), &environment, &flags, Scopes::default());
    }
}
