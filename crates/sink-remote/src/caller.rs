//! Requests to the writers of an upstream: chooses the writer, and goes to the next one if nothing was done.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use event::Lane;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Method;
use limits::STORE_TIMEOUT;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use super::binding::Binding;
use super::config::RemoteConfig;
use super::exchange::{Call, Exchange, Parsed, Unanswered};
use super::upstream::{Choice, Order, SinkUse, UpstreamConfig, WriterServer, Writers};
use net::http_client::HttpResponse;
use sink::close_signal::CloseSignal;
use sink::{Mark, SinkError, StoreBinding};
use writer_protocol::SinkInfo;

/// A working writer sends a newline each second: one that is silent for this long is treated as dead.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(3);
/// The longest pause of a lane that found no writer: one may be back at any moment, and a failed connection costs little.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// After a search that found no writer, lanes share its result for this long. The lanes of a sink so search about once a second together.
const SEARCH_PAUSE: Duration = Duration::from_millis(500);
/// The pause between two checks, during a search, if the prober has found a writer.
const RECHECK: Duration = Duration::from_millis(200);
/// How long a survey waits for the first description after another writer has failed.
const SURVEY_MAX: Duration = STORE_TIMEOUT;
/// How long the first description of the sink waits for the other writers' ones. A difference is so found before the sink is bound.
const COMPARE_FOR: Duration = Duration::from_millis(500);

/// Sends a sink's requests to the writers of an upstream. The connections belong to the thread that uses them.
pub(crate) struct Caller {
    config: RemoteConfig,
    exchange: Exchange,
    binding: Arc<Binding>,
    /// One lane searches at a time.
    search: LastSearch,
    /// How often the sink was closed: a change ends the calls in flight.
    closed: CloseSignal,
    _use: Arc<SinkUse>,
}

impl StoreBinding for Caller {
    fn mark(&self) -> Option<Mark> {
        self.binding.mark()
    }

    fn has_other_store(&self) -> bool {
        self.binding.has_other_store()
    }

    fn bind(&self, mark: Option<Mark>) {
        match mark {
            Some(mark) => self.binding.expect(mark),
            None => self.binding.unbind(),
        }
    }

    fn server_of(&self, lane: &Lane) -> Option<Arc<str>> {
        Some(self.config.upstream.server_of(lane)?.label().into())
    }

    /// One second if no writer could be reached. If the store failed, the usual pauses apply.
    fn retry_max(&self) -> Option<Duration> {
        self.config.upstream.state().is_unreachable().then_some(RETRY_MAX)
    }
}

/// When the last search for a writer failed, and why. Those that share it search one after the other.
pub(crate) type LastSearch = Arc<Mutex<Option<(Instant, Failures)>>>;

/// The failures of the writers that were tried for one request.
#[derive(Clone)]
pub(crate) struct Failures {
    last: SinkError,
    is_other_store: bool,
    is_unanswered: bool,
}

impl Failures {
    fn new(last: SinkError) -> Self {
        Self { last, is_other_store: false, is_unanswered: false }
    }

    /// Notes a failure. Returns whether it is unknown what the writer did.
    fn add(&mut self, unanswered: Unanswered) -> bool {
        let is_unknown = matches!(unanswered, Unanswered::Unknown(_));
        self.is_unanswered |= !matches!(unanswered, Unanswered::Refused(_));
        self.last = unanswered.into_error();
        is_unknown
    }

    fn merge(&mut self, other: &Self) {
        self.last = other.last.clone();
        self.is_other_store |= other.is_other_store;
        self.is_unanswered |= other.is_unanswered;
    }
}

impl Caller {
    pub(crate) fn new(config: RemoteConfig) -> Self {
        let binding = Arc::new(Binding::new(&config.sink));
        Self::waiting(config, binding, SILENCE_MAX, LastSearch::default())
    }

    /// The same sink with separate connections, for requests with another limit of silence. Lanes survey the writers for
    /// longer than a read should wait, so reads have their own searches.
    pub(crate) fn to_read(&self, silence_max: Duration, search: LastSearch) -> Self {
        Self::waiting(self.config.clone(), self.binding.clone(), silence_max, search)
    }

