//! Figures of the last hour: a point each 5 s, of the totals and of the busiest types and sinks.

mod series;
mod slots;

use std::collections::BTreeMap;
use std::time::Duration;

use admin_api::history::{HistoryJson, SinkHistoryJson, TotalsHistoryJson, TypeHistoryJson};
use metrics::HistogramSnapshot;
use text::rfc3339;
use tokio::time::Instant;

use super::rates::{Rate, p99};
use super::sample::RateSample;
use series::{POINTS_MAX, Series};
use slots::{Figures, SLOTS_MAX, Slots, count};

/// The time between two points.
pub(crate) const STEP: Duration = Duration::from_secs(5);
/// The time that is kept.
pub(crate) const KEPT_MAX: Duration = Duration::from_secs(5 * POINTS_MAX as u64);
/// The memory of all curves, if each has all its points.
pub(crate) const HISTORY_BYTES_MAX: usize = (Totals::CURVES + 4 * SLOTS_MAX) * Series::BYTES_MAX;
const _: () = assert!(HISTORY_BYTES_MAX <= 256 << 10);

/// The figures of the last hour.
#[derive(Debug, Default)]
pub(super) struct History {
    last: Option<Last>,
    totals: Totals,
    types: Slots,
    sinks: Slots,
}

/// The counters of the last point.
#[derive(Debug)]
struct Last {
    at: Instant,
    /// Microseconds since 1970.
    clock: i64,
    accepted: u64,
    refused: u64,
    posts: HistogramSnapshot,
}

/// The curves of the process.
#[derive(Debug, Default)]
struct Totals {
    accepted: Series,
    refused: Series,
    pending: Series,
    dead: Series,
    posts: Series,
}

impl Totals {
    const CURVES: usize = 5;

    fn all(&mut self) -> [&mut Series; Self::CURVES] {
        [&mut self.accepted, &mut self.refused, &mut self.pending, &mut self.dead, &mut self.posts]
    }
}

impl History {
    /// Adds the point of this sample, at the time `clock`.
    pub(super) fn add(&mut self, now: &RateSample, clock: i64) {
        let elapsed = self.last.as_ref().map(|last| now.at - last.at);
        // A process that didn't run measured nothing.
        let steps = elapsed.map_or(0, |elapsed| (elapsed + STEP / 2).as_secs() / STEP.as_secs());
        self.skip(usize::try_from(steps).unwrap_or(POINTS_MAX).saturating_sub(1).min(POINTS_MAX));
        let rate = elapsed.map(|elapsed| Rate { seconds: elapsed.as_secs_f64() });
        let held = |held: fn(&super::sample::SinkSample) -> u64| {
            now.keeps_events().then(|| count(now.sinks.values().map(held).sum()))
        };
        let since = self.last.as_ref().zip(rate);
        self.totals.accepted.push(since.map(|(last, rate)| rate.between(last.accepted, now.accepted)));
        self.totals.refused.push(since.map(|(last, rate)| rate.per_minute(last.refused, now.refused)));
        self.totals.posts.push(since.and_then(|(last, _)| p99(&last.posts, &now.posts)));
        self.totals.pending.push(held(|sink| sink.pending));
        self.totals.dead.push(held(|sink| sink.dead));
        let types = now.types.iter().map(|(name, of)| (name.as_str(), Figures { total: of.accepted, held: None }));
        self.types.add(types.collect(), rate);
        let sinks = now.sinks.iter().map(|(name, of)| {
            let held = now.keeps_events().then_some((of.pending, of.dead));
            (&**name, Figures { total: of.stored, held })
        });
        self.sinks.add(sinks.collect::<BTreeMap<_, _>>(), rate);
        self.last = Some(Last { at: now.at, clock, accepted: now.accepted, refused: now.refused, posts: now.posts });
    }

    /// Adds points without values.
    fn skip(&mut self, points: usize) {
        for series in self.totals.all() {
            (0..points).for_each(|_| series.push(None));
        }
        self.types.skip(points);
        self.sinks.skip(points);
    }

