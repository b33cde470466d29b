//! The schema accepts valid configurations and rejects mistakes, as our own validator sees it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use schema::{Schema, SchemaOptions};
use serde_json::Value;
use settings::{Setting, Unset};

use super::json_schema;
use crate::{DeclaredTable, declared};

fn compiled() -> Schema {
    let documents = BTreeMap::new();
    Schema::compile("forebay.schema.json", &json_schema(), &SchemaOptions { documents: &documents, formats: false })
        .unwrap()
}

/// The document as JSON.
fn json_of(toml: &str) -> String {
    let table: toml::Table = toml.parse().unwrap();
    serde_json::to_string(&Value::from_iter(table.into_iter().map(|(key, value)| (key, json_value(value))))).unwrap()
}

fn json_value(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(value) => value.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => values.into_iter().map(json_value).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(key, value)| (key, json_value(value))).collect(),
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files(&path, found);
        } else if is_configuration(&path) {
            found.push(path);
        }
    }
}

fn is_configuration(path: &Path) -> bool {
    let is_other = ["Cargo.toml", "case.toml"].iter().any(|other| path.ends_with(other));
    path.extension().is_some_and(|extension| extension == "toml") && !is_other
}

/// Configurations of examples and deployments, and those of this crate's tests that are valid.
fn valid() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut found, mut cases) = (Vec::new(), Vec::new());
    for folder in ["examples", "deploy", "packaging"] {
        files(&root.join("../..").join(folder), &mut found);
    }
    files(&root.join("tests/config"), &mut cases);
    let is_valid = |case: &PathBuf| {
        let expected = fs::read_to_string(case.with_file_name("expected.txt")).unwrap_or_default();
        expected.starts_with("ok\n") || expected.contains("\nok\n")
    };
    found.extend(cases.into_iter().filter(is_valid));
    found
}

#[test]
fn valid_configurations_match() {
    let (schema, valid) = (compiled(), valid());
    assert!(valid.len() > 20, "only {} files", valid.len());
    for path in valid {
        let text = fs::read_to_string(&path).unwrap();
        let result = schema.check(&json_of(text.trim_start_matches("\u{feff}")));
        assert!(result.is_ok(), "{}: {result:?}", path.display());
    }
}

#[test]
fn planted_mistakes_do_not_match() {
    let schema = compiled();
    let sink = "[sinks.a]\nkind = \"sqlite\"\n";
    let accepted = format!("[gateway]\nshards = 2\n[types.a]\nroutes = [\"a\"]\n{sink}");
    assert!(schema.check(&json_of(&accepted)).is_ok());
    for mistake in [
        "rol = \"serve\"",
        "role = \"server\"",
        "[gatway]",
        "[gateway]\nlisten = 8080",
        "[gateway]\nlisten = \"localhost\"",
        "[gateway]\nlisten = \"127.0.0.1:65536\"",
        "[gateway]\nshards = 0",
        "[gateway]\nshards = 1025",
        "[gateway]\nshards = \"2\"",
        "[gateway]\nallow_anonymous = \"yes\"",
        "[gateway]\nack_timeout = 10",
        "[gateway]\nack_timeout = \"soon\"",
        "[gateway]\nmemory = \"512 mega\"",
        "[gateway]\nmemory = \"512M\"",
        "[gateway]\ntype_pointer = \"type\"",
        "[gateway]\ntype_rules = [{ type = \"a\" }]",
        "[gateway.tls]\ncertificat = \"a.pem\"",
        "[journal]\nkeep_free = 1",
        "[log]\nlevel = \"verbose\"",
        "[types.\"A b\"]\nroutes = [\"a\"]",
        "[types.a]\nroutes = \"a\"",
        "[types.a]\nroutes = []",
        "[types.a]\nroutes = [{ sink = \"a\" }]",
        "[types.a]\ntransform = [{ dorp = \"/a\" }]",
        "[types.a]\npartial = 207",
        "[types.a.aggregate.b]\nmeasures = [\"count\"]",
        "[types.a.aggregate.b]\nlate = \"drop\"",
        "[sinks.a]\nkind = \"sqlte\"",
        "[sinks.a]\npath = \"a.db\"",
        "[sinks.a]\nkind = \"sqlite\"\nurl = \"http://a\"",
        "[sinks.A]\nkind = \"sqlite\"",
        "[sinks.a]\nkind = \"redis\"\nmode = \"strem\"",
        "[sinks.a]\nkind = \"nats\"\nreplicas = 6",
        "[sinks.a]\nkind = \"postgres\"\ncolumns = { a = { typ = \"text\" } }",
        "[sinks.a]\nkind = \"sqlite\"\nretention = 30",
        "[upstreams.a]\nservers = 1",
        "[upstreams.a]\nservers = []",
        "[upstreams.a.servers]",
        "[upstreams.a.etcd]\nlease = \"1s\"",
        "[writer]\nshards = 1",
        "[intakes.a]\npath = \"/a\"",
        "[intakes.a]\nkind = \"elastic\"",
        "[intakes.A]\nkind = \"loki\"",
        "[intakes.a]\nkind = \"loki\"\nlisten = \"localhost\"",
        "[intakes.a]\nkind = \"loki\"\ndedupe = \"id\"",
        "[intakes.a]\nkind = \"loki\"\nlisen = \"127.0.0.1:1\"",
    ] {
        assert!(schema.check(&json_of(mistake)).is_err(), "accepted: {mistake}");
    }
}