    fn waiting(config: RemoteConfig, binding: Arc<Binding>, silence_max: Duration, search: LastSearch) -> Self {
        let RemoteConfig { upstream, sink, server, .. } = &config;
        let exchange = Exchange::new(upstream, sink, Arc::clone(&binding), silence_max);
        let of_sink = upstream.state().register(SinkUse { sink: sink.clone(), server: server.clone() });
        Self { config, exchange, binding, search, closed: CloseSignal::default(), _use: of_sink }
    }

    pub(crate) const fn config(&self) -> &RemoteConfig {
        &self.config
    }

    pub(crate) const fn binding(&self) -> &Arc<Binding> {
        &self.binding
    }

    /// Ends the calls in flight and closes idle connections.
    pub(super) fn close(&self) {
        self.closed.close();
        self.exchange.close_idle();
    }

    /// Sends a request to a writer. The inner error is the failure of the writer's sink.
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<Result<T, SinkError>, SinkError> {
        let closed = SinkError::Unavailable("the sink was closed".into());
        self.closed.unless_closed(closed, self.ask_each(call)).await
    }

    /// Tries one writer after the other. A batch or object goes to the next one only if the last one certainly did nothing.
    async fn ask_each<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<Result<T, SinkError>, SinkError> {
        let upstream = &self.config.upstream;
        let Order { available, others } = self.order(call);
        let (is_first, is_empty) = (available.is_empty(), available.is_empty() && others.is_empty());
        let mut failures = Failures::new(self.no_writer());
        let answer = match self.first_of(available, call, &mut failures).await {
            Tried::Failed => match self.search(others, is_first, &mut failures).await {
                Some(found) => self.first_of(vec![found], call, &mut failures).await,
                None => Tried::Failed,
            },
            tried => tried,
        };
        if let Tried::Answered(answer) = answer {
            upstream.state().set_unreachable(false);
            return Ok(answer);
        }
        upstream.state().set_unreachable((failures.is_unanswered || is_empty) && !failures.is_other_store);
        Err(failures.last)
    }

    /// Tries these writers in order.
    async fn first_of<T: DeserializeOwned>(
        &self,
        servers: Vec<Arc<WriterServer>>,
        call: &Call<'_>,
        failures: &mut Failures,
    ) -> Tried<T> {
        let stores = call.stores().is_some();
        for server in servers {
            if let (true, Some(lane)) = (stores, call.lane) {
                self.config.upstream.state().uses(lane, &server);
            }
            match self.exchange.ask(&server, call).await {
                Ok(Parsed::Result(result)) => {
                    self.binding.accept(&server.label());
                    return Tried::Answered(result);
                }
                Ok(Parsed::Differs(info)) => self.refuse(&server, &info, failures),
                Err(unanswered) => {
                    if failures.add(unanswered) && stores {
                        return Tried::Unknown;
                    }
                }
            }
        }
        Tried::Failed
    }

    fn refuse(&self, server: &WriterServer, info: &SinkInfo, failures: &mut Failures) {
        failures.last = SinkError::Misconfigured(self.binding.refuse(&server.label(), info));
        failures.is_other_store = true;
    }

    /// Finds a writer that serves the sink: probes all of these concurrently, and returns the first that answers. So a writer that hangs
    /// gets no batch and delays none. The only writer of a sink (`is_only` and no other) needs no probe.
    async fn search(
        &self,
        servers: Vec<Arc<WriterServer>>,
        is_only: bool,
        failures: &mut Failures,
    ) -> Option<Arc<WriterServer>> {
        if servers.is_empty() || (is_only && servers.len() == 1) {
            return servers.into_iter().next();
        }
        let mut last = self.search.lock().await;
        let sink = &self.config.sink;
        // Another lane, or the prober, may have found one while this one waited.
        if let Some(found) = servers.iter().find(|server| server.is_available(sink)) {
            return Some(Arc::clone(found));
        }
        if let Some((_, shared)) = last.as_ref().filter(|(at, _)| at.elapsed() < SEARCH_PAUSE) {
            failures.merge(shared);
            return None;
        }
        let mut found_none = Failures::new(failures.last.clone());
        let (probe, exchange) = (&Call::new(Method::GET, ""), &self.exchange);
        let ask = |server: &Arc<WriterServer>| {
            let server = Arc::clone(server);
            async move { (exchange.ask(&server, probe).await, server) }
        };
        let mut probes: FuturesUnordered<_> = servers.iter().map(ask).collect();
        loop {
            let Ok(next) = timeout(RECHECK, probes.next()).await else {
                // While some of them hang, the prober may find that another one works again.
                match servers.iter().find(|server| server.is_available(sink)) {
                    Some(found) => return Some(Arc::clone(found)),
                    None => continue,
                }
            };
            let Some((answer, server)) = next else { break };
            match answer {
                Ok(Parsed::<SinkInfo>::Result(Ok(_))) => {
                    *last = None;
                    return Some(server);
                }
                Ok(Parsed::Result(Err(error))) => found_none.last = error,
                Ok(Parsed::Differs(info)) => self.refuse(&server, &info, &mut found_none),
                Err(unanswered) => drop(found_none.add(unanswered)),
            }
        }
        failures.merge(&found_none);
        *last = Some((Instant::now(), found_none));
        None
    }