    /// The points of so much time.
    pub(super) fn shown(&self, time: Duration) -> HistoryJson {
        let points = time.as_secs().div_ceil(STEP.as_secs());
        let points = usize::try_from(points).unwrap_or(POINTS_MAX).clamp(1, POINTS_MAX);
        let totals = &self.totals;
        let of_sink = |slot: &&slots::Slot| SinkHistoryJson {
            sink: slot.name.to_string(),
            stored_per_s: slot.rate.last(points),
            pending: slot.pending.last(points),
            dead: slot.dead.last(points),
        };
        HistoryJson {
            step_s: STEP.as_secs(),
            until: rfc3339::format(self.last.as_ref().map_or_else(clock::unix_microseconds, |last| last.clock)),
            totals: TotalsHistoryJson {
                accepted_per_s: totals.accepted.last(points),
                refused_per_min: totals.refused.last(points),
                pending: totals.pending.last(points),
                dead: totals.dead.last(points),
                post_p99_ms: totals.posts.last(points),
            },
            types: self
                .types
                .busiest_first()
                .iter()
                .map(|slot| TypeHistoryJson { r#type: slot.name.to_string(), accepted_per_s: slot.rate.last(points) })
                .collect(),
            sinks: self.sinks.busiest_first().iter().map(of_sink).collect(),
        }
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let Totals { accepted, refused, pending, dead, posts } = &self.totals;
        let totals: usize = [accepted, refused, pending, dead, posts].map(Series::bytes).iter().sum();
        totals + self.types.bytes() + self.sinks.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::SinkSample;
    use super::*;

    fn sample(begun: Instant, second: u64, accepted: u64) -> RateSample {
        let stored = accepted / 2;
        let sink = SinkSample { stored, pending: accepted - stored, dead: 3, ..SinkSample::default() };
        RateSample {
            at: begun + Duration::from_secs(second),
            accepted,
            body_bytes: Some(0),
            sinks: [("db".into(), sink)].into(),
            ..RateSample::of_process()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn points_are_rates_and_levels() {
        let (mut history, begun) = (History::default(), Instant::now());
        history.add(&sample(begun, 0, 0), 0);
        history.add(&sample(begun, 5, 100), 5_000_000);
        // The process was stopped.
        history.add(&sample(begun, 20, 400), 20_000_000);
        let shown = history.shown(Duration::from_secs(26));
        assert_eq!((shown.step_s, shown.until.as_str()), (5, "1970-01-01T00:00:20.000000Z"));
        assert_eq!(shown.totals.accepted_per_s, [None, None, Some(20.0), None, None, Some(20.0)]);
        assert_eq!(shown.totals.dead, [None, Some(3.0), Some(3.0), None, None, Some(3.0)]);
        assert_eq!(shown.sinks[0].pending.last(), Some(&Some(200.0)));
        assert_eq!(history.shown(Duration::from_secs(1)).totals.pending, [Some(200.0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn full_history_fits_its_budget() {
        let (mut history, begun) = (History::default(), Instant::now());
        for point in 0..800 {
            let mut now = sample(begun, 5 * point, 10 * point);
            for at in 0..20 {
                let name: std::sync::Arc<str> = format!("sink-{at}").into();
                now.sinks.insert(name.clone(), SinkSample { stored: at, ..SinkSample::default() });
                let of_type = super::super::sample::TypeSample { accepted: at, ..Default::default() };
                now.types.insert(event::TypeName::new(&name).unwrap(), of_type);
            }
            history.add(&now, 0);
        }
        let shown = history.shown(KEPT_MAX);
        assert_eq!((shown.types.len(), shown.sinks.len(), shown.totals.dead.len()), (16, 16, 720));
        assert!(history.bytes() <= HISTORY_BYTES_MAX, "{}", history.bytes());
        assert!(history.bytes() > HISTORY_BYTES_MAX / 10 * 9, "{}", history.bytes());
    }
}
