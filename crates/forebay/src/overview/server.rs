//! The overview of a server or a gateway.

use std::collections::BTreeMap;
use std::sync::Arc;

use admin_api::overview::{LedgerRowJson, OverviewJson, SinkRateJson, TypeRateJson};
use admin_api::status::SinkStatusJson;
use admin_api::upstream::WriterStatusJson;
use config::Role;
use dead_letters::DeadLetterService;
use delivery::{Delivery, LaneBoard, LaneStatus};
use discovery::UpstreamBoard;
use event::{Origin, TypeName};
use eventlog::{EventLog, unix_microseconds};
use gateway::{Gateway, GatewayCounters, Readiness, RouteName};
use ledger::{Ledger, LedgerRow};
use sink_remote::Upstream;
use text::rfc3339;

use super::OverviewSource;
use super::sample::{RateSample, SinkSample, TypeSample};
use crate::findings::Findings;
use crate::problems::{Problems, ledger_row};
use crate::type_info::TypeInfo;

/// The sources of the overview of a server or a gateway.
pub(crate) struct ServerOverview {
    role: Role,
    origin: Origin,
    instance: String,
    log: Arc<EventLog>,
    gateway: Arc<GatewayCounters>,
    readiness: Arc<Readiness>,
    ledger: Arc<Ledger>,
    lanes: LaneBoard,
    dead: DeadLetterService,
    upstreams: UpstreamBoard,
    types: TypeInfo,
    findings: Findings,
}

impl ServerOverview {
    pub(crate) fn new(
        (role, origin): (Role, Origin),
        log: Arc<EventLog>,
        gateway: &Gateway,
        delivery: &Delivery,
        upstreams: UpstreamBoard,
        types: TypeInfo,
        findings: Findings,
    ) -> Self {
        Self {
            role,
            origin,
            instance: host::host_name(),
            log,
            gateway: gateway.counters().clone(),
            readiness: gateway.readiness().clone(),
            ledger: delivery.ledger().clone(),
            lanes: delivery.lanes().clone(),
            dead: delivery.dead_letters().clone(),
            upstreams,
            types,
            findings,
        }
    }

    /// Adds the states of the sinks to their rates.
    fn sinks(
        &self,
        statuses: Vec<SinkStatusJson>,
        lanes: &[Arc<LaneStatus>],
        upstreams: &[Upstream],
        rates: Vec<SinkRateJson>,
    ) -> Vec<SinkRateJson> {
        let mut rates: BTreeMap<String, SinkRateJson> =
            rates.into_iter().map(|sink| (sink.sink.clone(), sink)).collect();
        let of_sink = |status: SinkStatusJson| {
            let backlog = status.backlog.unwrap_or_default();
            SinkRateJson {
                kind: self.types.kind_of(&status.sink).map(str::to_owned),
                server: server_of(&status.sink, lanes, upstreams),
                state: status.state,
                since: status.since,
                reason: status.reason,
                pending: Some(backlog.pending),
                oldest_s: backlog.oldest_seconds,
                dead: Some(backlog.dead_letters),
                ..rates
                    .remove(&status.sink)
                    .unwrap_or_else(|| SinkRateJson { sink: status.sink, ..SinkRateJson::default() })
            }
        };
        statuses.into_iter().map(of_sink).collect()
    }
}

/// The writer that got the last batch of one of the sink's lanes.
fn server_of(sink: &str, lanes: &[Arc<LaneStatus>], upstreams: &[Upstream]) -> Option<String> {
    let mut own = lanes.iter().filter(|lane| *lane.lane().sink == *sink);
    own.find_map(|lane| upstreams.iter().find_map(|upstream| Some(upstream.server_of(lane.lane())?.label())))
}

impl OverviewSource for ServerOverview {
    fn sample(&self) -> RateSample {
        let mut sample = RateSample::of_process();
        let rows = self.ledger.snapshot();
        sample.accepted = rows.iter().filter(|row| !row.derived).map(|row| row.accepted).sum();
        sample.body_bytes = Some(self.gateway.body_bytes());
        for route in [RouteName::Event, RouteName::Batch] {
            sample.posts.merge(&self.gateway.request_time(route));
        }
        for shard in self.log.shards() {
            let counters = shard.counters();
            sample.fdatasync.merge(&counters.sync_time.snapshot());
            sample.commits += counters.commits.get();
            sample.records += counters.records.get();
        }
        let mut refused: BTreeMap<Box<str>, u64> = BTreeMap::new();
        for counted in self.gateway.refusal_list() {
            sample.refused += counted.count;
            *refused.entry(counted.type_name).or_default() += counted.count;
        }
        for row in &rows {
            for route in &row.sinks {
                let sink = sample.sinks.entry(route.sink.clone()).or_default();
                sink.stored += route.stored;
                sink.pending += route.pending;
                if route.dead > 0 {
                    sink.dead += self.dead.held(&route.sink, &row.type_name);
                }
            }
        }
        for lane in self.lanes.lanes() {
            let sink: &mut SinkSample = sample.sinks.entry(lane.lane().sink.clone()).or_default();
            sink.batches.merge(&lane.write_time.snapshot());
        }
        let of_row = |row: LedgerRow| -> (TypeName, TypeSample) {
            let refused = refused.get(row.type_name.as_str()).copied().unwrap_or(0);
            let stored = row.sinks.into_iter().map(|route| (route.sink, route.stored)).collect();
            (row.type_name, TypeSample { accepted: row.accepted, refused, stored })
        };
        sample.types = rows.into_iter().map(of_row).collect();
        sample
    }

    fn complete(&self, overview: &mut OverviewJson) {
        let rows = self.ledger.snapshot();
        let (reason, now) = (self.readiness.reason(), unix_microseconds());
        let (lanes, upstreams) = (self.lanes.lanes(), self.upstreams.all());
        let statuses = SinkStatusJson::of_all(&rows, &lanes, &self.dead, now);
        let writers = WriterStatusJson::of_all(&upstreams, now);
        let problems = Problems::of_process(reason, &statuses);
        let problems = problems.with_events((&self.log, &self.dead), &rows, &statuses, &writers);
        let aggregates = self.types.aggregates();
        let rates = std::mem::take(&mut overview.sinks);
        overview.at = rfc3339::format(now);
        overview.instance.clone_from(&self.instance);
        self.role.name().clone_into(&mut overview.role);
        env!("CARGO_PKG_VERSION").clone_into(&mut overview.version);
        overview.origin = Some(self.origin.to_string());
        overview.ready = reason.is_none();
        overview.reason = reason.map(str::to_owned);
        overview.problems = problems.all();
        overview.findings = self.findings.now();
        overview.types.iter_mut().for_each(|listed| listed.aggregate_of = aggregates.get(&listed.r#type).cloned());
        overview.sinks = self.sinks(statuses, &lanes, &upstreams, rates);
        overview.ledger = ledger_rows(&rows, &overview.types);
        overview.host.disk_free_bytes = Some(self.log.disk_guard().free_bytes());
    }
}

/// The outcomes of the types that are listed, and all that don't add up.
fn ledger_rows(rows: &[LedgerRow], listed: &[TypeRateJson]) -> Vec<LedgerRowJson> {
    let all = rows.iter().flat_map(|row| row.sinks.iter().map(move |route| ledger_row(row, route)));
    all.filter(|row| !row.adds_up || listed.iter().any(|listed| listed.r#type == row.r#type)).collect()
}
