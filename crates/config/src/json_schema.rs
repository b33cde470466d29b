//! The JSON Schema of the configuration file, for editors. It knows names, types, words and bounds of numbers. What depends on other settings,
//! on files or on variables is a matter of `forebay check`.

use ::intake::kinds::KINDS as KINDS_OF_INTAKES;
use serde_json::{Map, Value, json};

use settings::{Kind, Setting, Unset};

use crate::declared::{Inner, ROOT, Table, plain};
use crate::intakes;
use crate::old_names::OLD_NAMES;
use crate::sinks::every_sink;
use crate::sinks::kinds;

/// A string with a variable, whose value is unknown.
const VARIABLE: &str = "#/$defs/variable";
const KIND: &str = "kind of sink";
const SINK: &[&str] = &["sinks", "*"];
const INTAKE: &[&str] = &["intakes", "*"];
const SINK_NAME: &str = "^[a-z0-9][a-z0-9_-]{0,63}$";
/// There is one way to match each text: with several, a regex engine with backtracking would try them all.
const DURATION: &str = r"^\s*0\s*$|^\s*([0-9]+(\.[0-9]+)?\s*[a-zµ]+\s*)+$|\$\{";
/// The port is at most 65535.
const ADDRESS: &str = r"^.+:([0-5]?[0-9]{1,4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$|\$\{";
/// Lists and tables that need an entry.
const NOT_EMPTY: &[&str] = &["routes", "servers"];
const TYPE_NAME: &str = r"^(\*|[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*)$";

/// The schema as JSON.
#[must_use]
pub fn json_schema() -> String {
    let mut schema = table(&ROOT, &[]);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Forebay's configuration file");
    schema["properties"]["sinks"] = json!({
        "description": "the stores that events go to",
        "type": "object",
        "propertyNames": { "pattern": SINK_NAME },
        "additionalProperties": sink(),
    });
    schema["properties"][intakes::TABLE] = json!({
        "description": "the protocols of senders that can't be changed",
        "type": "object",
        "propertyNames": { "pattern": SINK_NAME },
        "additionalProperties": intake(),
    });
    schema["$defs"] = json!({
        "variable": { "type": "string", "pattern": r"\$\{" },
        "size": {
            "type": "string",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?(\s*([KMGTkmgt][Ii]?)?[Bb])?\s*$|\$\{",
        },
        "duration": { "type": "string", "pattern": DURATION },
        "address": { "type": "string", "pattern": ADDRESS },
        "pointer": { "type": "string", "pattern": r"^$|^/|\$\{" },
    });
    format!("{schema:#}\n")
}

fn table(table: &Table, path: &[&str]) -> Value {
    let mut properties = properties(table.all(), path);
    for (name, inner) in table.tables {
        let value = match inner {
            Inner::Settings(inner) => self::table(inner, &[path, &[name]].concat()),
            Inner::Named(_, inner) => json!({
                "type": "object",
                "propertyNames": { "pattern": names_in(name) },
                "additionalProperties": self::table(inner, &[path, &[name, "*"]].concat()),
            }),
            Inner::List(inner) => json!({ "type": "array", "items": self::table(inner, &[path, &[name]].concat()) }),
        };
        properties.insert((*name).to_owned(), value);
    }
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// The names that a table of tables may have.
fn names_in(table: &str) -> &'static str {
    match table {
        "types" => TYPE_NAME,
        "aggregate" => "^[a-z0-9_-]+$",
        _ => "",
    }
}

fn properties(settings: impl IntoIterator<Item = &'static Setting>, path: &[&str]) -> Map<String, Value> {
    let mut properties = Map::new();
    for setting in settings {
        let old = OLD_NAMES.iter().find(|old| old.table == path && old.key == setting.name);
        let mut schema = of_kind(&setting.kind);
        if NOT_EMPTY.contains(&setting.name) {
            schema["minItems"] = json!(1);
            schema["minProperties"] = json!(1);
        }
        if let Some(old) = old {
            let words: Vec<&str> = old.old_values.iter().map(|(word, _)| *word).collect();
            if !words.is_empty() {
                schema = json!({ "anyOf": [schema, { "enum": words, "deprecated": true }] });
            }
            if let Some(key) = old.old_key {
                let mut deprecated = schema.clone();
                deprecated["deprecated"] = json!(true);
                deprecated["description"] = json!(format!("the old name of `{}`", setting.name));
                properties.insert(key.to_owned(), deprecated);
            }
        }
        describe(&mut schema, setting);
        properties.insert(setting.name.to_owned(), schema);
    }
    properties
}

fn describe(schema: &mut Value, setting: &Setting) {
    schema["description"] = json!(plain(setting.text));
    let default = match setting.default {
        Unset::Boolean(value) => json!(value),
        Unset::Integer(number) => json!(number),
        Unset::Text(_) | Unset::Size(_) | Unset::Duration(_) => json!(setting.default.to_string()),
        Unset::None | Unset::Required | Unset::Described(_) => return,
    };
    schema["default"] = default;
}

/// The schema of a value. Text within a string may be a variable.
fn of_kind(kind: &Kind) -> Value {
    match kind {
        Kind::Text("JSON pointer") => json!({ "$ref": "#/$defs/pointer" }),
        Kind::Text("IP address and port") => json!({ "$ref": "#/$defs/address" }),
        Kind::Text(KIND) => {
            let kinds: Vec<&str> = kinds::names().collect();
            json!({ "anyOf": [{ "enum": kinds }, { "$ref": VARIABLE }] })
        }
        Kind::Text(intakes::kinds::WORD) => {
            let kinds: Vec<&str> = intakes::kinds::all().collect();
            json!({ "anyOf": [{ "enum": kinds }, { "$ref": VARIABLE }] })
        }
        Kind::Text(_) => json!({ "type": "string" }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Integer(min, max) => {
            let mut schema = json!({ "type": "integer" });
            if *min > i64::MIN {
                schema["minimum"] = json!(min);
            }
            if *max < i64::MAX {
                schema["maximum"] = json!(max);
            }
            schema
        }
        Kind::Size(..) => json!({ "$ref": "#/$defs/size" }),
        Kind::Duration(..) => json!({ "$ref": "#/$defs/duration" }),
        Kind::Choice(words) => json!({ "anyOf": [{ "enum": words }, { "$ref": VARIABLE }] }),
        Kind::List(kind) => json!({ "type": "array", "items": of_kind(kind) }),
        Kind::Names(kind) => json!({ "type": "object", "additionalProperties": of_kind(kind) }),
        Kind::Table(settings) => {
            let required: Vec<&str> = required(settings).collect();
            let properties = properties(*settings, &[]);
            json!({ "type": "object", "additionalProperties": false, "properties": properties, "required": required })
        }
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(of_kind).collect::<Vec<_>>() }),
        Kind::Open(keys) => {
            let mut keys = keys();
            keys.sort_unstable();
            keys.dedup();
            json!({ "type": "object", "minProperties": 1, "propertyNames": { "enum": keys } })
        }
    }
}

