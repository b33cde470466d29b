//! All sinks of a file, those with errors too.

use std::collections::BTreeMap;

use settings::{Diagnostic, Section, SettingsReader, SourceSpan, nearest};

use crate::sinks::name::SinkName;
use crate::sinks::route::Route;
use crate::sinks::shards::Shards;
use crate::sinks::sink_config::SinkSettings;

/// All `[sinks.…]` tables.
#[derive(Debug, Default)]
pub(crate) struct Sinks {
    pub(crate) valid: BTreeMap<SinkName, SinkSettings>,
    /// Every name that the document has, also of sinks with mistakes: routes may point to them.
    pub(super) declared: BTreeMap<String, SourceSpan>,
    /// Sinks of several databases. The databases in addition to the common one are sinks that no route names.
    sharded: BTreeMap<SinkName, Shards>,
    /// Sinks for each server of an upstream, by the name that routes have.
    pub(super) copies: BTreeMap<SinkName, Vec<SinkName>>,
}

impl Sinks {
    /// The sink that a route names, if there is one.
    pub(crate) fn resolve(
        &self,
        reader: &mut SettingsReader<'_>,
        section: &Section<'_>,
        name: &str,
        span: &SourceSpan,
    ) -> Option<SinkName> {
        if self.declared.contains_key(name) {
            return SinkName::new(name).ok();
        }
        let title = format!("invalid value for `{}`: there is no such sink", section.key_path("routes"));
        let help = match nearest(name, self.declared.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "add the sink as a separate table: [sinks.NAME]".to_owned(),
        };
        reader.push(Diagnostic::new(title, span.clone(), "no such sink").help(help));
        None
    }

    /// The span of a sink's name.
    pub(crate) fn span(&self, name: &SinkName) -> Option<&SourceSpan> {
        if let Some(shard) = self.sharded.values().flat_map(|shards| &shards.all).find(|shard| shard.sink == *name) {
            return Some(&shard.span);
        }
        let is_copied = |(_, copies): &(&SinkName, &Vec<SinkName>)| copies.contains(name);
        let original = self.copies.iter().find(is_copied).map_or(name, |(original, _)| original);
        self.declared.get(original.as_str())
    }

    /// The routes that a route is expanded to: several if its sink is several databases, or a sink for each server of
    /// an upstream.
    ///
    /// # Errors
    /// Why that can't be, in words.
    pub(crate) fn spread(&self, route: Route) -> Result<Vec<Route>, String> {
        if let Some(copies) = self.copies.get(&route.to) {
            let to_copy = |to: &SinkName| Route { to: to.clone(), when: route.when.clone() };
            return Ok(copies.iter().map(to_copy).collect());
        }
        if let Some(shards) = self.sharded.get(&route.to) {
            return shards.spread(&route);
        }
        Ok(vec![route])
    }

    /// The sinks of shards, by the sink that has them and the values of their events.
    pub(crate) fn shards(&self) -> BTreeMap<SinkName, BTreeMap<String, SinkName>> {
        self.sharded.iter().map(|(name, shards)| (name.clone(), shards.by_value())).collect()
    }

    /// Adds the databases of a sink in addition to the common one.
    pub(super) fn add_shards(
        &mut self,
        reader: &mut SettingsReader<'_>,
        name: &SinkName,
        settings: &SinkSettings,
        shards: Shards,
    ) {
        for shard in &shards.all {
            if let Some(other) = self.declared.get(shard.sink.as_str()) {
                let title = format!("conflict: the shard is the sink `{}`, but there is one of this name", shard.sink);
                let mistake = Diagnostic::new(title, shard.span.clone(), "give it another name");
                reader.push(mistake.also(other.clone(), "this one"));
            }
            self.valid.insert(shard.sink.clone(), SinkSettings { store: shard.store.clone(), ..settings.clone() });
        }
        self.sharded.insert(name.clone(), shards);
    }
}
