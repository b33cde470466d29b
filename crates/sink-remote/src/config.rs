//! The configuration of a gateway's sink of kind `writer`: which writers, which of their sinks, and which kind of store.

use std::collections::BTreeMap;
use std::time::Duration;

use super::upstream::{Upstream, Writers};
use objects::ObjectFormat;
use sink::Capabilities;

/// The checked configuration of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// The writers.
    pub upstream: Upstream,
    /// The name of the only writer that the sink uses. `None`: all writers of the upstream.
    pub server: Option<String>,
    /// The sink's name in the writers' configuration.
    pub sink: String,
    /// The name of its kind of store.
    pub store: &'static str,
    /// Whether that kind keeps cursors.
    pub is_fenced: bool,
    /// Whether a store of that kind without cursors recognises an event that it has by its id.
    pub recognises_ids: bool,
    /// The sink's settings that the gateway's table has, named as in [`writer_protocol::SinkInfo::parts`].
    pub parts: BTreeMap<String, String>,
    /// Whether events are read back through the writers.
    pub reads: bool,
}

/// How long segments stay after a writer's fenced store has their events. SQLite too: that file shares its fate with the writer's
/// directory, not with the journal.
const SETTLE: Duration = Duration::from_mins(1);

impl RemoteConfig {
    /// The capabilities that delivery needs before any writer answers.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        let settle = if self.is_fenced { SETTLE } else { Duration::ZERO };
        let recognises_ids = self.recognises_ids;
        Capabilities { settle, fenced: self.is_fenced, on_this_disk: false, remote: true, recognises_ids }
    }

    /// The URLs of the writers that the sink may use, or the etcd in which they register.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let is_wanted = |name: &String| self.server.as_ref().is_none_or(|server| server == name);
        match &self.upstream.config().writers {
            Writers::Listed(list) => list.iter().map(ToString::to_string).collect(),
            Writers::Named(list) => {
                list.iter().filter(|(name, _)| is_wanted(name)).map(|(_, url)| url.to_string()).collect()
            }
            Writers::Dns(url) => vec![url.to_string()],
            Writers::Etcd { etcd, .. } => vec![etcd.to_string()],
        }
    }
}

/// The checked configuration of a sink whose store keeps whole objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteObjectsConfig {
    /// The writers and their sink. Its kind of store has objects.
    pub remote: RemoteConfig,
    /// The rules of the gateway's objects.
    pub rules: ObjectFormat,
}