/// The settings of an inner table that must be set: no variable can do it.
fn required(settings: &'static [Setting]) -> impl Iterator<Item = &'static str> {
    settings.iter().filter(|setting| matches!(setting.default, Unset::Required)).map(|setting| setting.name)
}

/// A sink: its kind decides which settings it may have.
fn sink() -> Value {
    let kinds: Vec<&str> = kinds::names().collect();
    let rules = kinds.iter().map(|kind| {
        let mut properties = Map::new();
        if kinds::find(kind).is_none() {
            // The layout of its store, which the writer checks.
            properties.extend(kinds::writer_keys().into_iter().map(|key| (key.to_owned(), json!(true))));
        }
        let own: Vec<&Setting> =
            kinds::find(kind).map_or_else(|| kinds::OF_WRITER.iter().collect(), |kind| kind.all_settings().collect());
        properties.extend(self::properties(every_sink::SETTINGS.iter().chain(own), SINK));
        json!({
            "if": { "properties": { "kind": { "const": kind } }, "required": ["kind"] },
            "then": { "additionalProperties": false, "properties": properties },
        })
    });
    let rules: Vec<Value> = rules.collect();
    json!({
        "type": "object",
        "required": ["kind"],
        "properties": { "kind": of_kind(&Kind::Text(KIND)) },
        "allOf": rules,
    })
}

/// An intake: its kind decides which settings it may have.
fn intake() -> Value {
    let rules = KINDS_OF_INTAKES.iter().map(|kind| {
        let properties = self::properties(intakes::SETTINGS.iter().chain(kind.settings), INTAKE);
        json!({
            "if": { "properties": { "kind": { "const": kind.name } }, "required": ["kind"] },
            "then": { "additionalProperties": false, "properties": properties },
        })
    });
    let rules: Vec<Value> = rules.collect();
    json!({
        "type": "object",
        "required": ["kind"],
        "properties": { "kind": of_kind(&Kind::Text(intakes::kinds::WORD)) },
        "allOf": rules,
    })
}

#[cfg(test)]
mod tests;
