//! The accepted types and the kinds of sinks, for readers of the admin API and reloads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::{AggregateConfig, Configuration, Route, SinkConfig, SinkName, SinkSettings, TypeConfig, TypeSchema};
use event::TypeName;
use gateway::{DryRunTypes, IdRule, TextRule};
use json::store_compat::Incompatibilities;
use schema::Schema;
use serde::Serialize;

use crate::dry_run;

/// Types by name; `*` is the name for all others. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct TypeInfo(Arc<Mutex<Shown>>);

#[derive(Default)]
struct Shown {
    types: BTreeMap<String, TypeConfig>,
    finder: Arc<DryRunTypes>,
    /// The kind of store of each sink.
    kinds: BTreeMap<Arc<str>, &'static str>,
    /// When they were loaded: microseconds since 1970, UTC.
    loaded: i64,
    /// The configuration of each sink's store.
    stores: BTreeMap<Arc<str>, SinkConfig>,
}

/// A type in the answer.
#[derive(Serialize)]
pub(crate) struct TypeJson {
    r#type: String,
    /// Other names under which its events are sent.
    aliases: Vec<String>,
    /// Whether case doesn't matter in these and in the type's own name.
    lowercase: bool,
    /// A pointer, or `content`.
    id: Option<String>,
    /// The status of partly accepted batches.
    partial: &'static str,
    time: Option<String>,
    /// The default acknowledgement of its events.
    ack: &'static str,
    ack_memory: bool,
    routes: Vec<RouteJson>,
    /// The handling of payloads that not every store can store.
    unstorable: UnstorableJson,
    aggregates: Vec<String>,
    read: Option<String>,
    /// The quarantine: the type under which its rejected events are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_to: Option<String>,
    schema: Option<SchemaJson>,
    /// Its steps.
    transform: Vec<&'static str>,
}

/// A route, as in the configuration: a sink's name, or a table if it has a condition.
#[derive(Serialize)]
#[serde(untagged)]
enum RouteJson {
    Plain(String),
    When { to: String, when: String },
}

/// The handling of payloads that not every store can store.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum UnstorableJson {
    /// They are accepted.
    Accept,
    /// They are rejected: those that the type's stores can't take, or all.
    Reject,
    /// They are repaired.
    Repair,
}

/// Its schema.
#[derive(Serialize)]
struct SchemaJson {
    path: String,
    formats: bool,
}

impl TypeInfo {
    pub(crate) fn new(configuration: &Configuration) -> Self {
        let board = Self::default();
        board.show(configuration);
        board
    }

    /// Replaces the accepted types.
    pub(crate) fn show(&self, configuration: &Configuration) {
        let named = configuration.types.iter().map(|(name, config)| (name.to_string(), config.clone()));
        let others = configuration.other_types.iter().map(|config| (dry_run::OTHERS.to_owned(), config.clone()));
        let kind =
            |(name, settings): (&SinkName, &SinkSettings)| (name.as_arc().clone(), settings.store.kind_of_store());
        let shown = Shown {
            types: named.chain(others).collect(),
            finder: Arc::new(dry_run::finder(configuration)),
            kinds: configuration.sinks.iter().map(kind).collect(),
            loaded: clock::unix_microseconds(),
            stores: configuration.sinks.iter().map(|(name, of)| (name.as_arc().clone(), of.store.clone())).collect(),
        };
        *self.held() = shown;
    }

    fn held(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn list(&self) -> Vec<TypeJson> {
        self.held().types.iter().map(|(name, config)| TypeJson::of(name, config)).collect()
    }

    /// When the running configuration was loaded: microseconds since 1970, UTC.
    pub(crate) fn loaded(&self) -> i64 {
        self.held().loaded
    }

    /// The kind of a sink's store. `None` if the configuration has no such sink.
    pub(crate) fn kind_of(&self, sink: &str) -> Option<&'static str> {
        self.held().kinds.get(sink).copied()
    }

    /// The configuration of a sink's store. `None` if the configuration has no such sink.
    pub(crate) fn store_of(&self, sink: &str) -> Option<SinkConfig> {
        self.held().stores.get(sink).cloned()
    }

