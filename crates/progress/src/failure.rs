//! Failures of a lane: each is an outage with the attempts that failed during it.

use std::sync::Arc;

use crate::records::{push_text, shortened, take_text};

/// Failures of a lane that are kept.
pub(crate) const FAILURES_MAX: u64 = 64;
/// Bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 200;
/// Bytes of a server's name that are kept.
const SERVER_BYTES_MAX: usize = 200;

/// A time in which a lane could not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The first attempt that failed: microseconds since 1970, UTC.
    pub from: i64,
    /// When the lane delivered again; `None` if it hasn't yet.
    pub to: Option<i64>,
    /// Attempts that failed.
    pub tries: u64,
    /// The last attempt's error message, its first 200 bytes.
    pub reason: String,
    /// The writer that was asked, if it is known.
    pub server: Option<String>,
}

impl Failure {
    /// Whether it was going on at some time from `from` to `to`.
    pub(crate) fn overlaps(&self, from: i64, to: Option<i64>) -> bool {
        self.to.is_none_or(|end| end >= from) && to.is_none_or(|to| self.from <= to)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.from.to_le_bytes());
        bytes.extend_from_slice(&self.to.unwrap_or(i64::MAX).to_le_bytes());
        bytes.extend_from_slice(&self.tries.to_le_bytes());
        push_text(&mut bytes, &self.reason);
        push_text(&mut bytes, self.server.as_deref().unwrap_or_default());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (from, bytes) = bytes.split_first_chunk()?;
        let (to, bytes) = bytes.split_first_chunk()?;
        let (tries, bytes) = bytes.split_first_chunk()?;
        let (reason, bytes) = take_text(bytes)?;
        let (server, _) = take_text(bytes)?;
        Some(Self {
            from: i64::from_le_bytes(*from),
            to: Some(i64::from_le_bytes(*to)).filter(|to| *to != i64::MAX),
            tries: u64::from_le_bytes(*tries),
            reason: reason.into(),
            server: Some(server.to_owned()).filter(|server| !server.is_empty()),
        })
    }
}

/// What a lane reports of its failures, until it is saved.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    current: Option<Failure>,
    /// Whether `current` has changed since it was saved.
    changed: bool,
    /// Whether the file has the last state of the process before.
    pub(crate) has_resumed: bool,
    /// The number of `current` in the file, if it has it.
    pub(crate) number: Option<u64>,
}

impl Outages {
    /// An attempt has failed. An outage that ended since the last save continues.
    pub(crate) fn failed(&mut self, now: i64, reason: &str, server: Option<&Arc<str>>) {
        let is_over = self.current.as_ref().is_none_or(|current| current.to.is_some() && !self.changed);
        if is_over {
            self.number = None;
        }
        let goes_on = self.current.take().filter(|_| !is_over);
        let (from, tries) = goes_on.map_or((now, 0), |failure| (failure.from, failure.tries));
        self.current = Some(Failure {
            from,
            to: None,
            tries: tries.saturating_add(1),
            reason: shortened(reason, REASON_BYTES_MAX).into(),
            server: server.map(|server| shortened(server, SERVER_BYTES_MAX).into()),
        });
        self.changed = true;
    }

    /// The lane delivers.
    pub(crate) fn ended(&mut self, now: i64) {
        if let Some(current) = self.current.as_mut().filter(|current| current.to.is_none()) {
            current.to = Some(now);
            self.changed = true;
        }
    }

    /// When the outage began, if it hasn't ended.
    pub(crate) fn open_since(&self) -> Option<i64> {
        self.current.as_ref().filter(|current| current.to.is_none()).map(|current| current.from)
    }

    /// What is to be saved.
    pub(crate) fn unsaved(&self) -> Option<&Failure> {
        self.current.as_ref().filter(|_| self.changed)
    }

    /// The newest failure in the file, which an earlier process wrote, continues if it had not ended, or has ended now.
    pub(crate) fn resume(&mut self, newest: Option<(u64, Failure)>, now: i64) {
        self.has_resumed = true;
        let Some((number, before)) = newest.filter(|(_, before)| before.to.is_none()) else { return };
        match &mut self.current {
            Some(current) => {
                current.from = before.from;
                current.tries = current.tries.saturating_add(before.tries);
            }
            None => self.current = Some(Failure { to: Some(now), ..before }),
        }
        (self.number, self.changed) = (Some(number), true);
    }

    /// Call it after `written`, a copy of the current failure, was saved under this number. Frees a failure that has ended.
    pub(crate) fn saved(&mut self, number: u64, written: &Failure) {
        self.number = Some(number);
        if self.current.as_ref() != Some(written) {
            // It has changed during the write: the next one replaces the record.
            return;
        }
        self.changed = false;
        if written.to.is_some() {
            self.current = None;
        }
    }
}
