//! All settings, by their tables. `forebay config keys`, the pages, the JSON Schema and the masking of secrets read this list.

#[cfg(test)]
mod tests;

use ::intake::kinds::KINDS as KINDS_OF_INTAKES;
use settings::{Setting, TakesEffect};

use crate::event_types::{aggregate, event_type, lookup_tables};
use crate::intakes;
use crate::port::tls;
use crate::push::{otlp, statsd};
use crate::sinks::every_sink;
use crate::sinks::kinds::{self, KINDS};
use crate::{
    admin, bridge, bus, configuration_file, console, etcd, gateway, journal, log, peers, registration, upstreams,
    writer_table,
};

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its settings, in lists.
    pub(crate) settings: &'static [&'static [Setting]],
    /// The tables within it.
    pub(crate) tables: &'static [(&'static str, Inner)],
}

/// A table within a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inner {
    /// It has settings.
    Settings(&'static Table),
    /// It has a table for each name that the operator chooses. Texts call such a name by this word.
    Named(&'static str, &'static Table),
    /// It is a list of tables.
    List(&'static Table),
}

const TLS: Table = Table { settings: &[tls::SETTINGS], tables: &[] };
const GATEWAY: Table = Table { settings: &[gateway::SETTINGS], tables: &[(tls::TABLE, Inner::Settings(&TLS))] };
const ADMIN: Table = Table { settings: &[admin::SETTINGS], tables: &[(tls::TABLE, Inner::Settings(&TLS))] };
const PEERS: Table =
    Table { settings: &[peers::SETTINGS], tables: &[(etcd::TABLE, Inner::Settings(&ETCD_OF_GATEWAY))] };
const CONSOLE: Table = Table { settings: &[console::SETTINGS], tables: &[(peers::TABLE, Inner::Settings(&PEERS))] };
const JOURNAL: Table = Table { settings: &[journal::SETTINGS], tables: &[] };
const LOG: Table = Table { settings: &[log::SETTINGS], tables: &[] };
const AGGREGATE: Table = Table { settings: &[aggregate::SETTINGS], tables: &[] };
const TYPE: Table =
    Table { settings: &[event_type::SETTINGS], tables: &[(aggregate::TABLE, Inner::Named("NAME", &AGGREGATE))] };
const LOOKUP: Table = Table { settings: &[lookup_tables::SETTINGS], tables: &[] };
const ETCD_OF_GATEWAY: Table = Table { settings: &[etcd::SETTINGS, upstreams::OF_ETCD], tables: &[] };
const ETCD_OF_WRITER: Table = Table { settings: &[etcd::SETTINGS, registration::SETTINGS], tables: &[] };
const UPSTREAM: Table =
    Table { settings: &[upstreams::SETTINGS], tables: &[(etcd::TABLE, Inner::Settings(&ETCD_OF_GATEWAY))] };
const WRITER: Table = Table {
    settings: &[writer_table::SETTINGS],
    tables: &[(tls::TABLE, Inner::Settings(&TLS)), (etcd::TABLE, Inner::Settings(&ETCD_OF_WRITER))],
};
const EVENTS: Table = Table { settings: &[bus::OF_EVENTS], tables: &[] };
const BUS: Table = Table { settings: &[bus::SETTINGS], tables: &[(bus::EVENTS, Inner::Settings(&EVENTS))] };
const OTLP: Table = Table { settings: &[otlp::SETTINGS], tables: &[] };
const STATSD: Table = Table { settings: &[statsd::SETTINGS], tables: &[] };
const BRIDGE: Table = Table { settings: &[bridge::SETTINGS], tables: &[] };
/// The file without its sinks and intakes.
pub(crate) static ROOT: Table = Table {
    settings: &[configuration_file::SETTINGS],
    tables: &[
        ("gateway", Inner::Settings(&GATEWAY)),
        (admin::TABLE, Inner::Settings(&ADMIN)),
        (console::TABLE, Inner::Settings(&CONSOLE)),
        ("journal", Inner::Settings(&JOURNAL)),
        ("log", Inner::Settings(&LOG)),
        ("types", Inner::Named("X", &TYPE)),
        ("tables", Inner::Named("X", &LOOKUP)),
        ("upstreams", Inner::Named("X", &UPSTREAM)),
        (WRITER_TABLE, Inner::Settings(&WRITER)),
        (bus::TABLE, Inner::Settings(&BUS)),
        (bridge::TABLE, Inner::List(&BRIDGE)),
        (otlp::TABLE, Inner::Settings(&OTLP)),
        (statsd::TABLE, Inner::Settings(&STATSD)),
    ],
};
const WRITER_TABLE: &str = "writer";

impl Table {
    /// All its settings.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.settings.iter().copied().flatten()
    }
}