    /// All aggregates, each with the type whose events it aggregates.
    pub(crate) fn aggregate_configs(&self) -> Vec<(String, AggregateConfig)> {
        let held = self.held();
        let of_type = |(of, config): (&String, &TypeConfig)| -> Vec<_> {
            config.aggregates.iter().map(|aggregate| (of.clone(), aggregate.clone())).collect()
        };
        held.types.iter().flat_map(of_type).collect()
    }

    /// The types that are results of aggregates, each with the type whose events it aggregates.
    pub(crate) fn aggregates(&self) -> BTreeMap<String, String> {
        let of_type = |(of, config): (&String, &TypeConfig)| {
            config
                .aggregates
                .iter()
                .map(|aggregate| (aggregate.rules.name().to_string(), of.clone()))
                .collect::<Vec<_>>()
        };
        self.held().types.iter().flat_map(of_type).collect()
    }

    /// The type as which rejected events of a type are stored. Types without a table have the rules of `*`.
    pub(crate) fn refused_to(&self, name: &str) -> Option<String> {
        let held = self.held();
        let config = held.types.get(name).or_else(|| held.types.get(dry_run::OTHERS))?;
        config.refused_to.as_ref().map(TypeName::to_string)
    }

    /// How the type of an event is found.
    pub(crate) fn finder(&self) -> Arc<DryRunTypes> {
        self.held().finder.clone()
    }

    /// The configuration of an accepted type, unless it was just removed.
    pub(crate) fn config_of(&self, name: &TypeName) -> Option<TypeConfig> {
        let held = self.held();
        held.types.get(name.as_str()).or_else(|| held.types.get(dry_run::OTHERS)).cloned()
    }

    /// The schema of a type, if there is such a type, and if it has one.
    pub(crate) fn schema(&self, name: &str) -> Option<Option<Arc<Schema>>> {
        self.held().types.get(name).map(|config| config.schema.as_ref().map(|schema| schema.compiled.clone()))
    }
}

impl TypeJson {
    fn of(name: &str, config: &TypeConfig) -> Self {
        let TypeConfig {
            aliases,
            lowercase,
            id,
            time,
            schema,
            transform,
            unstorable,
            ack_memory,
            routes,
            aggregates,
            read,
            ..
        } = config;
        Self {
            r#type: name.to_owned(),
            aliases: aliases.clone(),
            lowercase: *lowercase,
            id: match id {
                IdRule::Generated => None,
                IdRule::Pointer(pointer) => Some(pointer.to_string()),
                IdRule::Content => Some("content".to_owned()),
            },
            partial: config.partial.as_str(),
            time: time.as_ref().map(|rule| rule.pointer().to_string()),
            ack: if config.ack_stored { "stored" } else { "disk" },
            ack_memory: *ack_memory,
            routes: routes.iter().map(RouteJson::of).collect(),
            unstorable: UnstorableJson::of(*unstorable),
            aggregates: aggregates.iter().map(|aggregate| aggregate.rules.name().to_string()).collect(),
            read: read.as_ref().map(SinkName::to_string),
            refused_to: config.refused_to.as_ref().map(TypeName::to_string),
            schema: schema.as_ref().map(SchemaJson::of),
            transform: transform.iter().flat_map(|transform| transform.steps.transform().operations()).collect(),
        }
    }
}

impl RouteJson {
    fn of(Route { to, when }: &Route) -> Self {
        let to = to.to_string();
        match when {
            None => Self::Plain(to),
            Some(when) => Self::When { to, when: when.to_string() },
        }
    }
}

impl UnstorableJson {
    const fn of(rule: TextRule) -> Self {
        match rule {
            TextRule { repair: true, .. } => Self::Repair,
            TextRule { flaws: Incompatibilities::NONE, .. } => Self::Accept,
            TextRule { .. } => Self::Reject,
        }
    }
}

impl SchemaJson {
    fn of(schema: &TypeSchema) -> Self {
        Self { path: schema.path.display().to_string(), formats: schema.formats }
    }
}
