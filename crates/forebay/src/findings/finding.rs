//! From the samples of a minute to sentences.

use std::time::Duration;

use admin_api::health::FindingLevel;
use config::ConnectionLimits;
use metrics::{BUCKET_BOUNDS, HistogramSnapshot};

use super::sample::MinuteSample;

/// The container's limit held it for this share of the time.
const THROTTLED_MIN: f64 = 0.05;
/// A thread waited for a CPU for this share of the time.
const RUN_WAIT_MIN: f64 = 0.1;
/// The hypervisor took this share of all CPUs.
const STEAL_MIN: f64 = 0.05;
/// A shard was at work for this share of the time.
const BUSY_MIN: f64 = 0.9;
/// The slowest percent of fdatasyncs took this long.
const FDATASYNC_MIN: Duration = Duration::from_millis(100);
/// This share of the container's memory can't be reclaimed: before, to reach the limit only frees old pages of files.
const UNRECLAIMABLE_MIN: f64 = 0.8;
/// This share of the descriptors is in use, or of the connections that they allow.
const DESCRIPTORS_MIN: f64 = 0.9;
/// The clock differs by this much from the time that has passed.
const JUMP_MIN: f64 = 1.0;

/// The codes of all findings.
pub(crate) const CODES: [&str; 9] =
    ["cpu_throttled", "cpu_steal", "cpu_busy", "shard_full", "disk_slow", "memory", "descriptors", "log", "clock"];

/// What slowed the process down.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) code: &'static str,
    pub(super) level: FindingLevel,
    pub(super) text: String,
}

/// What the time from the first of `earlier` to `now` shows. Nothing without an earlier sample.
pub(super) fn findings<'a>(
    earlier: impl Iterator<Item = &'a MinuteSample> + Clone,
    now: &'a MinuteSample,
) -> Vec<Finding> {
    let Some(before) = earlier.clone().next() else { return Vec::new() };
    let passed = Passed { before, now };
    let mut found = passed.cpu();
    found.extend(passed.disk());
    found.extend(passed.memory());
    found.extend(passed.descriptors(earlier.chain([now])));
    found.extend(passed.log());
    found.extend(passed.clock());
    found
}

/// The share of the time between two samples in which the container's limit held it, from 0 to 1.
pub(super) fn throttled(before: &MinuteSample, now: &MinuteSample) -> Option<f64> {
    let [earlier, later] = [before, now].map(|sample| sample.container.throttled_seconds);
    Some(((later? - earlier?) / (now.at - before.at).as_secs_f64()).clamp(0.0, 1.0))
}

/// The time between two samples: a minute, or less after a start.
struct Passed<'a> {
    before: &'a MinuteSample,
    now: &'a MinuteSample,
}

