//! `forebay serve`: gateway and delivery in one process, from start to stop.
//!
//! It starts in the order in which the components depend on each other, and stops in the reverse order.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use access::Tokens;
use anyhow::anyhow;
use config::{Configuration, IntakeConfig, Push, Role, Stopping};
use delivery::{Delivery, SinkSetup};
use eventlog::{EventLog, Types};
use gateway::{Gateway, GatewayOptions, IntakeListener};
use journal::DataDirectory;
use journal::disk::OsDisk;
use limits::memory::Budgets;
use load::ServerUrl;
use settings::Environment;
use tap::Taps;
use text::set_own_flags;
use tokio::signal::unix::Signal;
use tokio::sync::watch;

use crate::actions::Actions;
use crate::admin::{
    AccessSettings, Admin, AdminAuth, Aggregates, DeadReads, Diagnostics, DryRuns, Events, Fleet, Jobs, Payloads,
    Refusals, Routes, ServerSinks, ServerStatus, Sinks, Views,
};
use crate::bus_events::{BusEvents, Readers};
use crate::configuration_report::shown;
use crate::configuration_sources::ConfigurationSources;
use crate::findings::{Findings, ServerSources};
use crate::memory_use::MemoryUse;
use crate::metrics::collect::Metrics;
use crate::metrics::push::PushCounters;
use crate::object_registry::ObjectRegistry;
use crate::opened::{Opened, plan_memory, seal};
use crate::overview::{Overviews, ServerOverview};
use crate::process::service_manager::{ServiceManager, State};
use crate::push::{self, Instance};
use crate::read_back::SinkReader;
use crate::recent_refusals::RecentRefusals;
use crate::reload::{Components, Inputs, Reloader};
use crate::reload_requests::{ReloadCounters, ReloadHandle};
use crate::retention::RetentionBoard;
use crate::roles::startup_message::{self, Ports};
use crate::signals::{delayed, end_at_once, runtime_with_signals};
use crate::story::Stories;
use crate::tapping::Tapping;
use crate::tls::listeners::PortsTls;
use crate::token_watch::TokenWatch;
use crate::type_info::TypeInfo;
use crate::{admin, allocator, compose, log};
use cli::Common;
use cli::EXIT_CONFIGURATION;
use cli::admin_address::{self, target};
use cli::errors::{cannot, cannot_listen};
use cli::signals::Signals;
use discovery::UpstreamBoard;

/// Requests in flight get this long to be answered when Forebay stops.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Serves until a signal comes, and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(common: &Common, environment: &Environment) -> anyhow::Result<u8> {
    let inputs = Inputs { common: common.clone(), environment: environment.clone() };
    let (runtime, (signals, hangup)) = runtime_with_signals()?;
    let loaded = allocator::joining_at_once(|| inputs.load());
    log::start_thread();
    common.warn_of_overlooked();
    let Some(configuration) = shown(loaded) else { return Ok(EXIT_CONFIGURATION) };
    log::configure(configuration.log.format, configuration.log.level);
    let code = runtime.block_on(serve(configuration, inputs, signals, hangup));
    // A DNS lookup may take longer than the end of the process should.
    runtime.shutdown_background();
    code
}

