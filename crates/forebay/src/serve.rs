//! `forebay serve`: gateway and delivery in one process, from start to stop.
//!
//! It starts in the order in which the parts depend on each other, and stops in the reverse order.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use access::Tokens;
use delivery::{Delivery, SinkSetup};
use event::memory::Budgets;
use eventlog::{EventLog, Types};
use gateway::{Gateway, GatewayOptions};
use journal::DataDirectory;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::admin::{Admin, Entrance, Payloads, Routes, Trials};
use crate::check::{EXIT_CONFIGURATION, show};
use crate::cli::Common;
use settings::{Diagnostics, Environment};

use crate::config::{Configuration, LoadError, Stopping};
use crate::discovery::UpstreamBoard;
use crate::metrics::Metrics;
use crate::object_board::ObjectBoard;
use crate::opened::{Opened, plan_memory, seal};
use crate::ports_tls::PortsTls;
use crate::reload::{Inputs, Parts, ReloadCounters, ReloadDesk, Reloader};
use crate::serve_error::ServeError;
use crate::service_manager::{ServiceManager, State};
use crate::token_watch::TokenWatch;
use crate::type_board::TypeBoard;
use crate::{admin, allocator, banner, log, mapped_code, wiring};

/// Requests in flight get this long to be answered when Forebay stops.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// What a second signal exits with: 128 and the number of SIGTERM, as shells have it.
pub(crate) const EXIT_AT_ONCE: i32 = 143;

/// Serves until a signal comes, and gives the process's exit code.
///
/// # Errors
/// [`ServeError`] says what stands in the way.
pub(crate) fn run(common: &Common, environment: &Environment) -> Result<u8, ServeError> {
    let inputs = Inputs { common: common.clone(), environment: environment.clone() };
    let (runtime, signals) = runtime_with_signals()?;
    let loaded = allocator::joining_at_once(|| inputs.load());
    log::start_thread();
    common.warn_of_overlooked();
    let Some(configuration) = shown(loaded) else { return Ok(EXIT_CONFIGURATION) };
    log::configure(configuration.log.format, configuration.log.level);
    let code = runtime.block_on(serve(configuration, inputs, signals));
    // A DNS look-up may take longer than the end of the process should.
    runtime.shutdown_background();
    code
}

/// The runtime of a role's process. Signals are waited for before anything else, so that one in the midst of the start isn't lost, nor ends
/// the process.
pub(crate) fn runtime_with_signals() -> Result<(Runtime, (Signals, Signal)), ServeError> {
    let system = |what| move |source| ServeError::System { what, source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system("start"))?;
    let signals = {
        let _context = runtime.enter();
        Signals::new().map_err(system("wait for signals"))?
    };
    Ok((runtime, signals))
}

/// A configuration, with its warnings shown; none if there are mistakes, which are shown instead.
pub(crate) fn shown<T>(loaded: Result<(T, Diagnostics), LoadError>) -> Option<T> {
    match loaded {
        Ok((configuration, warnings)) => {
            if !warnings.is_empty() {
                show(&LoadError::Invalid(warnings));
            }
            Some(configuration)
        }
        Err(error) => {
            show(&error);
            None
        }
    }
}

async fn serve(
    mut configuration: Configuration,
    inputs: Inputs,
    (mut signals, hangup): (Signals, Signal),
) -> Result<u8, ServeError> {
    let data = inputs.common.data.directory.clone();
    let manager = ServiceManager::of(&inputs.environment);
    let (intake, admin) = bind(&configuration)?;
    let watch = TokenWatch::start(configuration.gateway.tokens.clone())?;
    let tls = PortsTls::start(&configuration)?;
    let memory = plan_memory(&mut configuration, &data);
    let sinks = wiring::sinks(&configuration, |_, store| wiring::new_driver(store, &memory));
    let (desk, asked) = ReloadDesk::new();
    let start = Start { configuration: &configuration, data: &data, tokens: watch.tokens(), tls: &tls, memory };
    let running = Running::start(start, intake, (sinks.clone(), desk))?;
    let needs_token = watch.tokens().current().were_made();
    tokio::spawn(watch.follow());
    tokio::spawn(allocator::give_back());
    tokio::spawn(tell_unread_times(running.log.types().clone()));
    tls.follow();
    let admin_address = admin.local_addr().map_err(|source| ServeError::System { what: "listen", source })?;
    tokio::spawn(admin::serve(admin, running.admin.clone()));
    let ports = banner::Ports { listen: running.gateway.local_addr(), admin: admin_address, needs_token };
    banner::show(&ports, &configuration, (&data, running.admin.origin));
    let counters = running.reloads.clone();
    let (stopping, times) = watch::channel(configuration.gateway.stopping);
    let reloader = Reloader { inputs, parts: running.parts(tls, stopping), current: configuration, sinks, counters };
    let reloads = tokio::spawn(reloader.follow(hangup, asked));
    mapped_code::let_go();
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
        log::info(delayed(delay, "requests"));
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            reason = running.log.failed() => return running.fail(reason),
        }
    }
    // A reload in progress is cancelled: the parts stop with the configuration that they have.
    reloads.abort();
    let shown = humantime::format_duration(deliver);
    log::info(format_args!("stopping: requests in flight are answered, then events are delivered for up to {shown}"));
    // On a blocking thread, so that the runtime still receives a second signal.
    let stopped = tokio::task::spawn_blocking(move || running.stop(deliver)).await;
    stopped.unwrap_or_else(|_| Err(ServeError::JournalFailed("the stop was interrupted by a bug".into())))
}

