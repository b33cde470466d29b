//! The settings of each table apart from those of sinks: only their values may be shown. A value under a key that its table doesn't know may
//! be a secret whose key is misspelt or in the wrong table.

use settings::PREFIX;

use crate::event_types::{aggregate, event_type, lookup_tables};
use crate::old_names::current;
use crate::port::tls;
use crate::{configuration_file, etcd, gateway, journal, log, registration, upstreams, writer_table};

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table {
    /// Its settings, in lists.
    settings: &'static [&'static [&'static str]],
    /// The tables within it.
    tables: &'static [(&'static str, Inner)],
}

/// A table within a table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inner {
    /// It has settings.
    Settings(&'static Table),
    /// It has a table for each name that the operator chooses.
    Named(&'static Table),
    /// It has a value for each name that the operator chooses.
    Names,
    /// The steps of a transform.
    Steps,
}

/// The facts that a table has about a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    Setting,
    Table(Inner),
    Nothing,
}

const TLS: Table = Table { settings: &[tls::KEYS], tables: &[] };
const ROUTE: Table = Table { settings: &[&["to", "type", "when"]], tables: &[] };
const GATEWAY: Table = Table {
    settings: &[gateway::KEYS],
    tables: &[("tls", Inner::Settings(&TLS)), ("type_rules", Inner::Settings(&ROUTE))],
};
const ADMIN: Table = Table { settings: &[], tables: &[("tls", Inner::Settings(&TLS))] };
const JOURNAL: Table = Table { settings: &[journal::KEYS], tables: &[] };
const LOG: Table = Table { settings: &[log::KEYS], tables: &[] };
const ETCD: Table = Table { settings: &[etcd::KEYS, &[upstreams::ALLOW_HTTP, registration::LEASE]], tables: &[] };
const UPSTREAM: Table = Table { settings: &[upstreams::KEYS], tables: &[(etcd::TABLE, Inner::Settings(&ETCD))] };
const WRITER: Table = Table {
    settings: &[writer_table::KEYS],
    tables: &[("tls", Inner::Settings(&TLS)), (etcd::TABLE, Inner::Settings(&ETCD))],
};
const LOOKUP: Table = Table { settings: &[lookup_tables::KEYS], tables: &[] };
const AGGREGATE: Table =
    Table { settings: &[aggregate::KEYS], tables: &[("measures", Inner::Names), ("routes", Inner::Settings(&ROUTE))] };
const TYPE: Table = Table {
    settings: &[event_type::KEYS],
    tables: &[
        ("transform", Inner::Steps),
        ("routes", Inner::Settings(&ROUTE)),
        (aggregate::TABLE, Inner::Named(&AGGREGATE)),
    ],
};
/// The file without its sinks.
pub(super) static ROOT: Table = Table {
    settings: &[&[configuration_file::DATA, configuration_file::ROLE]],
    tables: &[
        ("gateway", Inner::Settings(&GATEWAY)),
        ("admin", Inner::Settings(&ADMIN)),
        ("journal", Inner::Settings(&JOURNAL)),
        ("log", Inner::Settings(&LOG)),
        ("writer", Inner::Settings(&WRITER)),
        ("upstreams", Inner::Named(&UPSTREAM)),
        ("types", Inner::Named(&TYPE)),
        ("tables", Inner::Named(&LOOKUP)),
    ],
};
/// Variables that are in no table, without [`PREFIX`].
const VARIABLES: &[&str] = &["ADMIN", "CA", "CONFIG", "DATA", "DEFAULT_IP", "LISTEN", "ROLE", "WRITERS", "WRITERS_CA"];

impl Table {
    /// The kinds of a key.
    pub(super) fn find(&self, key: &str) -> Known {
        match self.tables.iter().find(|(name, _)| *name == key) {
            Some((_, inner)) => Known::Table(*inner),
            None if self.settings.iter().any(|keys| keys.contains(&current(key))) => Known::Setting,
            None => Known::Nothing,
        }
    }

    /// Whether this is the rest of the name of a variable for one of its settings.
    fn has_variable(&self, rest: &str) -> bool {
        let mut settings = self.settings.iter().copied().flatten();
        let rest_key = rest.to_ascii_lowercase();
        settings.any(|key| *key == current(&rest_key))
            || self.tables.iter().any(|(name, inner)| {
                let rest = rest.split_at_checked(name.len()).filter(|(first, _)| first.eq_ignore_ascii_case(name));
                rest.and_then(|(_, rest)| rest.strip_prefix('_')).is_some_and(|rest| match inner {
                    Inner::Settings(table) => table.has_variable(rest),
                    Inner::Named(table) => after_each_part(rest).any(|rest| table.has_variable(rest)),
                    Inner::Names => true,
                    Inner::Steps => false,
                })
            })
    }
}

/// The text after a name that the operator has chosen, in which there may be `_` too.
fn after_each_part(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('_').map(|(at, _)| &text[at + 1..])
}

/// Whether a variable is one of a setting that isn't a sink's.
pub(super) fn is_variable(name: &str) -> bool {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    VARIABLES.contains(&name) || ROOT.has_variable(name)
}
