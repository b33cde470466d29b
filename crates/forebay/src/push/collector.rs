//! The collector of OpenTelemetry: one request at a time, with a deadline, and a pause after a failure.

use std::sync::Arc;
use std::time::Duration;

use config::OtlpConfig;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use net::http_client::{HttpClient, HttpFailure, HttpOptions, full, retry_after, shortened};
use otlp::{ExportResponse, Message};
use tokio::time::{Instant, sleep_until, timeout};

use crate::metrics::push::PushCounters;

/// The time of a whole request.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// The time for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes of a response that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The pause after the first failure. Each further one doubles it.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that the collector didn't ask for.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The time between two messages about failures.
const SILENCE: Duration = Duration::from_secs(60);

/// A collector.
pub(super) struct Collector {
    config: OtlpConfig,
    client: HttpClient,
    counters: Arc<PushCounters>,
    /// Failures since the last success.
    failures: u32,
    resume: Instant,
    logged: Option<Instant>,
}

/// A request that wasn't accepted.
struct Failure {
    reason: String,
    /// The pause that the collector asked for.
    pause: Option<Duration>,
}

impl Collector {
    pub(super) fn new(config: &OtlpConfig, counters: Arc<PushCounters>) -> Self {
        let client = HttpClient::new(HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_MAX,
            silence_max: REQUEST_MAX,
            // The task waits, not the request.
            waits_for_retry_after: false,
        });
        Self { config: config.clone(), client, counters, failures: 0, resume: Instant::now(), logged: None }
    }

    /// Sends a request, and returns whether to send the next one.
    pub(super) async fn send(&mut self, path: &str, body: Vec<u8>) -> bool {
        let answered = timeout(REQUEST_MAX, self.exchange(path, body)).await;
        let answered = answered.unwrap_or_else(|_| {
            Err(Failure { reason: format!("no complete response for {REQUEST_MAX:?}"), pause: None })
        });
        match answered {
            Ok(rejected) => {
                self.failures = 0;
                match rejected {
                    Some(reason) => {
                        self.counters.rejected.add(1);
                        self.log(&format!("rejected a part: {reason}"));
                    }
                    None => self.counters.accepted.add(1),
                }
                true
            }
            Err(Failure { reason, pause }) => {
                self.counters.failed.add(1);
                let own = PAUSE.saturating_mul(1 << self.failures.min(6)).min(PAUSE_MAX);
                self.failures += 1;
                self.resume = Instant::now() + pause.unwrap_or(own);
                self.log(&reason);
                false
            }
        }
    }

    /// Waits until the collector may get a request again.
    pub(super) async fn wait(&self) {
        sleep_until(self.resume).await;
    }

    /// The reason why a part was rejected, if it was.
    async fn exchange(&self, path: &str, body: Vec<u8>) -> Result<Option<String>, Failure> {
        let mut request = Request::new(full(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.config.url.url(path)?;
        let headers = request.headers_mut();
        headers.extend(self.config.headers.iter().cloned());
        headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(otlp::PROTOBUF));
        let response = self.client.send(request).await?;
        let (status, pause) = (response.status(), retry_after(response.headers()));
        let answer = response.bytes(ANSWER_BYTES_MAX).await;
        if status.is_success() {
            let message = ExportResponse::decode(answer?).unwrap_or_default().partial_success;
            let rejected = message.filter(|partial| partial.rejected > 0);
            return Ok(rejected.map(|partial| shortened(&partial.error_message)));
        }
        Err(Failure { reason: explained(status), pause })
    }

    /// Logs a failure, at most once a minute.
    fn log(&mut self, reason: &str) {
        let now = Instant::now();
        if self.logged.is_some_and(|last| now - last < SILENCE) {
            return;
        }
        self.logged = Some(now);
        tracing::warn!(
            "the OpenTelemetry collector {} did not accept all telemetry: {reason}. Check the collector and [otlp]; events are not affected",
            self.config.url
        );
    }
}

/// The body of an answer may quote secrets: it isn't shown.
fn explained(status: StatusCode) -> String {
    let advice = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ": check `headers`",
        StatusCode::NOT_FOUND => ": check the path of `url`",
        _ => "",
    };
    format!("status {status}{advice}")
}

impl From<HttpFailure> for Failure {
    fn from(failure: HttpFailure) -> Self {
        Self { reason: failure.kind.to_string(), pause: None }
    }
}
