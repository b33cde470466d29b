//! A sink's settings: a store of this process, or a sink of a writer.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use ::objects::{ObjectFormat, ObjectSink};
use ::sink::{Destination, JsonLimits, Layout, NONE, Sink, StoreConfig};
use json::store_compat::Incompatibilities;
use ledger::Begin;
use sink_remote::{Remote, RemoteConfig, RemoteObjects, RemoteObjectsConfig, Writers};

use crate::sinks::kinds;
use crate::sinks::object_serving::Serving;

/// The parts of a layout, each by its name.
pub(crate) type LayoutParts = BTreeMap<String, String>;

/// The parts of a layout by their names.
pub(crate) fn parts_of(layout: Layout) -> LayoutParts {
    layout.into_iter().map(|(name, part)| (name.to_owned(), part)).collect()
}

/// A store, and how it is delivered to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSettings {
    /// The store.
    pub store: SinkConfig,
    /// Bytes of the journal that may wait for it, if the configuration says how many.
    pub max_backlog: Option<u64>,
    /// Dead max of it that are held before its lanes pause, if the configuration says how many.
    pub max_dead_letters: Option<u64>,
    /// Where new routes to it begin in the journal.
    pub from: Begin,
    /// How its objects are given back, if they are.
    pub serving: Option<Serving>,
}

impl fmt::Display for SinkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.store)?;
        self.max_backlog.map_or(Ok(()), |bytes| write!(f, ", at most {bytes} bytes waiting"))?;
        self.max_dead_letters.map_or(Ok(()), |max| write!(f, ", at most {}", text::counted(max, "dead letter")))?;
        self.serving.as_ref().map_or(Ok(()), |_| f.write_str(", given back"))
    }
}

/// A store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkConfig {
    /// A store of this process.
    Store(Arc<dyn StoreConfig>),
    /// A sink of a writer.
    Remote(RemoteConfig),
    /// A sink of a writer that stores objects.
    RemoteObjects(RemoteObjectsConfig),
}

impl SinkConfig {
    /// The settings of a store of this process.
    #[must_use]
    pub fn store(&self) -> Option<&dyn StoreConfig> {
        match self {
            Self::Store(store) => Some(&**store),
            Self::Remote(_) | Self::RemoteObjects(_) => None,
        }
    }

    /// The writers and their sink, if it is one of a writer.
    #[must_use]
    pub const fn remote(&self) -> Option<&RemoteConfig> {
        match self {
            Self::Remote(config) | Self::RemoteObjects(RemoteObjectsConfig { remote: config, .. }) => Some(config),
            Self::Store(_) => None,
        }
    }

    /// The same to be changed.
    pub(crate) const fn remote_mut(&mut self) -> Option<&mut RemoteConfig> {
        match self {
            Self::Remote(config) | Self::RemoteObjects(RemoteObjectsConfig { remote: config, .. }) => Some(config),
            Self::Store(_) => None,
        }
    }

