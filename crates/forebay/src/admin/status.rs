//! `GET /api/status`: whether the process is healthy, and its backlog.

use std::sync::Arc;
use std::time::Duration;

use config::Role;
use dead_letters::DeadLetterService;
use delivery::{Delivery, LaneBoard};
use event::Origin;
use eventlog::{EventLog, unix_microseconds};
use gateway::{Gateway, GatewayCounters, Readiness};
use ledger::Ledger;
use text::rfc3339;

use crate::findings::Findings;
use crate::problems::Problems;
use admin_api::status::{JournalJson, SinkStatusJson, StatusJson};
use admin_api::upstream::WriterStatusJson;
use discovery::UpstreamBoard;

/// The sources of the state of a server or a gateway.
pub(crate) struct ServerStatus {
    role: Role,
    origin: Origin,
    started: i64,
    log: Arc<EventLog>,
    gateway: Arc<GatewayCounters>,
    readiness: Arc<Readiness>,
    ledger: Arc<Ledger>,
    lanes: LaneBoard,
    dead: DeadLetterService,
    upstreams: UpstreamBoard,
    findings: Findings,
}

impl ServerStatus {
    /// Of a process that starts now.
    pub(crate) fn new(
        role: Role,
        origin: Origin,
        log: Arc<EventLog>,
        gateway: &Gateway,
        delivery: &Delivery,
        upstreams: UpstreamBoard,
        findings: Findings,
    ) -> Self {
        Self {
            role,
            origin,
            started: unix_microseconds(),
            log,
            gateway: gateway.counters().clone(),
            readiness: gateway.readiness().clone(),
            ledger: delivery.ledger().clone(),
            lanes: delivery.lanes().clone(),
            dead: delivery.dead_letters().clone(),
            upstreams,
            findings,
        }
    }

    /// The state of this moment.
    pub(crate) fn now(&self) -> StatusJson {
        let (rows, now) = (self.ledger.snapshot(), unix_microseconds());
        let sinks = SinkStatusJson::of_all(&rows, &self.lanes.lanes(), &self.dead, now);
        let journal = JournalJson {
            bytes: self.log.shards().iter().map(|shard| shard.segments().bytes()).sum(),
            disk_free_bytes: self.log.disk_guard().free_bytes(),
        };
        let writers = WriterStatusJson::of_all(&self.upstreams.all(), now);
        let not_ready = self.readiness.reason();
        let problems = Problems::of_process(not_ready, &sinks);
        let problems = problems.with_events((&self.log, &self.dead), &rows, &sinks, &writers);
        let status = status(self.role, self.started, now, not_ready, &problems, sinks);
        StatusJson {
            gateway_id: Some(self.origin.to_string()),
            events: rows.iter().filter(|row| !row.derived).map(|row| row.accepted).sum(),
            refused: self.gateway.refusal_list().iter().map(|refused| refused.count).sum(),
            journal: Some(journal),
            findings: self.findings.now(),
            writers,
            ..status
        }
    }
}

/// The part of the status that all roles have.
pub(crate) fn status(
    role: Role,
    started: i64,
    now: i64,
    not_ready: Option<&str>,
    problems: &Problems,
    sinks: Vec<SinkStatusJson>,
) -> StatusJson {
    let uptime = Duration::from_micros(u64::try_from(now.saturating_sub(started)).unwrap_or(0));
    StatusJson {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: role.name().to_owned(),
        gateway_id: None,
        started: rfc3339::format(started - started % 1_000_000),
        uptime_seconds: uptime.as_secs(),
        ready: not_ready.is_none(),
        reason: not_ready.map(str::to_owned),
        problems: problems.sentences(),
        findings: Vec::new(),
        events: 0,
        events_per_second: None,
        refused: 0,
        journal: None,
        sinks,
        writers: Vec::new(),
    }
}
