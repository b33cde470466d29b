//! A sink as JSON.

use admin_api::status::SinkStatusJson;
use admin_api::upstream::WriterStatusJson;
use config::SettingOrigin;
use delivery::{Failure, LaneState, LaneStatus};
use serde::Serialize;
use text::rfc3339;
use writer::Offered;

/// A sink.
#[derive(Serialize)]
pub(super) struct SinkJson {
    pub(super) sink: String,
    pub(super) kind: Option<String>,
    pub(super) state: String,
    pub(super) since: Option<String>,
    pub(super) reason: Option<String>,
    /// With stars instead of secrets.
    pub(super) settings: Vec<SinkSettingJson>,
    pub(super) lanes: Vec<LaneJson>,
    /// The newest first.
    pub(super) failures: Vec<FailureJson>,
    pub(super) servers: Vec<WriterStatusJson>,
    pub(super) calls: Option<CallsJson>,
}

/// A setting.
#[derive(Serialize)]
pub(super) struct SinkSettingJson {
    name: String,
    value: String,
}

/// The way of one shard's events into the sink.
#[derive(Serialize)]
pub(super) struct LaneJson {
    lane: String,
    shard: u16,
    state: &'static str,
    since: String,
    reason: Option<String>,
    backlog: u64,
    oldest: Option<String>,
    batches: u64,
    retries: u64,
}

/// A time in which a lane could not deliver.
#[derive(Serialize)]
pub(super) struct FailureJson {
    from: String,
    to: Option<String>,
    tries: u64,
    reason: String,
    server: Option<String>,
}

/// What a writer did for gateways, since its start.
#[derive(Serialize)]
pub(super) struct CallsJson {
    calls: u64,
    failed: u64,
    gateways: Vec<GatewayJson>,
}

/// A gateway that sends batches.
#[derive(Serialize)]
struct GatewayJson {
    name: String,
    last: String,
}

impl SinkJson {
    /// A sink in this state, with its settings among all.
    pub(super) fn of(status: SinkStatusJson, kind: Option<&str>, settings: &[SettingOrigin]) -> Self {
        let SinkStatusJson { sink, state, reason, since, .. } = status;
        let table = format!("sinks.{sink}.");
        let own = settings.iter().filter_map(|setting| {
            let name = setting.name.strip_prefix(&table)?.to_owned();
            Some(SinkSettingJson { name, value: setting.value.clone() })
        });
        Self {
            settings: own.collect(),
            sink,
            kind: kind.map(str::to_owned),
            state,
            since,
            reason,
            lanes: Vec::new(),
            failures: Vec::new(),
            servers: Vec::new(),
            calls: None,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.sink
    }
}

impl LaneJson {
    pub(super) fn of(status: &LaneStatus) -> Self {
        let (state, since) = status.state_and_since();
        Self {
            lane: status.lane().to_string(),
            shard: status.lane().shard,
            state: state.name(),
            since: rfc3339::format(since),
            reason: match state {
                LaneState::Waiting(reason) | LaneState::Stopped(reason) => Some(reason),
                LaneState::Connecting | LaneState::Delivering => None,
            },
            backlog: status.backlog(),
            oldest: status.oldest_pending_at().map(rfc3339::format),
            batches: status.batches.get(),
            retries: status.retries.get(),
        }
    }
}

impl FailureJson {
    pub(super) fn of(failure: Failure) -> Self {
        let Failure { from, to, tries, reason, server } = failure;
        Self { from: rfc3339::format(from), to: to.map(rfc3339::format), tries, reason, server }
    }
}

impl CallsJson {
    pub(super) fn of(offered: &Offered) -> Self {
        let work = offered.work();
        let gateway = |(origin, last): (event::Origin, i64)| GatewayJson {
            name: origin.to_string(),
            last: rfc3339::format(last),
        };
        Self {
            calls: work.batch_time.snapshot().buckets.iter().sum(),
            failed: work.failed.get(),
            gateways: work.callers().into_iter().map(gateway).collect(),
        }
    }
}
