//! Reloads the configuration of a running server: all of it comes into use at one moment, or nothing changes.
//!
//! Everything that can fail is checked first: the file, settings that need a restart, certificates, the stores. Then
//!
//! 1. the gateway stops accepting the types that are added, removed or changed, and makes their accepted events durable: no event may come
//!    after the end of its routes, or be checked by other rules than those of its routes;
//! 2. delivery continues with the new routes and sinks, which are saved with the cursors;
//! 3. the gateway accepts all types of the new configuration, and all other settings come into use.
//!
//! Requests and connections that have begun continue.
//!
//! A dry run checks the same, except the stores: connecting to one may create files or tables, and may take seconds.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use config::{ConfigError, Configuration, Stopping, changes, needs_restart};
use delivery::{DeliveryControl, LaneBoard, SinkSetup};
use event::TypeName;
use eventlog::EventLog;
use gateway::{GatewayControl, GatewayOptions};
use ledger::Ledger;
use limits::memory::Budgets;
use settings::Environment;
use sink::SinkError;
use sink_remote::Upstream;
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::actions::Actions;
use crate::admin::{AccessSettings, AdminAuth, Fleet};
use crate::bus_events::Readers;
use crate::caller::Caller;
use crate::configuration_sources::ConfigurationSources;
use crate::dry_run::config_of;
use crate::findings::Findings;
use crate::object_registry::ObjectRegistry;
use crate::process::service_manager::{ServiceManager, State};
use crate::read_back::SinkReader;
use crate::reload_requests::{ReloadCounters, ReloadError, ReloadRequest, ReloadRequests, stopping};
use crate::removed_routes::removed_routes;
use crate::retention::RetentionBoard;
use crate::tls::listeners::{NextTls, PortsTls};
use crate::type_info::TypeInfo;
use crate::{compose, log, memory_plan};
use admin_api::reload::ReloadJson;
use cli::Common;
use discovery::UpstreamBoard;

/// A store that doesn't answer for so long is one that is down, as at a start.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The sources of a configuration, for each time that it is read.
#[derive(Clone)]
pub(crate) struct Inputs {
    pub(crate) common: Common,
    pub(crate) environment: Environment,
}

impl Inputs {
    /// Reads it.
    ///
    /// # Errors
    /// It is wrong, or can't be read.
    pub(crate) fn load(&self) -> Result<(Configuration, settings::Diagnostics), ConfigError> {
        self.common.load(&self.environment)
    }
}

/// The components that a reload changes.
pub(crate) struct Components {
    pub(crate) tls: PortsTls,
    pub(crate) log: Arc<EventLog>,
    pub(crate) gateway: GatewayControl,
    pub(crate) delivery: DeliveryControl,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) lanes: LaneBoard,
    pub(crate) types: TypeInfo,
    pub(crate) objects: ObjectRegistry,
    pub(crate) upstreams: UpstreamBoard,
    pub(crate) retention: RetentionBoard,
    pub(crate) readers: Readers,
    pub(crate) findings: Findings,
    pub(crate) memory: Budgets,
    pub(crate) stopping: watch::Sender<Stopping>,
    pub(crate) actions: Actions,
    pub(crate) configuration: ConfigurationSources,
    pub(crate) auth: AdminAuth,
    pub(crate) fleet: Fleet,
}

/// Reloads the configuration.
pub(crate) struct Reloader {
    pub(crate) inputs: Inputs,
    pub(crate) components: Components,
    /// The configuration in use, and its sinks.
    pub(crate) current: Configuration,
    pub(crate) sinks: Vec<SinkSetup>,
    pub(crate) counters: Arc<ReloadCounters>,
}

impl Reloader {
    /// Reloads on each SIGHUP and each request, until the future is dropped.
    pub(crate) async fn follow(mut self, mut hangup: Signal, mut requests: ReloadRequests) {
        let manager = ServiceManager::of(&self.inputs.environment);
        loop {
            let (by, reply) = tokio::select! {
                _ = hangup.recv() => (Caller::Hangup, None),
                Some(ReloadRequest { by, is_dry_run, reply }) = requests.0.recv() => {
                    if is_dry_run {
                        // The client may have disconnected.
                        let _ = reply.send(self.dry_run());
                        continue;
                    }
                    (by, Some(reply))
                }
            };
            manager.notify(State::Reloading);
            let result = self.reload(&by).await;
            self.record(&by, &result);
            // Also if the reload failed: the server still accepts requests.
            manager.notify(State::Ready);
            match &result {
                Ok(_) => {
                    self.counters.applied.add(1);
                    tracing::info!("the configuration was reloaded and is in use now");
                }
                Err(error) => {
                    self.take_back_servers();
                    self.counters.refused.add(1);
                    tracing::error!(
                        "the configuration was read again and can't be used. Nothing has changed:\n{error}"
                    );
                }
            }
            if let Some(reply) = reply {
                let _ = reply.send(result);
            }
        }
    }

