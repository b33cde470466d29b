//! What surrounds the payloads of a request: when it was received, from whom, and with which headers.

use std::net::IpAddr;
use std::sync::Arc;

use access::{PartialStatus, TypePatterns};
use event::{EventId, TraceParent};
use eventlog::JournalRecord;

use crate::event_types::TypeEntry;

/// What surrounds the payloads of a request.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    /// Microseconds since 1970, UTC.
    pub(crate) received_at: i64,
    pub(crate) client: IpAddr,
    /// The source of the request's token; empty without one.
    pub(crate) source: Arc<str>,
    /// The status of partly accepted batches, if the request's token has one.
    pub(crate) partial: Option<PartialStatus>,
    /// The types that its token may post, if it is limited to some.
    pub(crate) types: Option<Arc<TypePatterns>>,
    /// The headers that transforms read.
    pub(crate) headers: Headers,
    /// The trace that the request is a part of.
    pub(crate) trace: Option<TraceParent>,
}

/// The same for one payload, as the ingest pipeline reads it.
#[derive(Clone, Copy)]
pub(crate) struct EventContext<'a> {
    pub(crate) received_at: i64,
    pub(crate) client: Option<IpAddr>,
    pub(crate) source: &'a str,
    pub(crate) types: Option<&'a TypePatterns>,
    pub(crate) headers: &'a Headers,
}

impl Envelope {
    /// The sender of the request.
    pub(crate) const fn sender(&self) -> (&Arc<str>, IpAddr) {
        (&self.source, self.client)
    }

    pub(crate) fn context(&self) -> EventContext<'_> {
        let Self { received_at, client, source, types, headers, .. } = self;
        EventContext { received_at: *received_at, client: Some(*client), source, types: types.as_deref(), headers }
    }

    /// An event with its id, and the time that its payload names.
    pub(crate) fn record<'a>(
        &'a self,
        entry: &'a TypeEntry,
        id: EventId,
        event_time: Option<i64>,
        payload: &'a str,
    ) -> JournalRecord<'a> {
        JournalRecord {
            event_time,
            source: &self.source,
            client: Some(self.client),
            trace: self.trace,
            ..JournalRecord::new(id, self.received_at, entry.name.as_str(), payload.as_bytes())
        }
    }
}

/// The request headers that some transform reads, by name in lower case. Most requests and most configurations have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers(Option<Arc<Vec<Header>>>);

type Header = (Box<str>, String);

impl Headers {
    /// The headers of `head` that are `wanted`, by names in lower case. A value that isn't text is left out. Several lines of one name are
    /// joined by commas (RFC 9110 §5.3).
    pub(crate) fn of(wanted: &[Box<str>], head: &[u8]) -> Self {
        if wanted.is_empty() {
            return Self::default();
        }
        let mut found: Vec<Header> = Vec::new();
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            let Some(name) = wanted.iter().find(|wanted| name.eq_ignore_ascii_case(wanted.as_bytes())) else {
                continue;
            };
            let Ok(value) = str::from_utf8(value) else { continue };
            match found.iter_mut().find(|(known, _)| known == name) {
                Some((_, before)) => *before = format!("{before}, {value}"),
                None => found.push((name.clone(), value.to_owned())),
            }
        }
        Self((!found.is_empty()).then(|| Arc::new(found)))
    }

    /// Headers by names in lower case.
    pub(crate) fn of_pairs(pairs: &[(String, String)]) -> Self {
        let headers = pairs.iter().map(|(name, value)| (name.as_str().into(), value.clone())).collect();
        Self(Some(Arc::new(headers)))
    }

    /// The value of a header.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.as_ref()?.iter().find(|(known, _)| **known == *name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_headers_are_found_in_any_case() {
        let head =
            b"POST / HTTP/1.1\r\nX-Request-ID:  r 1 \r\nx-trace: a\r\nOther: 1\r\nX-Trace: b\r\nbad: \xff\r\n\r\n";
        let headers = Headers::of(&["x-request-id", "x-trace", "bad", "absent"].map(Into::into), head);
        let found = ["x-request-id", "x-trace", "bad", "absent", "other"].map(|name| headers.get(name));
        assert_eq!(found, [Some("r 1"), Some("a, b"), None, None, None]);
        assert!(Headers::of(&[], head).get("other").is_none());
    }
}