async fn serve(
    mut configuration: Configuration,
    inputs: Inputs,
    mut signals: Signals,
    hangup: Signal,
) -> anyhow::Result<u8> {
    let data = inputs.common.directory().to_path_buf();
    let manager = ServiceManager::of(&inputs.environment);
    let (intake, intakes, admin) = bind(&configuration)?;
    let of_intakes = addresses(&intakes)?;
    let admin_address = admin.local_addr().map_err(cannot("listen"))?;
    // The start already prints commands.
    remember_admin(&inputs, target(admin_address, configuration.admin.tls.is_some()));
    let watch = TokenWatch::start(configuration.gateway.tokens.clone())?;
    let tls = PortsTls::start(&configuration)?;
    let memory = plan_memory(&mut configuration, &data);
    let sinks = compose::sinks(&configuration, |_, store| compose::new_driver(store, &memory));
    let (handle, requests) = ReloadHandle::new();
    let role = inputs.common.role().unwrap_or(Role::Serve);
    let sources = ConfigurationSources::new(&inputs.common, &inputs.environment);
    let (configuration_now, tokens) = (&configuration, watch.tokens());
    let admin_port = admin_address.port();
    let start =
        Start { configuration: configuration_now, data: &data, tokens, tls: &tls, memory, role, sources, admin_port };
    let is_first_start = !matches!(journal::origin_of(Arc::new(OsDisk), &data), Ok(Some(_)));
    let mut running = Running::start(start, (intake, intakes), sinks.clone(), handle)?;
    let needs_token = watch.tokens().current().were_made();
    tokio::spawn(watch.follow());
    running.observe();
    running.start_push(&configuration.push, role);
    tls.follow();
    let admin_tls = tls.admin();
    let answers = running.admin.clone();
    let respond = move |request| admin::respond_as_server(request, answers.clone());
    tokio::spawn(admin::serve(admin, admin_tls, running.gateway.counters().drains().clone(), respond));
    let listen = running.gateway.local_addr();
    let ports = Ports { listen, admin: admin_address, intakes: of_intakes, needs_token, is_first_start };
    startup_message::show(&ports, &configuration, &data, running.admin.origin);
    let counters = running.reloads.clone();
    let (stopping, times) = watch::channel(configuration.gateway.stopping);
    let reloader = Reloader {
        inputs,
        components: running.reload_components(tls, stopping),
        current: configuration,
        sinks,
        counters,
    };
    let reloads = tokio::spawn(reloader.follow(hangup, requests));
    manager.notify(State::Ready);

    tokio::select! {
        () = signals.next() => {}
        reason = running.log.failed() => return running.fail(reason),
    }
    tokio::spawn(end_at_once(signals));
    manager.notify(State::Stopping);
    running.gateway.announce_stop();
    let Stopping { delay, deliver } = *times.borrow();
    if !delay.is_zero() {
        tracing::info!("{}", delayed(delay, "requests"));
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            reason = running.log.failed() => return running.fail(reason),
        }
    }
    // A reload in progress is cancelled: the components stop with the configuration that they have.
    reloads.abort();
    let shown = humantime::format_duration(deliver);
    tracing::info!("stopping: Forebay finishes requests in flight, then delivers events for up to {shown}");
    if let Some(events) = running.bus_events.take() {
        events.stop().await;
    }
    let diagnostics = running.admin.diagnostics.clone();
    // On a blocking thread: the runtime still has to receive a second signal.
    let stopped = tokio::task::spawn_blocking(move || running.stop(deliver)).await;
    diagnostics.end().await;
    stopped.unwrap_or_else(|_| Err(anyhow!(NOT_STOPPED)))
}

const NOT_STOPPED: &str = "BUG: Forebay did not stop cleanly; the journal keeps events that aren't stored. Start Forebay again, and report this";

/// Commands in messages name the admin address if the configuration file doesn't.
fn remember_admin(inputs: &Inputs, url: ServerUrl) {
    let named = admin_address::find(Role::Serve, inputs.common.config.as_deref(), &Environment::default());
    let is_named = named.is_ok_and(|named| named.to_string() == url.to_string());
    set_own_flags(|own| own.admin = (!is_named).then(|| url.to_string()));
}

/// Binds the ports of events, of intakes, and of the admin API.
fn bind(configuration: &Configuration) -> anyhow::Result<(TcpListener, Vec<IntakeListener>, tokio::net::TcpListener)> {
    let gateway = &configuration.gateway;
    let intake = TcpListener::bind(gateway.listen).map_err(cannot_listen(gateway.listen, "--listen"))?;
    let admin = TcpListener::bind(gateway.admin).and_then(|listener| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    let intakes = bind_intakes(configuration)?;
    Ok((intake, intakes, admin.map_err(cannot_listen(gateway.admin, "--admin"))?))
}

/// Binds the ports of intakes that have one.
fn bind_intakes(configuration: &Configuration) -> anyhow::Result<Vec<IntakeListener>> {
    let bind = |(name, intake): (&String, &IntakeConfig)| {
        let address = intake.listen?;
        let listener = TcpListener::bind(address).map_err(cannot_listen(address, &format!("intakes.{name}.listen")));
        Some(listener.map(|listener| IntakeListener { intake: name.as_str().into(), listener }))
    };
    configuration.intakes.iter().filter_map(bind).collect()
}

/// The addresses of the ports, with those that the system has chosen.
fn addresses(intakes: &[IntakeListener]) -> anyhow::Result<Vec<(Arc<str>, SocketAddr)>> {
    let address = |one: &IntakeListener| Ok((one.intake.clone(), one.listener.local_addr().map_err(cannot("listen"))?));
    intakes.iter().map(address).collect()
}

/// The inputs of the start.
struct Start<'a> {
    configuration: &'a Configuration,
    data: &'a std::path::Path,
    tokens: &'a Arc<Tokens>,
    tls: &'a PortsTls,
    memory: Budgets,
    role: Role,
    sources: ConfigurationSources,
    admin_port: u16,
}