#[test]
fn variables_are_accepted_in_strings() {
    let text =
        "role = \"${ROLE}\"\n[gateway]\nlisten = \"${IP}:8080\"\nmemory = \"${MEMORY}\"\n[sinks.a]\nkind = \"${KIND}\"";
    assert!(compiled().check(&json_of(text)).is_ok());
}

#[test]
fn white_space_and_all_ports_are_accepted() {
    let schema = compiled();
    for text in [
        "ack_timeout = \"\\t1m\\t30s \"",
        "memory = \"\\t512\\tMiB\\t\"",
        "listen = \"[::1]:65535\"",
        "listen = \"[::]:0\"",
    ] {
        let result = schema.check(&json_of(&format!("[gateway]\n{text}")));
        assert!(result.is_ok(), "{text}: {result:?}");
    }
}

#[test]
fn sink_without_a_kind_has_one_mistake() {
    let error = compiled().check(&json_of("[sinks.a]\npath = \"a.db\"\nurl = \"http://a\"")).unwrap_err();
    assert_eq!(error.list.len(), 1, "{error:?}");
}

/// A file with this value of a setting.
fn file_with(table: &DeclaredTable, setting: &Setting, value: &str) -> String {
    let path = table.path.join(".").replace("NAME", "b").replace('X', "a");
    let header = match path.as_str() {
        "" => String::new(),
        path if table.is_list => format!("[[{path}]]\n"),
        path => format!("[{path}]\n"),
    };
    let kind = match (table.path.first(), table.kind) {
        (Some(&"sinks"), kind) if setting.name != "kind" => format!("kind = \"{}\"\n", kind.unwrap_or("null")),
        (Some(&"intakes"), kind) if setting.name != "kind" => format!("kind = \"{}\"\n", kind.unwrap_or("loki")),
        _ => String::new(),
    };
    format!("{header}{kind}{} = {value}\n", setting.name)
}

#[test]
fn examples_and_defaults_match() {
    let schema = compiled();
    for table in declared() {
        for setting in &table.settings {
            let default = match setting.default {
                Unset::Boolean(_) | Unset::Integer(_) => setting.default.to_string(),
                Unset::Text(text) => format!("{text:?}"),
                Unset::Size(_) | Unset::Duration(_) => format!("{:?}", setting.default.to_string()),
                Unset::None | Unset::Required | Unset::Described(_) => String::new(),
            };
            for value in [setting.example, &default].into_iter().filter(|value| !value.is_empty()) {
                let file = file_with(&table, setting, value);
                let result = schema.check(&json_of(&file));
                assert!(result.is_ok(), "{file}{result:?}");
            }
        }
    }
}
