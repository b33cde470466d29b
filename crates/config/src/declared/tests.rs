//! The tables of settings on the pages of `docs/reference/configuration` are those of the declarations. With `FOREBAY_TEST_BLESS` set, they
//! are written instead of compared.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use ::intake::IntakePath;
use access::Scopes;
use settings::{Environment, Kind, Setting, TakesEffect, Unset, setting};
use testkit::generated::generated_block;
use testkit::pages::of_users;

use super::{DeclaredTable, KINDS_OF_INTAKES, declared, plain};
use crate::{Flags, Inputs, intakes};

const BEGIN: &str = "<!-- generated: settings of ";

/// The name of a table on the pages.
fn name(table: &DeclaredTable) -> String {
    let path = match table.path.join(".") {
        path if path.is_empty() => "the file".to_owned(),
        path if table.is_list => format!("[[{path}]]"),
        path => format!("[{path}]"),
    };
    table.kind.map_or(path.clone(), |kind| format!("{path} {kind}"))
}

fn markdown(table: &DeclaredTable) -> String {
    let mut text = "| setting | variable | type | default | description |\n|---|---|---|---|---|\n".to_owned();
    for setting in &table.settings {
        text += &row(table, setting);
    }
    text
}

fn row(table: &DeclaredTable, setting: &Setting) -> String {
    let variable = match (table.path.is_empty(), setting.name) {
        (true, name) => format!("`{}`", settings::variable_name([name])),
        _ => table.variable(setting).map_or_else(|| "–".to_owned(), |variable| format!("`{variable}`")),
    };
    let default = match setting.default {
        Unset::None | Unset::Required | Unset::Described(_) | Unset::Text("") => setting.default.to_string(),
        _ => format!("`{}`", setting.default),
    };
    // Nothing reloads a writer: its page says so once.
    let restart = match setting.takes_effect {
        TakesEffect::Restart if table.path.first() != Some(&"writer") => ". Needs a restart",
        _ => "",
    };
    format!("| `{}` | {variable} | {} | {default} | {}{restart} |\n", setting.name, setting.kind, setting.text)
}

#[test]
fn pages_have_every_setting_as_it_is_declared() {
    let tables = declared();
    let mut shown = Vec::new();
    for (page, text) in of_users() {
        let marked = text.lines().filter_map(|line| line.strip_prefix(BEGIN)?.strip_suffix(" -->"));
        for wanted in marked {
            let table = tables.iter().find(|table| name(table) == wanted);
            let table = table.unwrap_or_else(|| panic!("{page}: no table is called {wanted:?}"));
            generated_block(&page, &format!("settings of {wanted}"), &markdown(table));
            shown.push(wanted.to_owned());
        }
    }
    shown.sort();
    let mut wanted: Vec<String> = tables.iter().map(name).collect();
    wanted.sort();
    assert_eq!(shown, wanted, "each table of settings is on one page, once");
}

#[test]
fn page_has_every_kind_of_intake() {
    let mut table = "| kind | path | line for the sender |\n|---|---|---|\n".to_owned();
    for kind in KINDS_OF_INTAKES {
        let path = match kind.path {
            IntakePath::Fixed(path) => path.to_owned(),
            IntakePath::Named(path) => format!("{path}/X"),
        };
        table += &format!("| `{}` | `{path}` | `{}` |\n", kind.name, kind.sender.replace("{URL}", "URL"));
        assert!(
            intakes::SETTINGS[0].text.contains(&format!("`{}`", kind.name)),
            "the setting doesn't name {}",
            kind.name
        );
    }
    generated_block("docs/reference/configuration/intakes.md", "kinds of intakes", &table);
}

#[test]
fn every_setting_has_an_example_and_a_short_description() {
    for table in declared() {
        let mut names = BTreeSet::new();
        for setting in &table.settings {
            let key = table.key(setting);
            assert!(names.insert(setting.name), "{key} is declared twice");
            assert!(!setting.text.is_empty() && !setting.text.ends_with('.'), "{key}");
            assert!(setting.text.split_whitespace().count() <= 40, "{key}: more than 40 words");
            assert!(!setting.text.contains('|'), "{key}: a table's cell has no |");
            let has_value = !matches!(setting.default, Unset::None | Unset::Required | Unset::Described(_));
            assert!(has_value || !setting.example.is_empty(), "{key} has no example");
        }
    }
}

