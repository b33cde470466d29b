//! The writers of a gateway's upstreams as JSON.

use serde::{Deserialize, Serialize};
use sink_remote::{ServerState, Upstream, WriterServer};
use text::{escape_control, rfc3339};

use crate::health::{FindingJson, FindingLevel};

/// One writer of an upstream.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct WriterStatusJson {
    pub upstream: String,
    /// Its URL, or its address if DNS returned one.
    pub server: String,
    /// `available`, `ejected` since its last failure, or `untried` before its first answer.
    pub state: String,
    /// The time of its last answer. `None`: it has not answered since the start.
    pub last_success: Option<String>,
    /// Why it is ejected.
    pub reason: Option<String>,
    /// The sinks for which it is ejected although it answers.
    pub ejected_for: Vec<EjectedForJson>,
}

/// A sink that a writer fails to serve.
#[derive(Debug, Deserialize, Serialize)]
pub struct EjectedForJson {
    pub sink: String,
    pub reason: String,
}

impl WriterStatusJson {
    /// All writers. `now` is in microseconds.
    pub fn of_all(upstreams: &[Upstream], now: i64) -> Vec<Self> {
        let of_upstream = |upstream: &Upstream| {
            let servers = upstream.servers().into_iter();
            servers.map(|server| Self::of(&upstream.config().name, &server, now)).collect::<Vec<_>>()
        };
        upstreams.iter().flat_map(of_upstream).collect()
    }

    fn of(upstream: &str, server: &WriterServer, now: i64) -> Self {
        let ago = server.last_success().map(|ago| i64::try_from(ago.as_micros()).unwrap_or(i64::MAX));
        let ejected_for = server.ejected_sinks().into_iter();
        Self {
            upstream: upstream.to_owned(),
            server: server.label(),
            state: server.state().as_str().to_owned(),
            // The second is exact enough, and the same in two requests.
            last_success: ago.map(|ago| now.saturating_sub(ago)).map(|at| rfc3339::format(at - at % 1_000_000)),
            reason: server.reason().map(|reason| escape_control(&reason).into_owned()),
            ejected_for: ejected_for
                .map(|(sink, reason)| EjectedForJson { sink, reason: escape_control(&reason).into_owned() })
                .collect(),
        }
    }

    /// The problem that needs an operator, if there is one.
    pub fn problem(&self) -> Option<FindingJson> {
        if self.state != ServerState::Ejected.as_str() {
            return None;
        }
        let last = self.last_success.as_deref().unwrap_or("never");
        let reason = self.reason.as_deref().unwrap_or("reason unknown");
        Some(FindingJson {
            code: "writer_ejected".to_owned(),
            level: FindingLevel::Error,
            since: String::new(),
            text: format!(
                "writer {} of upstream {} is ejected (last response: {last}): {reason}",
                self.server, self.upstream
            ),
            page: Some("sinks".to_owned()),
        })
    }
}
