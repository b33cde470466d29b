//! A batch as requests, several in flight, and what they came to together.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use tokio::time::Instant;

use super::Shared;
use super::message;
use super::outcome::{Failure, Outcome};
use crate::http_client::shortened;
use crate::{Batch, Reason, Record, Refusal, Report, Retry};

/// Bytes of an answer that are read: of more its connection isn't used again.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Until when nothing is sent.
#[derive(Debug, Default)]
pub(super) struct Pause(Mutex<Option<Instant>>);

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

/// What a batch has come to so far: the records that aren't mentioned were taken.
#[derive(Default)]
struct Outcomes {
    refused: Vec<Refusal>,
    retry: Vec<Retry>,
    /// Those of which nothing is known, or that weren't sent any more.
    unanswered: Vec<usize>,
    /// Why.
    away: Option<Failure>,
}

/// Sends `batch`, until the receiver takes nothing any more.
///
/// # Errors
/// None of it is known to be taken, and none was refused.
pub(super) async fn write(shared: &Shared, batch: &Batch) -> Result<Report, Failure> {
    shared.pause.end().await;
    let is_away = AtomicBool::new(false);
    let send = |index| attempt(shared, batch, index, &is_away).boxed();
    let in_flight = if batch.has_repetitions() { 1 } else { shared.config.requests_max.get() };
    let mut sent = stream::iter(0..batch.len()).map(send).buffer_unordered(in_flight);
    let mut outcomes = Outcomes::default();
    while let Some((index, outcome)) = sent.next().await {
        outcomes.add(index, outcome);
    }
    if let Some(pause) = outcomes.away.as_ref().and_then(Failure::pause) {
        shared.pause.begin(pause);
    }
    outcomes.into_report(batch.len())
}

/// Sends a record, unless the receiver is known to take nothing.
async fn attempt(shared: &Shared, batch: &Batch, index: usize, is_away: &AtomicBool) -> (usize, Option<Outcome>) {
    let record = batch.get(index).filter(|_| !is_away.load(Ordering::Relaxed));
    let Some(record) = record else { return (index, None) };
    let outcome = send(shared, &record).await;
    if matches!(outcome, Outcome::Away(_)) {
        is_away.store(true, Ordering::Relaxed);
    }
    (index, Some(outcome))
}

async fn send(shared: &Shared, record: &Record<'_>) -> Outcome {
    // It is never closed.
    let _turn = shared.turns.acquire().await;
    let request = match message::request(&shared.config, record) {
        Ok(request) => request,
        Err(failure) => return Outcome::Away(failure),
    };
    match shared.client.send(request).await {
        Ok(answer) => {
            let (status, headers) = (answer.status(), answer.headers().clone());
            // What it says behind its status changes nothing.
            let words = answer.bytes(ANSWER_BYTES_MAX).await.unwrap_or_default();
            Outcome::of(status, &headers, shortened(&String::from_utf8_lossy(&words)))
        }
        Err(failure) => Outcome::Away(Failure::Http(failure)),
    }
}

impl Outcomes {
    fn add(&mut self, index: usize, outcome: Option<Outcome>) {
        match outcome {
            Some(Outcome::Taken) => {}
            Some(Outcome::Refused(reason)) => self.refused.push(Refusal { index, reason }),
            Some(Outcome::NotYet(reason)) => self.retry.push(Retry { index, reason }),
            Some(Outcome::Away(failure)) => {
                self.unanswered.push(index);
                self.away.get_or_insert(failure);
            }
            None => self.unanswered.push(index),
        }
    }

    /// What delivery is told of a batch of `count` records.
    fn into_report(mut self, count: usize) -> Result<Report, Failure> {
        if let Some(failure) = self.away {
            // Where nothing has passed that isn't held against these records.
            if self.unanswered.len() == count {
                return Err(failure);
            }
            let reason: Reason = failure.what().into();
            let again = self.unanswered.into_iter().map(|index| Retry { index, reason: reason.clone() });
            self.retry.extend(again);
        }
        if self.refused.is_empty() && self.retry.is_empty() {
            return Ok(Report::Stored);
        }
        self.refused.sort_by_key(|refusal| refusal.index);
        self.retry.sort_by_key(|retry| retry.index);
        Ok(Report::Except { refused: self.refused, retry: self.retry })
    }
}
