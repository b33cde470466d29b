//! The settings of each table apart from those of sinks: only their values may be shown. A value under a key that its table doesn't know may
//! be a secret whose key is misspelt or in the wrong table.

use settings::{Kind, PREFIX, Setting};

use crate::declared::{Inner, ROOT, Table};
use crate::old_names::current;

/// The facts that a table has about a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    Setting,
    Table(Inner),
    /// It is a table with these settings, or a list that may have such tables.
    Settings(&'static [Setting]),
    /// It has a value for each name that the operator chooses.
    Names,
    /// The steps of a transform.
    Steps,
    Nothing,
}

/// The facts that settings have about a key.
pub(super) fn find(settings: impl IntoIterator<Item = &'static Setting>, key: &str) -> Known {
    let found = settings.into_iter().find(|setting| setting.name == current(key));
    found.map_or(Known::Nothing, |setting| of_kind(&setting.kind))
}

fn of_kind(kind: &Kind) -> Known {
    match kind {
        Kind::List(kind) => of_kind(kind),
        Kind::Either(kinds) => {
            // The values of a table of names are hidden if a plain value is possible too: a mistake may have put a secret there.
            let table = kinds.iter().map(of_kind).find(|known| matches!(known, Known::Settings(_)));
            table.unwrap_or(Known::Setting)
        }
        Kind::Table(settings) => Known::Settings(settings),
        Kind::Names(_) => Known::Names,
        Kind::Open(_) => Known::Steps,
        _ => Known::Setting,
    }
}

/// Variables that are in no table, without [`PREFIX`].
const VARIABLES: &[&str] = &["ADMIN", "CA", "CONFIG", "DATA", "DEFAULT_IP", "LISTEN", "ROLE", "WRITERS", "WRITERS_CA"];

impl Table {
    /// The kinds of a key.
    pub(super) fn find(&self, key: &str) -> Known {
        match self.tables.iter().find(|(name, _)| *name == key) {
            Some((_, inner)) => Known::Table(*inner),
            None => find(self.all(), key),
        }
    }

    /// Whether this is the rest of the name of a variable for one of its settings.
    fn has_variable(&self, rest: &str) -> bool {
        let rest_key = rest.to_ascii_lowercase();
        let is_key = |setting: &Setting| match setting.kind {
            Kind::Names(_) => {
                rest_key.strip_prefix(setting.name).is_some_and(|name| name.is_empty() || name.starts_with('_'))
            }
            _ => setting.name == current(&rest_key),
        };
        self.all().any(is_key)
            || self.tables.iter().any(|(name, inner)| {
                let rest = rest.split_at_checked(name.len()).filter(|(first, _)| first.eq_ignore_ascii_case(name));
                rest.and_then(|(_, rest)| rest.strip_prefix('_')).is_some_and(|rest| match inner {
                    Inner::Settings(table) => table.has_variable(rest),
                    Inner::Named(_, table) => after_each_part(rest).any(|rest| table.has_variable(rest)),
                    Inner::List(_) => false,
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