    /// The name of its kind, if a writer can offer it to gateways.
    #[must_use]
    pub fn writer_kind(&self) -> Option<&'static str> {
        Some(self.store()?.kind().name)
    }

    /// The name of the kind of its store, also if a writer has the store.
    #[must_use]
    pub fn kind_of_store(&self) -> &'static str {
        match self {
            Self::Store(store) => store.kind().name,
            Self::Remote(config) | Self::RemoteObjects(RemoteObjectsConfig { remote: config, .. }) => config.store,
        }
    }

    /// The layout of a store of this process, as gateways compare it.
    #[must_use]
    pub fn parts(&self) -> BTreeMap<String, String> {
        self.store().map(|store| parts_of(store.layout())).unwrap_or_default()
    }

    /// The file or the directory that it stores in, if it stores on this machine.
    #[must_use]
    pub fn local_path(&self) -> Option<&Path> {
        self.store()?.local_path()
    }

    /// Whether events can be read back from it.
    #[must_use]
    pub fn can_be_read(&self) -> bool {
        match self {
            Self::Store(store) => store.can_read(),
            Self::Remote(config) => config.reads,
            Self::RemoteObjects(_) => false,
        }
    }

    /// If events can't be read back from it: the reason, and what to change.
    #[must_use]
    pub fn why_not_read(&self) -> &'static str {
        match self {
            Self::Store(store) => store.why_not_read(),
            Self::Remote(_) => {
                "through a writer, only `sqlite` is read by default: set `read = true` if the writer's sink can be read"
            }
            Self::RemoteObjects(_) => "sinks of its kind can't be read: name another one in `routes` and `read`",
        }
    }

    /// Whether it stores the type of each event. Of a writer's store only this configuration is known.
    #[must_use]
    pub(crate) fn holds_types(&self) -> bool {
        match self {
            Self::Store(store) => store.holds_types(),
            Self::Remote(config) => config.parts.get("columns").is_none_or(|columns| columns == NONE),
            Self::RemoteObjects(_) => true,
        }
    }

    /// The JSON that it can't store: types with a route to it reject that before the response, unless they say otherwise.
    #[must_use]
    pub fn cannot_take(&self) -> Incompatibilities {
        let limits = match self {
            Self::Store(store) => store.json_limits(),
            Self::Remote(config) => {
                kinds::find(config.store).map(|kind| (kind.json_limits_of)(&config.parts)).unwrap_or_default()
            }
            Self::RemoteObjects(_) => JsonLimits::default(),
        };
        let flaws = |is_rejected: bool, flaws| if is_rejected { flaws } else { Incompatibilities::NONE };
        flaws(limits.rejects_nul, Incompatibilities::NUL)
            | flaws(limits.rejects_duplicate_keys, Incompatibilities::DUPLICATE_KEYS)
    }

    /// Whether it stores events in objects, each of them whole or not at all.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        match self {
            Self::Store(store) => store.kind().has_objects(),
            Self::Remote(_) => false,
            Self::RemoteObjects(_) => true,
        }
    }

    /// Bytes of memory that its sink uses, independent of the budgets.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Store(store) => store.memory_bytes(),
            Self::Remote(_) => 0,
            Self::RemoteObjects(config) => config.rules.memory_bytes(),
        }
    }

    /// The location that it writes to. Two lanes of one gateway on one sink of a writer would replace each other's cursor.
    pub(crate) fn destination(&self) -> Option<Destination> {
        let Some(config) = self.remote() else { return self.store()?.destination() };
        let mut servers = config.urls();
        servers.sort();
        let id = vec![kinds::WRITER.to_owned(), servers.join(","), config.sink.clone()];
        Some(Destination { id, what: "sink of a writer", another: "another `upstream` or `sink`" })
    }

    /// Limits the connections of a store that needs a limit and has none.
    pub(crate) fn limit_connections(&mut self, max: NonZeroUsize) {
        if let Self::Store(store) = self
            && let Some(limited) = store.with_connections_max(max)
        {
            *store = limited.into();
        }
    }

    /// The sink, which isn't connected yet.
    #[must_use]
    pub fn build(&self) -> Sink {
        match self {
            Self::Store(store) => store.build(),
            Self::Remote(config) => Sink::new(Remote::new(config.clone())),
            Self::RemoteObjects(config) => Sink::new(ObjectSink::new(RemoteObjects::new(config.clone()))),
        }
    }
}

impl fmt::Display for SinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(store) => write!(f, "{store}"),
            Self::Remote(config) => writer(f, config),
            Self::RemoteObjects(RemoteObjectsConfig { remote, rules }) => {
                writer(f, remote)?;
                write!(f, ", {}", ObjectFormat::summary(rules))
            }
        }
    }
}

fn writer(f: &mut fmt::Formatter<'_>, config: &RemoteConfig) -> fmt::Result {
    let (before, by) = match config.upstream.config().writers {
        Writers::Listed(_) | Writers::Named(_) => ("", ""),
        Writers::Dns(_) => ("", " by DNS"),
        Writers::Etcd { .. } => ("in etcd ", ""),
    };
    write!(f, "writer {before}{}{by}, sink {}, store {}", config.urls().join(" "), config.sink, config.store)
}