impl Passed<'_> {
    fn seconds(&self) -> f64 {
        (self.now.at - self.before.at).as_secs_f64()
    }

    fn span(&self) -> String {
        format!("in the last {:.0} s", self.seconds())
    }

    /// How much a count has grown.
    fn more(&self, of: impl Fn(&MinuteSample) -> u64) -> u64 {
        of(self.now).saturating_sub(of(self.before))
    }

    /// What explains the CPU's part best. A shard is full only if nothing else holds it up.
    fn cpu(&self) -> Vec<Finding> {
        let span = self.span();
        let throttled = throttled(self.before, self.now).unwrap_or_default();
        if throttled >= THROTTLED_MIN {
            let limit = self.now.container.cpu_limit.map_or_else(String::new, |limit| format!(" ({limit} CPUs)"));
            let share = percent(throttled);
            let text = format!(
                "throttled by the container's CPU limit{limit}: {share} of the time {span}. Raise the limit, or \
                 remove it"
            );
            return vec![warning("cpu_throttled", text)];
        }
        let mut found = Vec::new();
        let steal = (self.now.steal - self.before.steal) / (self.seconds() * self.now.cpus.max(1.0));
        if steal >= STEAL_MIN {
            let share = percent(steal);
            let text = format!(
                "the hypervisor took {share} of the machine's CPU time {span}. Move the virtual machine, or reserve \
                 CPUs for it"
            );
            found.push(warning("cpu_steal", text));
        }
        // The wait contains the time in which the limit held the process, and that of a CPU that the hypervisor took.
        let (thread, waited) = self.longest_wait();
        if waited - throttled - steal >= RUN_WAIT_MIN {
            let share = percent(waited);
            let text = format!(
                "other processes use the CPU: thread {thread} was ready and had none for {share} of the time {span}. \
                 Give Forebay more CPU, or move the other processes"
            );
            found.push(warning("cpu_busy", text));
        }
        if found.is_empty() { self.busiest_shard().into_iter().collect() } else { found }
    }

    fn longest_wait(&self) -> (&str, f64) {
        let waits = self.now.run_wait.iter().filter_map(|(name, wait)| {
            Some((name.as_str(), (wait - self.before.run_wait.get(name)?) / self.seconds()))
        });
        waits.max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or_default()
    }

    fn busiest_shard(&self) -> Option<Finding> {
        let busy = self.now.busy.iter().zip(&self.before.busy);
        let shares = busy.map(|(now, before)| now.saturating_sub(*before).as_secs_f64() / self.seconds());
        let (shard, share) = shares.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        (share >= BUSY_MIN).then(|| {
            let (share, span) = (percent(share), self.span());
            let text =
                format!("shard {shard} was at work for {share} of the time {span}. Add CPUs and `shards`, or gateways");
            warning("shard_full", text)
        })
    }

    fn disk(&self) -> Option<Finding> {
        let slow = percentile_99(&self.before.fdatasync, &self.now.fdatasync)?;
        (slow >= FDATASYNC_MIN).then(|| {
            let text = format!(
                "the disk is slow: the slowest percent of fdatasyncs took {} ms or more {}. Check its other users, or \
                 use a faster disk",
                slow.as_millis(),
                self.span()
            );
            warning("disk_slow", text)
        })
    }

    fn memory(&self) -> Option<Finding> {
        let (overload, span) = (self.more(|sample| sample.overload), self.span());
        if overload > 0 {
            let text = format!(
                "memory is short: {} got 503 `overload` {span}. Raise the memory limit, or post smaller batches",
                text::counted(overload, "request")
            );
            return Some(Finding { level: FindingLevel::Error, ..warning("memory", text) });
        }
        let stats = &self.now.container;
        let (limit, cache) = (stats.memory_limit_bytes?, stats.memory_cache_bytes?);
        let hits = self.before.container.memory_limit_hits.zip(stats.memory_limit_hits);
        let hits = hits.map_or(0, |(before, now)| now.saturating_sub(before));
        let held = stats.memory_bytes?.saturating_sub(cache);
        (hits > 0 && float(held) >= UNRECLAIMABLE_MIN * float(limit)).then(|| {
            let text = format!(
                "memory is short: the container reached its limit of {} MiB {} {span}, and can't free {} MiB of it. \
                 Raise the limit",
                limit >> 20,
                text::counted(hits, "time"),
                held >> 20
            );
            warning("memory", text)
        })
    }

    /// A limit lowers that of connections, so these reach theirs long before the last descriptor is in use.
    fn descriptors<'a>(&self, samples: impl Iterator<Item = &'a MinuteSample> + Clone) -> Option<Finding> {
        let open = samples.clone().filter_map(|sample| sample.process.open_fds).max().unwrap_or_default();
        let max = self.now.process.max_fds.unwrap_or(u64::MAX);
        let (failed, span) = (self.more(|sample| sample.accept_errors), self.span());
        let advice = "Raise the limit of open files (`ulimit -n`, `LimitNOFILE`)";
        if failed > 0 {
            let failed = text::counted(failed, "connection");
            let text = format!("{failed} couldn't be accepted {span}; {max} file descriptors are allowed. {advice}");
            return Some(Finding { level: FindingLevel::Error, ..warning("descriptors", text) });
        }
        let lowered = self.now.lowered;
        let closed = self.more(|sample| sample.connections_closed);
        if let Some(ConnectionLimits { all, per_client }) = lowered.filter(|_| closed > 0) {
            let closed = text::counted(closed, "connection");
            let text = format!(
                "closed {closed} {span}: {max} file descriptors are allowed, so {all} connections can be open, \
                 {per_client} of them from one client. {advice}"
            );
            return Some(Finding { level: FindingLevel::Error, ..warning("descriptors", text) });
        }
        if float(open) >= DESCRIPTORS_MIN * float(max) {
            return Some(warning(
                "descriptors",
                format!("{open} of {max} file descriptors were open {span}. {advice}"),
            ));
        }
        let (all, connected) = (lowered?.all as u64, samples.map(|sample| sample.connections).max()?);
        (float(connected) >= DESCRIPTORS_MIN * float(all)).then(|| {
            let text = format!(
                "{connected} of {all} connections were open {span}: more can't be, with {max} file descriptors. {advice}"
            );
            warning("descriptors", text)
        })
    }

    fn log(&self) -> Option<Finding> {
        let dropped = self.more(|sample| sample.log_dropped);
        (dropped > 0).then(|| {
            let (lines, span) = (text::counted(dropped, "log line"), self.span());
            let text = format!("dropped {lines} {span}: nothing read stderr in time. Check the log's reader");
            Finding { level: FindingLevel::Error, ..warning("log", text) }
        })
    }

    fn clock(&self) -> Option<Finding> {
        let jump = seconds(self.now.clock - self.before.clock) - self.seconds();
        (jump.abs() >= JUMP_MIN).then(|| {
            let span = self.span();
            warning("clock", format!("the clock jumped by {jump:.1} s {span}. Check the time service of the machine"))
        })
    }
}

/// The lower bound of the bucket that the 99th percentile is in; `None` without values.
fn percentile_99(before: &HistogramSnapshot, now: &HistogramSnapshot) -> Option<Duration> {
    let counts: Vec<u64> =
        now.buckets.iter().zip(before.buckets).map(|(now, before)| now.saturating_sub(before)).collect();
    let all: u64 = counts.iter().sum();
    let mut beyond = all / 100;
    let bucket = (0..counts.len()).rev().find(|bucket| match beyond.checked_sub(counts[*bucket]) {
        Some(rest) => {
            beyond = rest;
            false
        }
        None => true,
    })?;
    Some(Duration::from_nanos(bucket.checked_sub(1).map_or(0, |below| BUCKET_BOUNDS[below])))
}

const fn warning(code: &'static str, text: String) -> Finding {
    Finding { code, level: FindingLevel::Warning, text }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Of microseconds; a clock has few enough of them.
#[expect(clippy::cast_precision_loss, reason = "figures for users; exact below 2⁵³")]
const fn seconds(microseconds: i64) -> f64 {
    microseconds as f64 / 1e6
}

/// Figures of processes are far below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "figures for users; exact below 2⁵³")]
const fn float(value: u64) -> f64 {
    value as f64
}
