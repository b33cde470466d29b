//! The sinks of a server, and those that a writer offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use admin_api::status::SinkStatusJson;
use admin_api::upstream::WriterStatusJson;
use config::{SettingOrigin, SinkConfig};
use dead_letters::DeadLetterService;
use delivery::{Delivery, LaneBoard, ProgressBoard};
use discovery::UpstreamBoard;
use ledger::Ledger;
use tokio::sync::Semaphore;
use writer::Writer;

use super::sink::{CallsJson, FailureJson, LaneJson, SinkJson};
use crate::configuration_sources::ConfigurationSources;
use crate::offered_status;
use crate::type_info::TypeInfo;

/// The sinks of the process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sinks {
    of: Arc<Part>,
    configuration: ConfigurationSources,
    /// One test at a time.
    pub(super) tests: Arc<Semaphore>,
}

enum Part {
    Server(ServerSinks),
    Writer { writer: Arc<Writer>, stores: BTreeMap<String, SinkConfig> },
}

/// The sources of the sinks of a server or a gateway.
pub(crate) struct ServerSinks {
    ledger: Arc<Ledger>,
    lanes: LaneBoard,
    dead: DeadLetterService,
    progress: ProgressBoard,
    upstreams: UpstreamBoard,
    types: TypeInfo,
}

impl ServerSinks {
    pub(crate) fn new(delivery: &Delivery, upstreams: UpstreamBoard, types: TypeInfo) -> Self {
        Self {
            ledger: delivery.ledger().clone(),
            lanes: delivery.lanes().clone(),
            dead: delivery.dead_letters().clone(),
            progress: delivery.progress().clone(),
            upstreams,
            types,
        }
    }

    fn all(&self, settings: &[SettingOrigin]) -> Vec<SinkJson> {
        let (lanes, now) = (self.lanes.lanes(), clock::unix_microseconds());
        let statuses = SinkStatusJson::of_all(&self.ledger.snapshot(), &lanes, &self.dead, now);
        let of_sink = |status: SinkStatusJson| {
            let name = status.sink.clone();
            let upstreams: Vec<_> = self.types.store_of(&name).and_then(|store| upstream(&store)).into_iter().collect();
            let mut upstreams_shown = self.upstreams.all();
            upstreams_shown.retain(|shown| upstreams.contains(&shown.config().name));
            let own = lanes.iter().filter(|lane| *lane.lane().sink == *name);
            SinkJson {
                lanes: own.map(|lane| LaneJson::of(lane)).collect(),
                failures: self.progress.recent_failures(&name).into_iter().map(FailureJson::of).collect(),
                servers: WriterStatusJson::of_all(&upstreams_shown, now),
                ..SinkJson::of(status, self.types.kind_of(&name), settings)
            }
        };
        statuses.into_iter().map(of_sink).collect()
    }
}

/// The name of the upstream whose writers have the store.
fn upstream(store: &SinkConfig) -> Option<String> {
    match store {
        SinkConfig::Remote(remote) => Some(remote.upstream.config().name.clone()),
        SinkConfig::RemoteObjects(objects) => Some(objects.remote.upstream.config().name.clone()),
        SinkConfig::Store(_) => None,
    }
}

impl Sinks {
    pub(crate) fn of_server(sinks: ServerSinks, configuration: ConfigurationSources) -> Self {
        Self::new(Part::Server(sinks), configuration)
    }

    pub(crate) fn of_writer(
        writer: Arc<Writer>,
        stores: BTreeMap<String, SinkConfig>,
        configuration: ConfigurationSources,
    ) -> Self {
        Self::new(Part::Writer { writer, stores }, configuration)
    }

    fn new(of: Part, configuration: ConfigurationSources) -> Self {
        Self { of: Arc::new(of), configuration, tests: Arc::new(Semaphore::new(1)) }
    }

    /// All sinks.
    pub(super) fn all(&self) -> Vec<SinkJson> {
        let settings = self.configuration.settings();
        match &*self.of {
            Part::Server(server) => server.all(&settings),
            Part::Writer { writer, .. } => {
                let sink = |(name, offered): (&String, &writer::Offered)| SinkJson {
                    calls: Some(CallsJson::of(offered)),
                    ..SinkJson::of(offered_status::of(name, offered), Some(offered.kind), &settings)
                };
                writer.offered().iter().map(sink).collect()
            }
        }
    }

    /// The configuration of a sink's store.
    pub(super) fn store(&self, name: &str) -> Option<SinkConfig> {
        match &*self.of {
            Part::Server(server) => server.types.store_of(name),
            Part::Writer { stores, .. } => stores.get(name).cloned(),
        }
    }
}
