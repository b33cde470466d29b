//! Reloads and access of intakes. The errors are cases of `tests/config`.

use std::num::NonZeroUsize;
use std::path::Path;

use access::{Demand, Scope};
use settings::Environment;

use crate::{Configuration, Flags, Inputs, changes, configuration, masked_variables, needs_restart};

fn read_with(text: &str, environment: &Environment) -> Configuration {
    let text = format!("{text}[types.\"*\"]\nroutes = [\"l\"]\n[sinks.l]\nkind = \"null\"\n");
    let inputs = Inputs {
        folder: Path::new(""),
        file: Some(("forebay.toml", text.as_bytes())),
        environment,
        flags: &Flags::default(),
        data: Path::new("d"),
        scopes: [Scope::Ingest].into_iter().collect(),
    };
    configuration::read(&inputs).map(|(configuration, _)| configuration).unwrap()
}

fn read(text: &str) -> Configuration {
    read_with(text, &Environment::default())
}

#[test]
fn only_ports_of_intakes_need_restart() {
    let before = read("[intakes.a]\nkind = \"loki\"\nlisten = \"127.0.0.1:3100\"\n[intakes.b]\nkind = \"otlp\"\n");
    let unfit = |after: &str| needs_restart(&before, &read(after), NonZeroUsize::MIN);
    let same_ports = "[intakes.a]\nkind = \"loki\"\nlisten = \"127.0.0.1:3100\"\npath = \"/l\"\ntype = \"x\"\n[intakes.c]\nkind = \"segment\"\n";
    assert!(unfit(same_ports).is_empty());
    assert_eq!(changes(&before, &read(same_ports)), ["intake a has changed", "intake c is new", "intake b is removed"]);
    for (after, expected) in [
        ("", "`intakes.a.listen` is not set now, but was 127.0.0.1:3100 when Forebay started"),
        (
            "[intakes.a]\nkind = \"loki\"\nlisten = \"127.0.0.1:3101\"\n",
            "`intakes.a.listen` is 127.0.0.1:3101 now, but was 127.0.0.1:3100 when Forebay started",
        ),
    ] {
        let [sentence] = &unfit(after)[..] else { panic!("{after}") };
        assert!(sentence.starts_with(expected), "{sentence}");
    }
}

#[test]
fn reachable_port_always_needs_tokens() {
    let demand = |listen: &str| read(&format!("[intakes.a]\nkind = \"loki\"\nlisten = \"{listen}\"\n")).demand();
    assert_eq!(demand("127.0.0.1:3100"), Demand::WithTokens);
    assert_eq!(demand("0.0.0.0:3100"), Demand::Always);
}

#[test]
fn variables_set_intakes() {
    let variables = [("FOREBAY_INTAKES_A_TYPE", "logs"), ("FOREBAY_INTAKES_A_DEDUPE", "none")];
    let environment: Environment = variables.into_iter().collect();
    let read = read_with("[intakes.a]\nkind = \"loki\"\n", &environment);
    let intake = &read.intakes["a"];
    assert_eq!((intake.type_name.as_ref().map(|name| name.as_str()), intake.dedupes), (Some("logs"), false));
    assert_eq!(masked_variables(&environment), ["FOREBAY_INTAKES_A_DEDUPE=none", "FOREBAY_INTAKES_A_TYPE=logs"]);
}

#[test]
fn another_secret_is_a_change() {
    let read = |secret: &str| {
        let text = "[intakes.a]\nkind = \"webhook\"\ntype = \"a\"\nprovider = \"github\"\nsecrets = [\"${SECRET}\"]\n";
        read_with(text, &[("SECRET", secret)].into_iter().collect())
    };
    assert!(changes(&read("one"), &read("one")).is_empty());
    assert_eq!(changes(&read("one"), &read("two")), ["intake a has changed"]);
    assert!(!format!("{:?}", read("TOPSECRET")).contains("TOPSECRET"));
}

#[test]
fn signed_port_demands_no_tokens_elsewhere() {
    let text = "[intakes.a]\nkind = \"webhook\"\ntype = \"a\"\nlisten = \"0.0.0.0:1\"\nprovider = \"github\"\nsecrets = [\"s\"]\n";
    assert_eq!(read(text).demand(), Demand::WithTokens);
}