    /// Withdraws the servers that a rejected configuration has announced.
    fn take_back_servers(&self) {
        self.components.upstreams.show(&self.current.upstreams);
    }

    fn record(&self, by: &Caller, result: &Result<ReloadJson, ReloadError>) {
        let file = self.inputs.common.config.as_ref();
        let file = file.map_or_else(|| "no file".to_owned(), |path| path.display().to_string());
        let result = match result {
            Ok(ReloadJson { changes, .. }) if changes.is_empty() => "applied: nothing has changed".to_owned(),
            Ok(ReloadJson { changes, .. }) => format!("applied: {}", changes.join(", ")),
            Err(error) => format!("failed: {error}"),
        };
        self.components.actions.record(by, "reload", file, result);
    }

    /// Checks the configuration without its stores, and returns the changes of a reload. It only reads files: it builds no sink, and
    /// announces no server.
    ///
    /// # Errors
    /// The configuration can't be used.
    fn dry_run(&self) -> Result<ReloadJson, ReloadError> {
        let prepared = self.read()?.accept()?;
        Ok(ReloadJson { applied: false, ..self.outcome(&prepared) })
    }

    async fn reload(&mut self, by: &Caller) -> Result<ReloadJson, ReloadError> {
        let read = self.components.configuration.read();
        let (prepared, sinks) = self.prepare().await?;
        if let Some(warnings) = &prepared.warnings {
            tracing::warn!("{warnings}");
        }
        let reloaded = self.outcome(&prepared);
        let Prepared { configuration, tls, .. } = prepared;
        self.apply(&configuration, &sinks).await?;
        self.components.tls.show(tls);
        self.components.types.show(&configuration);
        self.components.auth.show(AccessSettings::of(&configuration.admin, &configuration.console));
        self.components.stopping.send_replace(configuration.gateway.stopping);
        self.components.upstreams.show(&configuration.upstreams);
        if configuration.console.peers != self.current.console.peers {
            self.components.fleet.show(&configuration.console.peers);
        }
        self.components.retention.show(compose::named(&sinks));
        self.components.readers.show(SinkReader::for_bus(&configuration, &sinks, &self.components.lanes));
        let lowered = compose::lowered_connections(&configuration.gateway, &self.components.memory);
        self.components.findings.show_lowered(lowered);
        if configuration.gateway.max_connections != self.current.gateway.max_connections {
            compose::warn_of_descriptors(&configuration.gateway, &self.components.memory);
        }
        self.components.configuration.show(read, &by.to_string(), reloaded.changes.clone());
        (self.current, self.sinks) = (configuration, sinks);
        Ok(reloaded)
    }

    /// Reads the configuration, and checks everything that can fail. Its sinks are connected if their stores answer.
    async fn prepare(&self) -> Result<(Prepared, Vec<SinkSetup>), ReloadError> {
        let mut candidate = self.read()?;
        let sinks = self.sinks(&candidate.configuration);
        candidate.configuration.upstreams.iter().for_each(Upstream::announce);
        candidate.unfit.extend(self.check(&sinks).await);
        Ok((candidate.accept()?, sinks))
    }

    /// Reads the configuration, and checks everything except the stores.
    fn read(&self) -> Result<Candidate, ReloadError> {
        let loaded = self.inputs.load().map_err(|error| ReloadError::Configuration(error.to_string()));
        let (mut configuration, warnings) = loaded?;
        configuration.keep_rules_of(&self.current);
        configuration.keep_upstreams_of(&self.current);
        memory_plan::limit_aggregates(&mut configuration, &self.components.memory);
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let mut unfit = needs_restart(&self.current, &configuration, cores);
        let tls = PortsTls::read(&configuration).inspect_err(|error| unfit.push(format!("TLS: {error}"))).ok();
        let warnings = (!warnings.is_empty()).then(|| warnings.to_string());
        Ok(Candidate { configuration, tls, warnings, unfit })
    }

