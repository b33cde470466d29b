//! `forebay writer`: the back-end. It offers its sinks to gateways, and owns nothing but an embedded store, if it has one.

mod admin;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use config::{ConnectionLimits, SinkConfig, WriterConfiguration};
use discovery::{Advertised, Registration};
use journal::DataDirectory;
use journal::disk::OsDisk;
use net::connections::ConnectionLimiter;
use settings::Environment;
use tap::Taps;
use tokio::net::TcpListener;
use tokio::signal::unix::Signal;
use writer::{Offered, Writer};

use crate::actions::Actions;
use crate::admin::{AccessSettings, AdminAuth, Diagnostics, Fleet, Sinks, Views};
use crate::bus_events::{BusEvents, Readers};
use crate::configuration_report::shown;
use crate::configuration_sources::ConfigurationSources;
use crate::findings::Findings;
use crate::memory_plan::WriterPlan;
use crate::memory_use::MemoryUse;
use crate::metrics::push::PushCounters;
use crate::overview::{Overviews, WriterOverview};
use crate::process::descriptors;
use crate::process::service_manager::{ServiceManager, State};
use crate::push::{self, Instance};
use crate::read_back::of_writer;
use crate::retention::RetentionBoard;
use crate::roles::writer::admin::Shown;
use crate::signals::{self, runtime_with_signals};
use crate::tapping::Tapping;
use crate::tls::watch::TlsWatch;
use crate::token_watch::TokenWatch;
use crate::{allocator, log};
use cli::Common;
use cli::EXIT_CONFIGURATION;
use cli::errors::{cannot_listen, unusable};
use cli::signals::Signals;

/// Batches in flight get this long to be answered when a writer stops.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Runs a writer until a signal comes, and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(common: &Common, environment: &Environment) -> anyhow::Result<u8> {
    let (runtime, (signals, hangup)) = runtime_with_signals()?;
    let loaded = common.load_writer(environment);
    log::start_thread();
    let Some(configuration) = shown(loaded) else { return Ok(EXIT_CONFIGURATION) };
    log::configure(configuration.log.format, configuration.log.level);
    let (manager, sources) = (ServiceManager::of(environment), ConfigurationSources::new(common, environment));
    runtime.block_on(serve(&configuration, common, sources, (signals, hangup), &manager))
}

#[expect(clippy::too_many_lines, reason = "a list of the parts, in the order of their needs")]
async fn serve(
    configuration: &WriterConfiguration,
    common: &Common,
    sources: ConfigurationSources,
    (mut signals, hangup): (Signals, Signal),
    manager: &ServiceManager,
) -> anyhow::Result<u8> {
    tokio::spawn(warn_of_hangups(hangup));
    tokio::spawn(allocator::give_back());
    let started = clock::unix_microseconds();
    let listener = bind(configuration.listen, "--listen").await?;
    let admin = bind(configuration.admin, "--admin").await?;
    // Without an embedded store there is nothing that two processes could spoil, and a read-only root will do.
    let data = common.directory();
    let opened = configuration.has_embedded_store().then(|| DataDirectory::open(Arc::new(OsDisk), data));
    let _directory = opened.transpose().map_err(unusable)?;
    let tokens = TokenWatch::start(configuration.tokens.clone())?;
    let tls = configuration.tls.clone().map(TlsWatch::start).transpose()?.map(Arc::new);
    let shown = tls.as_ref().map(|watch| watch.tls().clone());
    let offered = offered(configuration);
    let is_loopback = configuration.listens_on_loopback();
    let (memory, taps) = (WriterPlan::of(configuration), Taps::new());
    let spans = push::spans(&configuration.push);
    if let Some(warning) = memory.warning() {
        tracing::warn!("{warning}");
    }
    if let Some(summary) = memory.summary() {
        tracing::info!("{summary}");
    }
    let writer = Writer::new(offered, tokens.tokens().clone(), configuration.demand(), is_loopback, shown);
    let writer = Arc::new(writer.with_memory(&memory.budgets).with_taps(taps).with_spans(spans));
    let access = AccessSettings::of(&configuration.admin_port, &configuration.console);
    let port = admin.local_addr().map_or(configuration.admin.port(), |address| address.port());
    let auth = AdminAuth::new(tokens.tokens().clone(), configuration.admin_is_reachable(), port, access);
    tokio::spawn(tokens.follow());
    if let Some(tls) = &tls {
        tokio::spawn(tls.clone().follow());
    }
    log_start(configuration, &listener, &admin, &writer);
    let registration = configuration.etcd.clone().map(|etcd| {
        let advertised = Advertised { url: etcd.advertise, admin: etcd.advertise_admin };
        Registration::start(etcd.etcd, advertised, etcd.lease)
    });
    let is_registered = registration.as_ref().map(Registration::registered_flag);
    let fleet = Fleet::new(&configuration.console.peers);
    let (retention, diagnostics) =
        observe((&writer, stores(configuration)), sources, taps, is_registered.clone(), fleet);
    let shown = Shown {
        writer: writer.clone(),
        retention,
        is_registered,
        started,
        host: Arc::default(),
        push: Arc::new(PushCounters::new(spans)),
        diagnostics: diagnostics.clone(),
    };
    start_push(configuration, &listener, &shown);
    tokio::spawn(admin::serve(admin, shown, auth));
    let events = BusEvents::start(configuration.bus.as_ref(), &Readers::new(of_writer(writer.offered())))?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let all = memory.budgets.connections;
    let ConnectionLimits { all, per_client } = descriptors::within_limit(ConnectionLimits { all, per_client: all / 2 });
    let limiter = ConnectionLimiter::new(all, per_client);
    let mut serving = tokio::spawn(writer.clone().serve(listener, limiter, async { drop(stopped.await) }));
    manager.notify(State::Ready);
    signals.next().await;
    tokio::spawn(signals::end_at_once(signals));
    manager.notify(State::Stopping);
    writer.announce_stop();
    if let Some(registration) = registration {
        registration.leave().await;
    }
    let delay = configuration.stop_delay;
    if !delay.is_zero() {
        tracing::info!("{}", signals::delayed(delay, "batches"));
        tokio::time::sleep(delay).await;
    }
    tracing::info!("stopping: the writer finishes batches in flight for up to 10 s; gateways use another writer");
    drop(stop);
    tokio::select! {
        _ = &mut serving => {}
        () = tokio::time::sleep(ANSWER_MAX) => tracing::warn!("some batches in flight got no response: gateways \
            resend them"),
    }
    if let Some(events) = events {
        events.stop().await;
    }
    diagnostics.end().await;
    for offered in writer.offered().values() {
        // Everything that was answered is stored regardless.
        let _ = offered.sink.close().await;
    }
    tracing::info!("stopped");
    Ok(0)
}

