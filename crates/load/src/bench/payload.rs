//! The events of requests, and the bytes around them.

use std::fs;
use std::io::{self, Write};

use anyhow::{anyhow, bail};

use super::BenchOptions;
use crate::IngestEndpoint;
use generator::Generator;

/// Gives events one after the other.
pub(super) enum Payloads {
    Generated(Generator),
    Lines { lines: Vec<Vec<u8>>, next: usize },
}

impl Payloads {
    pub(super) fn new(options: &BenchOptions) -> anyhow::Result<Self> {
        let Some(path) = &options.file else {
            return Ok(Self::Generated(Generator::new(options.kind.into(), options.seed)));
        };
        let failed = |error: io::Error| anyhow!("{}: {error}", path.display());
        let text = fs::read(path).map_err(failed)?;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let lines: Vec<_> = lines.map(|line| [line, b"\n"].concat()).collect();
        if lines.is_empty() {
            bail!("{} has no lines: name a file with one event on each line", path.display());
        }
        Ok(Self::Lines { lines, next: 0 })
    }

    fn append(&mut self, into: &mut Vec<u8>) {
        match self {
            Self::Generated(generator) => generator.next_line(into),
            Self::Lines { lines, next } => {
                into.extend_from_slice(&lines[*next]);
                *next = (*next + 1) % lines.len();
            }
        }
    }
}

/// Makes whole requests.
pub(super) struct Requests {
    payloads: Payloads,
    /// Up to the headers that differ.
    head: Vec<u8>,
    /// The prefix of the keys.
    key: Option<String>,
    events: u32,
    body: Vec<u8>,
    next: u64,
}

impl Requests {
    pub(super) fn new(to: &IngestEndpoint, options: &BenchOptions) -> anyhow::Result<Self> {
        let BenchOptions { batch, key, seed, .. } = options;
        let path = to.path(if batch.is_some() { "batch" } else { "event" });
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n", to.server.target().authority());
        let content = if batch.is_some() { "application/x-ndjson" } else { "application/json" };
        head += &format!("Content-Type: {content}\r\n");
        if let Some(token) = &to.token {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        let key = key.then(|| format!("bench-{seed:016x}"));
        let (payloads, head) = (Payloads::new(options)?, head.into_bytes());
        Ok(Self { payloads, head, key, events: batch.unwrap_or(1), body: Vec::new(), next: 0 })
    }

    /// How many events each request has.
    pub(super) const fn events(&self) -> u32 {
        self.events
    }

    /// Puts the next request into `out`, and says which it is, from 0.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> u64 {
        self.body.clear();
        (0..self.events).for_each(|_| self.payloads.append(&mut self.body));
        let number = self.next;
        self.next += 1;
        out.clear();
        out.extend_from_slice(&self.head);
        if let Some(key) = &self.key {
            let _ = write!(out, "Idempotency-Key: {key}-{number}\r\n");
        }
        let _ = write!(out, "Content-Length: {}\r\n\r\n", self.body.len());
        out.extend_from_slice(&self.body);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::Duration;

    use crate::bench::RecordKindName;

    fn options(batch: Option<u32>, key: bool, file: &Path) -> BenchOptions {
        BenchOptions {
            connections: 1,
            rate: None,
            scenario: None,
            duration: Duration::ZERO,
            batch,
            file: Some(file.to_owned()),
            kind: RecordKindName::Access,
            key,
            seed: 7,
            verify: None,
            json: false,
        }
    }

    #[test]
    fn requests_are_whole_and_differ() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"1\n\n22").unwrap();
        let server = crate::ServerConnector::new("http://a:1/b".parse().unwrap(), None).unwrap();
        let to = IngestEndpoint { server, event_type: Some("t".into()), token: Some("x".into()) };
        let make = |batch, has_keys| {
            let mut requests = Requests::new(&to, &options(batch, has_keys, file.path())).unwrap();
            let mut out = Vec::new();
            requests.next(&mut out);
            assert_eq!(requests.next(&mut out), 1);
            String::from_utf8(out).unwrap()
        };
        let common = "HTTP/1.1\r\nHost: a:1\r\n";
        assert_eq!(
            make(None, false),
            format!(
                "POST /b/ingest/event/t {common}Content-Type: application/json\r\nAuthorization: Bearer x\r\n\
                 Content-Length: 3\r\n\r\n22\n"
            )
        );
        assert_eq!(
            make(Some(3), true),
            format!(
                "POST /b/ingest/batch/t {common}Content-Type: application/x-ndjson\r\nAuthorization: Bearer x\r\n\
                 Idempotency-Key: bench-0000000000000007-1\r\nContent-Length: 8\r\n\r\n22\n1\n22\n"
            )
        );
        file.as_file().set_len(0).unwrap();
        assert!(Payloads::new(&options(None, false, file.path())).is_err());
    }
}
