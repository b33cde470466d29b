//! A batch as concurrent requests, and their combined result.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use event::TraceParent;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::config::{HookUrl, WebhookConfig};
use super::error::Failure;
use super::mapping;
use super::outcome::Outcome;
use http::Request;
use net::http_client::{HttpClient, HttpOptions, empty, shortened};
use sink::{Batch, Examination, Reason, Record, Retry, RetryScope, SinkError, WriteOutcome};

/// How long a server may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a response that are read: after a longer one its connection isn't reused.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The time until which nothing is sent.
#[derive(Debug, Default)]
struct Pause(Mutex<Option<Instant>>);

impl Pause {
    fn begin(&self, length: Duration) {
        let end = Instant::now() + length;
        let mut until = self.lock();
        *until = until.map_or(Some(end), |until| Some(until.max(end)));
    }

    async fn end(&self) {
        let until = *self.lock();
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The outcomes of a batch so far.
#[derive(Default)]
struct Outcomes {
    taken: usize,
    retry: Vec<Retry>,
    /// Messages that are at fault if the receiver accepted others, or else the receiver is.
    unclear: Vec<(usize, Failure)>,
    /// Messages without a known outcome, or that weren't sent anymore.
    unanswered: Vec<usize>,
    /// Why the receiver is down.
    away: Option<Failure>,
}

/// The state that attempts of one batch share.
#[derive(Default)]
struct Attempts {
    has_taken: AtomicBool,
    is_away: AtomicBool,
}

/// Sends messages to the receiver. Batches of all lanes share it.
pub(super) struct Sender {
    pub(super) config: WebhookConfig,
    client: HttpClient,
    /// Requests that may be in flight.
    permits: Semaphore,
    /// The pause that the receiver has requested.
    pause: Pause,
    /// Which message of a batch is sent first.
    first: AtomicUsize,
}

impl Sender {
    pub(super) fn new(config: WebhookConfig) -> Self {
        let client = HttpClient::new(HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_TIMEOUT.min(config.timeout),
            silence_max: config.timeout,
            // The whole sink waits, not each request.
            waits_for_retry_after: false,
        });
        let permits = Semaphore::new(config.requests_max.get());
        Self { config, client, permits, pause: Pause::default(), first: AtomicUsize::new(0) }
    }

    /// Sends `batch`, until the receiver accepts nothing.
    ///
    /// # Errors
    /// None of it is known to be accepted, and none was rejected.
    pub(super) async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        self.pause.end().await;
        let attempts = Attempts::default();
        let send = |index| self.attempt(batch, index, &attempts).boxed();
        let is_ordered = batch.has_repetitions();
        let in_flight = if is_ordered { 1 } else { self.config.requests_max.get() };
        // Another message is tried first after an unclear attempt: one message must not hide the results of others.
        let first = if is_ordered { 0 } else { self.first.load(Ordering::Relaxed) % batch.len().max(1) };
        let mut sent = stream::iter((first..batch.len()).chain(0..first)).map(send).buffer_unordered(in_flight);
        let mut outcomes = Outcomes::default();
        while let Some((index, outcome)) = sent.next().await {
            outcomes.add(index, outcome);
        }
        if let Some(pause) = outcomes.away.as_ref().and_then(Failure::pause) {
            self.pause.begin(pause);
        }
        if outcomes.taken == 0 && !outcomes.unclear.is_empty() {
            self.first.fetch_add(1, Ordering::Relaxed);
        }
        outcomes.into_write_outcome(batch.len(), &self.config.url)
    }

    /// Sends a record, unless the receiver is known to accept nothing.
    async fn attempt(&self, batch: &Batch, index: usize, attempts: &Attempts) -> (usize, Option<Outcome>) {
        let record = batch.get(index).filter(|_| !attempts.is_away.load(Ordering::Relaxed));
        let Some(record) = record else { return (index, None) };
        let outcome = self.send(&record, batch.trace_of(record.sequence)).await;
        match &outcome {
            Outcome::Taken => attempts.has_taken.store(true, Ordering::Relaxed),
            Outcome::Unclear(_) if attempts.has_taken.load(Ordering::Relaxed) => {}
            Outcome::Away(_) | Outcome::Unclear(_) => attempts.is_away.store(true, Ordering::Relaxed),
            Outcome::Rejected(_) | Outcome::NotYet(_) => {}
        }
        (index, Some(outcome))
    }