/// Everything that runs.
struct Running {
    log: Arc<EventLog>,
    delivery: Delivery,
    gateway: Gateway,
    admin: Arc<Admin>,
    reloads: Arc<ReloadCounters>,
    types: TypeInfo,
    objects: ObjectRegistry,
    upstreams: UpstreamBoard,
    retention: RetentionBoard,
    findings: Findings,
    refusals: RecentRefusals,
    readers: Readers,
    bus_events: Option<BusEvents>,
    push: Arc<PushCounters>,
    memory: Budgets,
    /// Given back last.
    _directory: DataDirectory,
}

impl Running {
    #[expect(clippy::too_many_lines, reason = "a list of the parts, in the order of their needs")]
    fn start(
        start: Start<'_>,
        (listener, intakes): (TcpListener, Vec<IntakeListener>),
        sinks: Vec<SinkSetup>,
        reload: ReloadHandle,
    ) -> anyhow::Result<Self> {
        let Start { configuration, data, tokens, tls, memory, role, sources, admin_port } = start;
        let (taps, spans) = (Taps::new(), push::spans(&configuration.push));
        let opened = Opened::start(configuration, data, memory, sinks.clone(), (taps, spans))?;
        let Opened { log, delivery, directory } = opened;
        compose::warn_of_descriptors(&configuration.gateway, &memory);
        let objects = ObjectRegistry::new(delivery.lanes().clone(), &memory);
        let options = GatewayOptions {
            tokens: tokens.clone(),
            tls: tls.intake(),
            taps,
            spans,
            objects: objects.readers(configuration, &sinks),
            ..compose::gateway_options(configuration, &memory)
        };
        let types = compose::types(configuration, &sinks, delivery.lanes());
        let gateway = Gateway::start(listener, intakes, &log, types, options).map_err(cannot("start the gateway"))?;
        let reloads = Arc::<ReloadCounters>::default();
        let types = TypeInfo::new(configuration);
        let upstreams = UpstreamBoard::new(&configuration.upstreams);
        let retention = RetentionBoard::default();
        retention.show(compose::named(&sinks));
        let findings = Findings::new(Some(ServerSources { log: log.clone(), gateway: gateway.counters().clone() }));
        findings.show_lowered(compose::lowered_connections(&configuration.gateway, &memory));
        let push = Arc::new(PushCounters::new(spans));
        let metrics = Metrics::new(
            log.clone(),
            gateway.counters().clone(),
            &delivery,
            reloads.clone(),
            objects.clone(),
            upstreams.clone(),
            retention.clone(),
            findings.clone(),
            push.clone(),
        );
        let overview = ServerOverview::new(
            (role, directory.origin()),
            log.clone(),
            &gateway,
            &delivery,
            upstreams.clone(),
            types.clone(),
            findings.clone(),
        );
        let overviews = Overviews::new(overview);
        let access = AccessSettings::of(&configuration.admin, &configuration.console);
        let is_reachable = configuration.gateway.admin_is_reachable();
        let auth = AdminAuth::new(tokens.clone(), is_reachable, admin_port, access);
        let refusals = RecentRefusals::default();
        let readers = Readers::new(SinkReader::for_bus(configuration, &sinks, delivery.lanes()));
        let stored = gateway.control().stored_events();
        let views = Views {
            overviews: overviews.clone(),
            refusals: Some(Refusals::new(refusals.clone(), gateway.counters().clone(), types.clone())),
            aggregates: Some(Aggregates::new(
                delivery.aggregates().clone(),
                types.clone(),
                (stored.clone(), readers.clone()),
            )),
            sinks: Sinks::of_server(ServerSinks::new(&delivery, upstreams.clone(), types.clone()), sources.clone()),
        };
        let actions = Actions::default();
        let stories = Stories {
            log: log.clone(),
            ledger: delivery.ledger().clone(),
            lanes: delivery.lanes().clone(),
            dead: delivery.dead_letters().clone(),
            readers: readers.clone(),
            types: types.clone(),
            stored: gateway.control().stored_events(),
            actions: actions.clone(),
            progress: Arc::new(delivery.progress().clone()),
        };
        let admin = Arc::new(Admin {
            metrics,
            status: ServerStatus::new(
                role,
                directory.origin(),
                log.clone(),
                &gateway,
                &delivery,
                upstreams.clone(),
                findings.clone(),
            ),
            dead_letters: delivery.dead_letters().clone(),
            dead_reads: DeadReads::new(delivery.dead_letters().clone()),
            jobs: Jobs::default(),
            routes: Routes::new(&delivery),
            types: types.clone(),
            dry_runs: DryRuns::new(types.clone()),
            events: Events { stories },
            payloads: Payloads::new(),
            reload,
            origin: directory.origin(),
            auth,
            readiness: gateway.readiness().clone(),
            diagnostics: Diagnostics {
                findings: findings.clone(),
                overviews,
                memory: MemoryUse::of_server(
                    memory,
                    log.clone(),
                    gateway.control().clone(),
                    &delivery,
                    objects.clone(),
                ),
                gateway: Some(gateway.control().clone()),
                configuration: sources,
                tapping: Tapping::new(taps, Some(log.clone())),
                views,
                fleet: Fleet::new(&configuration.console.peers),
                actions: actions.clone(),
            },
        });
        let bus_events = BusEvents::start(configuration.bus.as_ref(), &readers)?;
        Ok(Self {
            log,
            delivery,
            gateway,
            admin,
            reloads,
            types,
            objects,
            upstreams,
            retention,
            findings,
            refusals,
            readers,
            bus_events,
            push,
            memory,
            _directory: directory,
        })
    }

