//! `[sinks.X]`: the stores that events go to.

mod copies;
mod declared;
mod destination;
pub(crate) mod every_sink;
pub(crate) mod kinds;
mod name;
pub(crate) mod object_serving;
mod remote;
mod remote_layout;
pub(crate) mod route;
mod shards;
mod sink_config;

use ::sink::Folders;
use ledger::Begin;
use settings::{Diagnostic, InvalidValue, Section, SettingsReader, word};

pub(crate) use crate::sinks::declared::Sinks;
use crate::sinks::every_sink::{MAX_BACKLOG, MAX_DEAD_LETTERS};
use crate::sinks::kinds::Kind;
use crate::sinks::name::NAME_BYTES_MAX;
pub use crate::sinks::name::SinkName;
pub use crate::sinks::sink_config::{SinkConfig, SinkSettings};
use crate::upstreams::Upstreams;

const BEGINS: &[(&str, Begin)] = &[("end", Begin::End), ("oldest", Begin::Oldest)];
/// Other words for them, which consumers of Kafka have.
const BEGIN_ALIASES: &[(&str, Begin)] = &[("latest", Begin::End), ("earliest", Begin::Oldest)];

/// Reads all sinks.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    tables: &[Section<'_>],
    folders: Folders<'_>,
    upstreams: &Upstreams,
) -> Sinks {
    let mut sinks = Sinks::default();
    for section in tables {
        sinks.declared.insert(section.name().to_owned(), section.span().clone());
        let name = SinkName::new(section.name());
        if name.is_err() {
            let title = format!("invalid value for the name of a sink: `{}`", section.name());
            let label = format!("expected 1 to {NAME_BYTES_MAX} of a-z, 0-9, `_` and `-`, a letter or digit first");
            reader.push(Diagnostic::new(title, section.span().clone(), label));
        }
        if let (Some(config), Ok(name)) = (read_one(reader, section, folders, upstreams), name) {
            sinks.valid.insert(name, config);
        }
    }
    read_shards(reader, tables, folders, &mut sinks);
    copies::read(reader, tables, &mut sinks);
    destination::check(reader, &sinks);
    sinks
}

/// After all sinks, so their names are known.
fn read_shards(reader: &mut SettingsReader<'_>, tables: &[Section<'_>], folders: Folders<'_>, sinks: &mut Sinks) {
    for section in tables {
        let Ok(name) = SinkName::new(section.name()) else { continue };
        let Some(settings) = sinks.valid.get(&name).cloned() else { continue };
        if let Some(shards) = shards::read(reader, section, folders, &settings.store) {
            sinks.add_shards(reader, &name, &settings, shards);
        }
    }
}

fn read_one(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    folders: Folders<'_>,
    upstreams: &Upstreams,
) -> Option<SinkSettings> {
    let errors_before = reader.errors();
    let help = format!("add kind = \"sqlite\"; known kinds: {}", kinds::listed());
    let kind = reader.required(section, "kind", &help, kinds::parse).unwrap_or(Kind::Store(kinds::KINDS[0]));
    let keys: Vec<&str> = match kind {
        Kind::Store(kind) => kinds::keys_of_store(kind).collect(),
        Kind::Writer => kinds::writer_keys(),
    };
    reader.check_keys(section, keys.iter().copied());
    let max_backlog = reader.size(section, &MAX_BACKLOG).map(|found| found.value);
    let max_dead_letters = reader.number(section, &MAX_DEAD_LETTERS).map(|found| found.value);
    let from = reader.text(section, "from", begin).map(|found| found.value).unwrap_or_default();
    let store = match kind {
        Kind::Store(kind) => (kind.read)(reader, section, folders).map(|store| SinkConfig::Store(store.into())),
        Kind::Writer => remote::read(reader, section, upstreams),
    };
    let serving = if keys.contains(&"serve") { object_serving::read(reader, section) } else { None };
    // Otherwise the defaults of wrong values would be compared with other sinks.
    let is_right = |store: &SinkConfig| reader.errors() == errors_before || store.destination().is_none();
    store.filter(is_right).map(|store| SinkSettings { store, max_backlog, max_dead_letters, from, serving })
}

fn begin(text: &str) -> Result<Begin, InvalidValue> {
    let alias = BEGIN_ALIASES.iter().find(|(alias, _)| *alias == text);
    alias.map_or_else(|| word(text, "is not a start position", BEGINS), |(_, begin)| Ok(*begin))
}