/// Settings of one table of the file.
#[derive(Clone, Debug)]
pub struct DeclaredTable {
    /// The names of the tables around it, and its own. `X` and `NAME` are names that the operator chooses.
    pub path: Vec<&'static str>,
    /// The kind of sink or intake that has the settings, if not all kinds have them.
    pub kind: Option<&'static str>,
    /// Whether the file has a list of such tables, as `[[bridge]]`.
    pub is_list: bool,
    /// The settings.
    pub settings: Vec<&'static Setting>,
}

impl DeclaredTable {
    /// The path of a setting, as `gateway.listen`.
    #[must_use]
    pub fn key(&self, setting: &Setting) -> String {
        let parts: Vec<&str> = self.path.iter().copied().chain([setting.name]).collect();
        parts.join(".")
    }

    /// The variable of a setting, if it has one.
    #[must_use]
    pub fn variable(&self, setting: &Setting) -> Option<String> {
        let name = || settings::variable_name(self.path.iter().copied().chain([setting.name]));
        (setting.kind.has_variable() && !self.is_list).then(name)
    }

    /// When another value of a setting takes effect. A writer has no reload.
    #[must_use]
    pub fn takes_effect(&self, setting: &Setting) -> TakesEffect {
        if self.path.first() == Some(&WRITER_TABLE) { TakesEffect::Restart } else { setting.takes_effect }
    }
}

/// All settings, in the order of the pages.
#[must_use]
pub fn declared() -> Vec<DeclaredTable> {
    let mut found = Vec::new();
    gather(&ROOT, &[], false, &mut found);
    let sink = |kind, settings| DeclaredTable { path: vec!["sinks", "X"], kind, is_list: false, settings };
    found.push(sink(None, every_sink::SETTINGS.iter().collect()));
    let of_stores = KINDS.iter().map(|kind| sink(Some(kind.name), kind.all_settings().collect()));
    found.extend(of_stores.filter(|table| !table.settings.is_empty()));
    found.push(sink(Some(kinds::WRITER), kinds::OF_WRITER.iter().collect()));
    let intake = |kind, settings| DeclaredTable { path: vec![intakes::TABLE, "X"], kind, is_list: false, settings };
    found.push(intake(None, intakes::SETTINGS.iter().collect()));
    let of_intakes = KINDS_OF_INTAKES.iter().map(|kind| intake(Some(kind.name), kind.settings.iter().collect()));
    found.extend(of_intakes.filter(|table| !table.settings.is_empty()));
    found
}

fn gather(table: &Table, path: &[&'static str], is_list: bool, found: &mut Vec<DeclaredTable>) {
    let settings: Vec<_> = table.all().collect();
    if !settings.is_empty() {
        found.push(DeclaredTable { path: path.to_vec(), kind: None, is_list, settings });
    }
    for (name, inner) in table.tables {
        match inner {
            Inner::Settings(table) => gather(table, &[path, &[name]].concat(), false, found),
            Inner::Named(word, table) => gather(table, &[path, &[name, word]].concat(), false, found),
            Inner::List(table) => gather(table, &[path, &[name]].concat(), true, found),
        }
    }
}

/// A text without the targets of its links, for terminals and editors.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, label, after)) = link(rest) {
        plain.push_str(before);
        plain.push_str(label);
        rest = after;
    }
    plain + rest
}

/// The text before the first link, the link's label, and the text after it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (head, rest) = text.split_once("](")?;
    let (_, after) = rest.split_once(')')?;
    let (before, label) = head.rsplit_once('[')?;
    Some((before, label, after))
}