    async fn send(&self, record: &Record<'_>, trace: Option<TraceParent>) -> Outcome {
        // It is never closed.
        let _permit = self.permits.acquire().await;
        let request = match mapping::request(&self.config, record, trace) {
            Ok(request) => request,
            // Messages of other types may have a URL.
            Err(failure) => return Outcome::Unclear(failure),
        };
        match self.client.send(request).await {
            Ok(answer) => {
                let (status, headers) = (answer.status(), answer.headers().clone());
                // The body doesn't change the outcome.
                let message = answer.bytes(ANSWER_BYTES_MAX).await.unwrap_or_default();
                Outcome::of(status, &headers, shortened(&String::from_utf8_lossy(&message)))
            }
            Err(failure) => Outcome::Away(Failure::Http(failure)),
        }
    }

    /// Sends `HEAD /`, whose response shows the connection and the clock.
    pub(super) async fn examine(&self) -> Result<Examination, Failure> {
        let mut found = Examination::default();
        let root = format!("{}/", self.config.url);
        let request = Request::head(root).body(empty()).map_err(|_| Failure::Url)?;
        found.begin_clock();
        let answer = self.client.send(request).await.map_err(Failure::Http)?;
        if let Some(date) = answer.date() {
            found.compare_clock(date, Duration::from_secs(1));
        }
        found.see("the receiver answers; whether it accepts events is seen with the first one");
        Ok(found)
    }

    /// Closes the connections that wait.
    pub(super) fn close_idle(&self) {
        self.client.close_idle();
    }
}

impl Outcomes {
    fn add(&mut self, index: usize, outcome: Option<Outcome>) {
        match outcome {
            Some(Outcome::Taken) => self.taken += 1,
            Some(Outcome::Rejected(reason)) => self.retry.push(Retry { index, reason, scope: RetryScope::Unclear }),
            Some(Outcome::NotYet(reason)) => self.retry.push(Retry { index, reason, scope: RetryScope::Record }),
            Some(Outcome::Unclear(failure)) => self.unclear.push((index, failure)),
            Some(Outcome::Away(failure)) => {
                self.unanswered.push(index);
                self.away.get_or_insert(failure);
            }
            None => self.unanswered.push(index),
        }
    }

    /// The result of a batch of `count` records for delivery.
    fn into_write_outcome(mut self, count: usize, url: &HookUrl) -> Result<WriteOutcome, SinkError> {
        let failed = self.unanswered.len() + self.unclear.len();
        // Nothing was accepted: the receiver is at fault, and not the records. A single record may be at fault.
        if failed == count && (count > 1 || self.unclear.is_empty()) {
            let unclear = self.unclear.drain(..).map(|(_, failure)| failure).next();
            if let Some(failure) = self.away.or(unclear) {
                return Err(failure.into_sink_error(url));
            }
        } else {
            let away = self.away.as_ref().or_else(|| self.unclear.first().map(|(_, failure)| failure));
            let reason: Reason = away.map(Failure::what).unwrap_or_default().into();
            let unanswered = self.unanswered.into_iter();
            self.retry.extend(unanswered.map(|index| Retry {
                index,
                reason: reason.clone(),
                scope: RetryScope::Store,
            }));
            for (index, failure) in self.unclear {
                let reason = failure.into_sink_error(url).to_string().into();
                self.retry.push(Retry { index, reason, scope: RetryScope::Record });
            }
        }
        if self.retry.is_empty() {
            return Ok(WriteOutcome::Committed);
        }
        self.retry.sort_by_key(|retry| retry.index);
        // Only delivery can judge what a receiver rejects: by what it accepts before and after.
        Ok(WriteOutcome::Partial { refused: Vec::new(), retry: self.retry })
    }
}