/// A second signal ends the process at once.
pub(crate) async fn end_at_once(mut signals: Signals) {
    signals.next().await;
    log::warning("stopped at once by a second signal; acknowledged events are in the journal");
    log::flush();
    std::process::exit(EXIT_AT_ONCE);
}

/// The log message of a stop that first waits for load balancers.
pub(crate) fn delayed(delay: Duration, what: &str) -> String {
    let delay = humantime::format_duration(delay);
    format!("stopping: /readyz answers 503, and {what} are accepted for another {delay} (stop_delay)")
}

fn bind(configuration: &Configuration) -> Result<(TcpListener, tokio::net::TcpListener), ServeError> {
    let gateway = &configuration.gateway;
    let failed = |address, flag| move |source| ServeError::Listen { address, flag, source };
    let intake = TcpListener::bind(gateway.listen).map_err(failed(gateway.listen, "--listen"))?;
    let admin = TcpListener::bind(gateway.admin).and_then(|listener| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    Ok((intake, admin.map_err(failed(gateway.admin, "--admin"))?))
}

/// What everything is started with.
struct Start<'a> {
    configuration: &'a Configuration,
    data: &'a std::path::Path,
    tokens: &'a Arc<Tokens>,
    tls: &'a PortsTls,
    memory: Budgets,
}

/// Everything that runs.
struct Running {
    log: Arc<EventLog>,
    delivery: Delivery,
    gateway: Gateway,
    admin: Arc<Admin>,
    reloads: Arc<ReloadCounters>,
    types: TypeBoard,
    objects: ObjectBoard,
    upstreams: UpstreamBoard,
    memory: Budgets,
    /// Given back last.
    _directory: DataDirectory,
}

impl Running {
    fn start(
        start: Start<'_>,
        intake: TcpListener,
        (sinks, reload): (Vec<SinkSetup>, ReloadDesk),
    ) -> Result<Self, ServeError> {
        let Start { configuration, data, tokens, tls, memory } = start;
        let opened = Opened::start(configuration, data, memory, sinks.clone())?;
        let Opened { log, delivery, directory } = opened;
        wiring::warn_of_descriptors(&configuration.gateway, &memory);
        let objects = ObjectBoard::new(delivery.lanes().clone(), &memory);
        let options = GatewayOptions {
            tokens: tokens.clone(),
            tls: tls.intake(),
            objects: objects.readers(configuration, &sinks),
            ..wiring::gateway_options(&configuration.gateway, &memory)
        };
        let gateway = Gateway::start(intake, &log, wiring::types(configuration, &sinks, delivery.lanes()), options)
            .map_err(|source| ServeError::System { what: "start the gateway", source })?;
        let reloads = Arc::<ReloadCounters>::default();
        let types = TypeBoard::new(configuration);
        let upstreams = UpstreamBoard::new(configuration);
        let boards = (objects.clone(), upstreams.clone());
        let metrics = Metrics::new(log.clone(), gateway.counters().clone(), &delivery, reloads.clone(), boards);
        let admin = Arc::new(Admin {
            metrics,
            dead_letters: delivery.dead_letters().clone(),
            routes: Routes::new(&delivery),
            types: types.clone(),
            trials: Trials::new(types.clone()),
            payloads: Payloads::new(),
            reload,
            origin: directory.origin(),
            entrance: Entrance::new(tokens.clone(), configuration.gateway.admin_is_reachable(), tls.admin().is_some()),
            readiness: gateway.readiness().clone(),
            tls: tls.admin(),
        });
        Ok(Self { log, delivery, gateway, admin, reloads, types, objects, upstreams, memory, _directory: directory })
    }

    fn parts(&self, tls: PortsTls, stopping: watch::Sender<Stopping>) -> Parts {
        Parts {
            tls,
            log: self.log.clone(),
            gateway: self.gateway.control().clone(),
            delivery: self.delivery.control().clone(),
            lanes: self.delivery.lanes().clone(),
            types: self.types.clone(),
            objects: self.objects.clone(),
            upstreams: self.upstreams.clone(),
            memory: self.memory,
            stopping,
        }
    }

    /// Answers 500 to the requests that wait for the journal. Then the process ends, so that the next start recovers the journal.
    fn fail(self, reason: String) -> Result<u8, ServeError> {
        log::error(&reason);
        self.gateway.stop(Instant::now() + ANSWER_MAX);
        Err(ServeError::JournalFailed(reason))
    }

    fn stop(self, deliver: Duration) -> Result<u8, ServeError> {
        if !self.gateway.stop(Instant::now() + ANSWER_MAX) {
            log::warning("some requests were still in flight and got no answer");
        }
        self.delivery.stop(deliver);
        seal(&self.log)?;
        log::info("stopped");
        Ok(0)
    }
}

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// They, and SIGHUP.
    pub(crate) fn new() -> io::Result<(Self, Signal)> {
        let this = Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? };
        Ok((this, signal(SignalKind::hangup())?))
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Logs the first event of each type whose time cannot be read. The others are counted.
async fn tell_unread_times(types: Arc<Types>) {
    loop {
        for (name, reason) in types.unread_times().news().await {
            log::warning(format_args!(
                "the time of an event of type {name} cannot be read ({reason}): it counts as happened when it was received. Others of \
                 the type are counted in forebay_event_times_unread_total. See time_format and time_zone, or refuse them with \
                 time_unreadable = \"refuse\""
            ));
        }
    }
}