    /// Asks a writer for bytes. Returns an answer of any status before its body is read, unless a writer rejects the request.
    pub(crate) async fn download(&self, call: &Call<'_>) -> Result<HttpResponse, SinkError> {
        let Order { available, others } = self.order(call);
        let (is_first, mut failures) = (available.is_empty(), Failures::new(self.no_writer()));
        for server in available {
            match self.exchange.download(&server, call).await {
                Ok(answer) => return Ok(answer),
                Err(unanswered) => drop(failures.add(unanswered)),
            }
        }
        let Some(server) = self.search(others, is_first, &mut failures).await else { return Err(failures.last) };
        self.exchange.download(&server, call).await.map_err(Unanswered::into_error)
    }

    /// The writers in the order in which they are tried.
    fn order(&self, call: &Call<'_>) -> Order {
        let RemoteConfig { upstream, server, sink, .. } = &self.config;
        let any_lane = Lane { origin: event::Origin([0; 16]), shard: 0, sink: sink.as_str().into() };
        let lane = call.lane.unwrap_or(&any_lane);
        let choice = Choice { lane, sink, server: server.as_deref(), is_batch: call.stores().is_some() };
        let mut order = upstream.state().order(&choice);
        order.available.sort_by_key(|server| self.binding.is_refused(&server.label()));
        order
    }

    fn no_writer(&self) -> SinkError {
        let UpstreamConfig { name, writers, .. } = self.config.upstream.config();
        let by = if matches!(writers, Writers::Etcd { .. }) { "etcd" } else { "DNS" };
        SinkError::Unavailable(
            format!(
                "{by} has named no writer of the upstream {name} yet: check its settings, and that its writers run"
            )
            .into(),
        )
    }

    /// Runs `work` while no other lane searches or surveys.
    pub(super) async fn alone<T>(&self, work: impl Future<Output = T>) -> T {
        let _alone = self.search.lock().await;
        work.await
    }

    /// Asks all writers concurrently for the description of their sink. After the first description, the others have [`COMPARE_FOR`]: a
    /// writer that hangs delays no start.
    pub(super) async fn survey(&self) -> Vec<(String, Result<SinkInfo, SinkError>)> {
        let call = Call::new(Method::GET, "");
        let Order { available, others } = self.order(&call);
        let ask = async |server: Arc<WriterServer>| {
            let info = match self.exchange.ask(&server, &call).await {
                Ok(Parsed::Result(info)) => info,
                Ok(Parsed::Differs(info)) => Ok(info),
                Err(unanswered) => Err(unanswered.into_error()),
            };
            (server.label(), info)
        };
        let mut asked: FuturesUnordered<_> = available.into_iter().chain(others).map(ask).collect();
        let (mut answers, mut deadline): (Vec<(String, Result<SinkInfo, SinkError>)>, _) = (Vec::new(), None);
        loop {
            let next = match deadline {
                Some(deadline) => timeout_at(deadline, asked.next()).await.unwrap_or(None),
                None => asked.next().await,
            };
            let Some(answer) = next else { return answers };
            let now = Instant::now();
            match (&answer.1, answers.iter().any(|(_, info)| info.is_ok())) {
                (Ok(_), false) => deadline = Some(now + COMPARE_FOR),
                _ => drop(deadline.get_or_insert(now + SURVEY_MAX)),
            }
            answers.push(answer);
        }
    }
}

/// The result of trying some writers.
enum Tried<T> {
    Answered(Result<T, SinkError>),
    /// None of them did anything.
    Failed,
    /// It is unknown what the last one did: no other may be tried.
    Unknown,
}

pub(super) fn odd(what: &str) -> SinkError {
    SinkError::Unavailable(format!("the writer sent {what}: check the proxies between gateway and writer").into())
}