    fn outcome(&self, prepared: &Prepared) -> ReloadJson {
        let after = &prepared.configuration;
        let is_kept = |name: &TypeName, sink: &str| {
            config_of(after, name).is_some_and(|config| config.routes.iter().any(|route| route.to.as_str() == sink))
        };
        let mut changes = changes(&self.current, after);
        changes.extend(removed_routes(&self.components.ledger.snapshot(), is_kept));
        let file = self.inputs.common.config.as_ref().map(|path| path.display().to_string());
        ReloadJson { applied: true, file, changes, warnings: prepared.warnings.clone() }
    }

    /// A sink whose store stays the same keeps its driver.
    fn sinks(&self, configuration: &Configuration) -> Vec<SinkSetup> {
        compose::sinks(configuration, |name, store| {
            let is_same = self.current.sinks.get(name).is_some_and(|before| before.store == *store);
            let known = self.sinks.iter().find(|setup| is_same && setup.name == *name.as_arc());
            known.map_or_else(|| compose::new_driver(store, &self.components.memory), |setup| setup.sink.clone())
        })
    }

    /// Connects to the stores that are new, and reports each whose settings don't fit the configuration.
    async fn check(&self, sinks: &[SinkSetup]) -> Vec<String> {
        let mut wrong = Vec::new();
        for setup in sinks {
            if self.sinks.iter().any(|known| known.sink.is_same(&setup.sink)) {
                continue;
            }
            let name = &*setup.name;
            match timeout(CONNECT_MAX, setup.sink.connect()).await {
                Ok(Ok(())) => {}
                Ok(Err(error @ (SinkError::Misconfigured(_) | SinkError::OtherStore(_)))) => {
                    wrong.push(format!("sink {name}: {error}"))
                }
                Ok(Err(SinkError::Unavailable(reason))) => {
                    tracing::warn!(
                        sink = name, %reason,
                        "can't connect to the store: check the store; Forebay retries while it runs"
                    );
                }
                Err(_) => tracing::warn!(
                    sink = name,
                    "no response from the store: check the store; Forebay retries while it runs"
                ),
            }
        }
        wrong
    }

    async fn apply(&self, configuration: &Configuration, sinks: &[SinkSetup]) -> Result<(), ReloadError> {
        let state = |configuration, sinks| GatewayState::of(configuration, sinks, &self.components);
        let (before, after) = (state(&self.current, &self.sinks), state(configuration, sinks));
        let gateway = self.components.gateway.clone();
        let narrowed = before.clone();
        let types = after.types.clone();
        blocking(move || gateway.narrow(&types, &narrowed.types, &narrowed.options)).await?;
        // Events accepted before are durable before their routes are closed.
        for shard in self.components.log.shards() {
            shard.flush().await;
        }
        let changed = self.components.delivery.configure(compose::delivery(configuration, sinks.to_vec())).await;
        let state = if changed.is_ok() { after } else { state(&self.current, &self.sinks) };
        let gateway = self.components.gateway.clone();
        blocking(move || gateway.configure(&state.types, &state.options)).await?;
        changed.map_err(|error| ReloadError::Failed(error.to_string()))?;
        self.components.log.disk_guard().keep_free(configuration.journal.keep_free);
        log::configure(configuration.log.format, configuration.log.level);
        Ok(())
    }
}

/// A configuration that was read. It is used only if nothing is unfit.
struct Candidate {
    configuration: Configuration,
    /// `None` if the certificates are unfit.
    tls: Option<NextTls>,
    warnings: Option<String>,
    /// Why it can't be applied, a line each.
    unfit: Vec<String>,
}

impl Candidate {
    fn accept(self) -> Result<Prepared, ReloadError> {
        let Self { configuration, tls, warnings, unfit } = self;
        let Some(tls) = tls.filter(|_| unfit.is_empty()) else {
            return Err(ReloadError::Configuration(unfit.join("\n")));
        };
        Ok(Prepared { configuration, tls, warnings })
    }
}

/// A configuration that can be applied.
struct Prepared {
    configuration: Configuration,
    tls: NextTls,
    warnings: Option<String>,
}

/// The state that the gateway gets.
#[derive(Clone)]
struct GatewayState {
    types: gateway::GatewayTypes,
    options: GatewayOptions,
}

impl GatewayState {
    fn of(configuration: &Configuration, sinks: &[SinkSetup], components: &Components) -> Self {
        let types = compose::types(configuration, sinks, &components.lanes);
        let objects = components.objects.readers(configuration, sinks);
        Self {
            types,
            options: GatewayOptions { objects, ..compose::gateway_options(configuration, &components.memory) },
        }
    }
}

/// Shards may be in the middle of a commit: other tasks run during this time.
async fn blocking(work: impl FnOnce() + Send + 'static) -> Result<(), ReloadError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| stopping())
}