/// Starts the tasks that observe what runs.
fn observe(
    (writer, stores): (&Arc<Writer>, BTreeMap<String, SinkConfig>),
    configuration: ConfigurationSources,
    taps: &'static Taps,
    is_registered: Option<Arc<AtomicBool>>,
    fleet: Fleet,
) -> (RetentionBoard, Diagnostics) {
    let (retention, findings) = (RetentionBoard::default(), Findings::new(None));
    retention.show(writer.offered().iter().map(|(name, offered)| (name.as_str().into(), offered.sink.clone())));
    tokio::spawn(retention.clone().follow());
    tokio::spawn(findings.clone().follow());
    let overviews = Overviews::new(WriterOverview::new(writer.clone(), findings.clone(), is_registered));
    let memory = MemoryUse::Writer(writer.clone());
    let tapping = Tapping::new(taps, None);
    tokio::spawn(overviews.clone().record());
    let sinks = Sinks::of_writer(writer.clone(), stores, configuration.clone());
    let views = Views { overviews: overviews.clone(), refusals: None, aggregates: None, sinks };
    let actions = Actions::default();
    let diagnostics =
        Diagnostics { findings, overviews, memory, gateway: None, configuration, tapping, views, actions, fleet };
    (retention, diagnostics)
}

/// Starts to send metrics, if the configuration has a receiver. A writer has no id: its machine and its port identify it.
fn start_push(configuration: &WriterConfiguration, listener: &TcpListener, shown: &Shown) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    let id = format!("{}:{port}", host::host_name());
    let instance = Instance { role: config::Role::Writer.name(), id };
    let metrics = shown.clone();
    push::start(&configuration.push, &instance, &shown.push, Arc::new(move |text| metrics.collect(text)));
}

/// A writer keeps no state, so a restart loses nothing, and makes a reload unnecessary.
async fn warn_of_hangups(mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        tracing::warn!(
            "SIGHUP: a writer doesn't reload its configuration. Restart it: gateways use another writer or wait."
        );
    }
}

async fn bind(address: SocketAddr, flag: &'static str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(cannot_listen(address, flag))
}

/// The configuration of each store.
fn stores(configuration: &WriterConfiguration) -> BTreeMap<String, SinkConfig> {
    configuration.sinks.iter().map(|(name, settings)| (name.to_string(), settings.store.clone())).collect()
}

fn offered(configuration: &WriterConfiguration) -> BTreeMap<String, Offered> {
    let offer = |(name, settings): (&_, &config::SinkSettings)| {
        let (kind, parts) = (settings.store.writer_kind()?, settings.store.parts());
        let sink = settings.store.build();
        Some((config::SinkName::to_string(name), Offered::new(kind, parts, sink)))
    };
    configuration.sinks.iter().filter_map(offer).collect()
}

fn log_start(configuration: &WriterConfiguration, listener: &TcpListener, admin: &TcpListener, writer: &Writer) {
    let shown = |listener: &TcpListener| listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let scheme = if configuration.tls.is_some() { "https" } else { "http" };
    let sinks: Vec<&str> = writer.offered().keys().map(String::as_str).collect();
    let admin = shown(admin);
    let console =
        if configuration.console.is_enabled { format!(", console on http://{admin}/") } else { String::new() };
    tracing::info!(
        "writer {} accepts batches on {scheme}://{} for the sinks {}; metrics on http://{admin}/metrics{console}",
        env!("CARGO_PKG_VERSION"),
        shown(listener),
        sinks.join(", "),
    );
}