#[test]
fn links_become_their_labels() {
    assert_eq!(plain("as [tokens](../a.md#b) say, [1] or [`x`](y)"), "as tokens say, [1] or `x`");
    assert_eq!(plain("none [here"), "none [here");
}

/// The report on a file with this value of a setting. Errors of other settings are in it too.
fn report(table: &DeclaredTable, setting: &Setting, value: &str) -> String {
    let path = table.path.join(".").replace("NAME", "b").replace('X', "a");
    let header = match path.as_str() {
        "" => String::new(),
        path if table.is_list => format!("[[{path}]]\n"),
        path => format!("[{path}]\n"),
    };
    let kind = table.kind.map_or_else(String::new, |kind| format!("kind = \"{kind}\"\n"));
    let own = match (table.path.last(), table.kind) {
        (Some(&"NAME"), _) => "window = \"1h\"\nmeasures = { n = \"count\" }\nroutes = [\"l\"]\n",
        (Some(&"etcd"), _) => "endpoints = [\"http://a\"]\n",
        (Some(&"X"), _) if table.path.first() == Some(&"upstreams") => "servers = [\"http://a\"]\n",
        // Most settings of webhooks are read only with this provider.
        (_, Some("webhook")) if table.path.first() == Some(&"intakes") && setting.name != "provider" => {
            "provider = \"hmac\"\n"
        }
        (_, Some("writer")) => "store = \"postgres\"\n",
        _ => "",
    };
    let text = format!("{header}{kind}{own}{} = {value}\n[sinks.l]\nkind = \"null\"\n", setting.name);
    let inputs = Inputs {
        folder: Path::new(""),
        file: Some(("forebay.toml", text.as_bytes())),
        environment: &Environment::default(),
        flags: &Flags::default(),
        data: Path::new("d"),
        scopes: Scopes::default(),
    };
    let report = if path.starts_with("writer") {
        crate::writer::read(&inputs).err()
    } else {
        crate::configuration::read(&inputs).err()
    };
    report.map(|report| report.to_string()).unwrap_or_default()
}

/// Values at the bounds of a setting, values beyond them, and its words and words that it hasn't.
fn values(setting: &Setting) -> (Vec<String>, Vec<String>) {
    let quoted = |text: String| format!("{text:?}");
    let ms = Duration::from_millis(1);
    match setting.kind {
        Kind::Integer(min, max) => {
            let beyond = [min.checked_sub(1), max.checked_add(1)].into_iter().flatten();
            (vec![min.to_string(), max.to_string()], beyond.map(|number| number.to_string()).collect())
        }
        Kind::Size(min, max) => {
            let beyond = [min.checked_sub(1), max.checked_add(1)].into_iter().flatten();
            let within = if max == u64::MAX { vec![min] } else { vec![min, max] };
            (
                within.into_iter().map(|bytes| quoted(setting::size(bytes))).collect(),
                beyond.map(|bytes| quoted(setting::size(bytes))).collect(),
            )
        }
        Kind::Duration(min, max) => {
            let beyond = [min.checked_sub(ms), max.checked_add(Duration::from_secs(1))].into_iter().flatten();
            (
                [min, max].into_iter().map(|length| quoted(setting::duration(length))).collect(),
                beyond.map(|length| quoted(setting::duration(length))).collect(),
            )
        }
        Kind::Choice(words) => {
            (words.iter().map(|word| quoted((*word).to_owned())).collect(), vec!["\"nonsense\"".to_owned()])
        }
        _ => (Vec::new(), Vec::new()),
    }
}

#[test]
fn parser_has_the_bounds_and_words_that_are_declared() {
    let mut tested = 0;
    for table in declared() {
        for setting in &table.settings {
            let key = table.key(setting).replace("NAME", "b").replace('X', "a");
            let key = if table.is_list { key.replacen('.', "[0].", 1) } else { key };
            let is_wrong = |value: &str| report(&table, setting, value).contains(&format!("invalid value for `{key}`"));
            let (within, beyond) = values(setting);
            tested += beyond.len();
            // The longest of several times may be too long for an aggregate with the others.
            let is_together = table.path.last() == Some(&"NAME") && matches!(setting.kind, Kind::Duration(..));
            for value in within.iter().filter(|_| !is_together) {
                assert!(!is_wrong(value), "{key} = {value} is rejected: {}", report(&table, setting, value));
            }
            for value in &beyond {
                assert!(is_wrong(value), "{key} = {value} is accepted: {}", report(&table, setting, value));
            }
        }
    }
    assert!(tested > 80, "only {tested}");
}