    /// Starts the tasks that observe what runs.
    fn observe(&self) {
        tokio::spawn(allocator::give_back());
        tokio::spawn(log_unread_times(self.log.types().clone()));
        tokio::spawn(self.retention.clone().follow());
        tokio::spawn(self.findings.clone().follow());
        tokio::spawn(self.admin.diagnostics.overviews.clone().record());
        tokio::spawn(log::refusals::follow(self.gateway.counters().clone(), self.refusals.clone()));
    }

    /// Starts to send metrics, if the configuration has a receiver.
    fn start_push(&self, config: &Push, role: Role) {
        let instance = Instance { role: role.name(), id: self.admin.origin.to_string() };
        let admin = self.admin.clone();
        push::start(config, &instance, &self.push, Arc::new(move |text| admin.metrics.collect(text)));
    }

    fn reload_components(&self, tls: PortsTls, stopping: watch::Sender<Stopping>) -> Components {
        Components {
            tls,
            log: self.log.clone(),
            gateway: self.gateway.control().clone(),
            delivery: self.delivery.control().clone(),
            ledger: self.delivery.ledger().clone(),
            lanes: self.delivery.lanes().clone(),
            types: self.types.clone(),
            objects: self.objects.clone(),
            upstreams: self.upstreams.clone(),
            retention: self.retention.clone(),
            readers: self.readers.clone(),
            findings: self.findings.clone(),
            memory: self.memory,
            stopping,
            actions: self.admin.diagnostics.actions.clone(),
            configuration: self.admin.diagnostics.configuration.clone(),
            auth: self.admin.auth.clone(),
            fleet: self.admin.diagnostics.fleet.clone(),
        }
    }

    /// Answers 500 to the requests that wait for the journal. Then the process ends, and the next start recovers the journal.
    fn fail(self, reason: String) -> anyhow::Result<u8> {
        tracing::error!("{reason}");
        self.gateway.stop(Instant::now() + ANSWER_MAX);
        Err(anyhow!(reason))
    }

    fn stop(self, deliver: Duration) -> anyhow::Result<u8> {
        if !self.gateway.stop(Instant::now() + ANSWER_MAX) {
            tracing::warn!("some requests in flight got no response: their clients have to retry");
        }
        self.delivery.stop(deliver);
        seal(&self.log)?;
        tracing::info!("stopped");
        Ok(0)
    }
}

/// Logs the first event of each type whose time cannot be read. The others are counted.
async fn log_unread_times(types: Arc<Types>) {
    loop {
        for (name, reason) in types.unread_times().news().await {
            tracing::warn!(
                "type" = %name, %reason,
                "the time of an event can't be read: its time of receipt is used. forebay_event_times_unread_total counts others of the type. Set \
                 time_format and time_zone, or reject them with time_unreadable = \"refuse\""
            );
        }
    }
}
