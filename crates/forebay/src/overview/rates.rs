//! From two samples to rates and latencies.

use std::time::Duration;

use admin_api::health::HostJson;
use admin_api::overview::{EdgeJson, OverviewJson, SinkRateJson, TotalsJson, TypeRateJson};
use event::TypeName;
use metrics::HistogramSnapshot;

use super::sample::{RateSample, SinkSample, TypeSample};

/// Types that an overview lists.
const TYPES_MAX: usize = 50;

/// What happened between two samples. The rest of the overview is that of an idle process.
pub(super) fn overview(before: &RateSample, now: &RateSample) -> OverviewJson {
    let rate = Rate { seconds: (now.at - before.at).as_secs_f64() };
    let (types, edges) = busiest(rate, before, now);
    OverviewJson {
        totals: totals(rate, before, now),
        types_more: now.types.len().saturating_sub(types.len()) as u64,
        types,
        edges,
        sinks: now.sinks.iter().map(|(name, sink)| of_sink(name, rate, before.sinks.get(name), sink)).collect(),
        host: HostJson {
            cpu: now.host.cpu_since(&before.host).map(|cpu| rate.of(cpu)),
            cpu_limit: now.host.cpu_limit,
            throttled: now.host.throttled_since(&before.host).map(|held| rate.of(held).clamp(0.0, 1.0)),
            rss_bytes: now.host.rss_bytes,
            memory_limit: now.host.memory_limit,
            disk_free_bytes: None,
        },
        ..OverviewJson::default()
    }
}

/// A rate over so many seconds.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    pub(super) seconds: f64,
}

impl Rate {
    fn of(self, amount: f64) -> f64 {
        if self.seconds > 0.0 { rounded(amount / self.seconds) } else { 0.0 }
    }

    pub(super) fn between(self, before: u64, now: u64) -> f64 {
        self.of(float(now.saturating_sub(before)))
    }

    pub(super) fn per_minute(self, before: u64, now: u64) -> f64 {
        rounded(self.between(before, now) * 60.0)
    }
}

fn totals(rate: Rate, before: &RateSample, now: &RateSample) -> TotalsJson {
    let bytes = before.body_bytes.zip(now.body_bytes);
    let commits = now.commits.saturating_sub(before.commits);
    let records = now.records.saturating_sub(before.records);
    TotalsJson {
        accepted: now.accepted,
        accepted_per_s: rate.between(before.accepted, now.accepted),
        bytes_per_s: bytes.map(|(before, now)| rate.between(before, now)),
        refused_per_min: rate.per_minute(before.refused, now.refused),
        post_p99_ms: p99(&before.posts, &now.posts),
        fsync_p99_ms: p99(&before.fdatasync, &now.fdatasync),
        events_a_commit: (commits > 0).then(|| rounded(float(records) / float(commits))),
    }
}

/// The busiest types, busiest first, and their routes.
fn busiest(rate: Rate, before: &RateSample, now: &RateSample) -> (Vec<TypeRateJson>, Vec<EdgeJson>) {
    let nothing = TypeSample::default();
    let mut types: Vec<(&TypeName, &TypeSample, &TypeSample)> =
        now.types.iter().map(|(name, now)| (name, before.types.get(name).unwrap_or(&nothing), now)).collect();
    let activity = |(_, before, now): &(_, &TypeSample, &TypeSample)| {
        (now.accepted - before.accepted.min(now.accepted)) + (now.refused - before.refused.min(now.refused))
    };
    // Of equally busy types the larger ones, and then by name: an idle server lists its main types.
    types.sort_by_cached_key(|each| std::cmp::Reverse((activity(each), each.2.accepted)));
    types.truncate(TYPES_MAX);
    let mut edges = Vec::new();
    for (name, before, now) in &types {
        for (sink, stored) in &now.stored {
            let earlier = before.stored.iter().find(|(known, _)| known == sink).map_or(0, |(_, stored)| *stored);
            edges.push(EdgeJson {
                r#type: name.to_string(),
                sink: sink.to_string(),
                per_s: rate.between(earlier, *stored),
            });
        }
    }
    let of_type = |(name, before, now): &(&TypeName, &TypeSample, &TypeSample)| TypeRateJson {
        r#type: name.to_string(),
        accepted_per_s: rate.between(before.accepted, now.accepted),
        refused_per_min: rate.per_minute(before.refused, now.refused),
        aggregate_of: None,
    };
    (types.iter().map(of_type).collect(), edges)
}

/// A sink's rates. Without an earlier sample it has none.
fn of_sink(name: &str, rate: Rate, before: Option<&SinkSample>, now: &SinkSample) -> SinkRateJson {
    let rates = SinkRateJson { sink: name.to_owned(), ..SinkRateJson::default() };
    let Some(before) = before else { return rates };
    let shrinks_by = rate.between(now.pending, before.pending);
    let drains = now.pending > 0 && shrinks_by > 0.0;
    SinkRateJson {
        stored_per_s: rate.between(before.stored, now.stored),
        batch_p99_ms: p99(&before.batches, &now.batches),
        drains_in_s: drains
            .then(|| Duration::try_from_secs_f64(float(now.pending) / shrinks_by).ok())
            .flatten()
            .map(|time| time.as_secs()),
        ..rates
    }
}

/// In milliseconds.
pub(super) fn p99(before: &HistogramSnapshot, now: &HistogramSnapshot) -> Option<f64> {
    now.since(before).percentile(99).map(|time| rounded(time.as_secs_f64() * 1e3))
}

/// With two decimals: more aren't exact.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Counts of processes are far below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "figures for users; exact below 2⁵³")]
const fn float(value: u64) -> f64 {
    value as f64
}
