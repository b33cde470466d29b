//! From two samples to sentences.

use std::time::Duration;

use admin_api::status::FindingJson;
use metrics::{BUCKET_BOUNDS, HistogramSnapshot};

use super::sample::Sample;

/// The container's limit held it for this share of the time.
const THROTTLED_MIN: f64 = 0.05;
/// A shard waited for a CPU for this share of the time.
const RUN_WAIT_MIN: f64 = 0.1;
/// The hypervisor took this share of all CPUs.
const STEAL_MIN: f64 = 0.05;
/// A shard was at work for this share of the time.
const BUSY_MIN: f64 = 0.9;
/// The slowest percent of fdatasyncs took this long.
const FDATASYNC_MIN: Duration = Duration::from_millis(100);
/// This share of the descriptors is in use.
const DESCRIPTORS_MIN: f64 = 0.9;
/// The clock differs by this much from the time that has passed.
const JUMP_MIN: f64 = 1.0;

/// What the time between two samples shows.
pub(super) fn findings(before: &Sample, now: &Sample) -> Vec<FindingJson> {
    let mut found = Vec::new();
    found.extend(of_cpu(before, now));
    found.extend(slow_disk(before, now));
    let overload = now.overload.saturating_sub(before.overload);
    if overload > 0 {
        found.push(finding(
            "memory",
            format!("memory is short: {overload} requests got 503 `overload` {}. Raise the memory limit, or post smaller batches", span(before, now)),
        ));
    }
    if float(now.open_fds) >= DESCRIPTORS_MIN * float(now.max_fds) {
        let (open, max) = (now.open_fds, now.max_fds);
        let text = format!(
            "{open} of {max} file descriptors are open. Raise the limit of open files (`ulimit -n`, `LimitNOFILE`)"
        );
        found.push(finding("descriptors", text));
    }
    let dropped = now.log_dropped.saturating_sub(before.log_dropped);
    if dropped > 0 {
        let text = format!(
            "{dropped} log lines were dropped {}, because nothing read stderr in time. Check the log's reader",
            span(before, now)
        );
        found.push(finding("log", text));
    }
    found.extend(clock_jump(before, now));
    found
}

/// The one reason that explains the CPU's part best.
fn of_cpu(before: &Sample, now: &Sample) -> Option<FindingJson> {
    let seconds = (now.at - before.at).as_secs_f64();
    let throttled = ((now.throttled - before.throttled) / seconds).clamp(0.0, 1.0);
    if throttled >= THROTTLED_MIN {
        let limit = now.cpu_limit.map_or_else(String::new, |limit| format!(" ({limit} CPUs)"));
        let text = format!(
            "throttled by the container's CPU limit{limit}: {} of the time {}. Raise the limit, or remove it",
            percent(throttled),
            span(before, now)
        );
        return Some(finding("cpu_throttled", text));
    }
    let steal = (now.steal - before.steal) / (seconds * now.cpus.max(1.0));
    let shards = float(now.busy.len() as u64).max(1.0);
    // The wait contains the throttled time.
    let waited = (now.run_wait - before.run_wait) / (seconds * shards) - throttled;
    if steal >= STEAL_MIN {
        let text = format!(
            "the hypervisor took {} of the machine's CPU time {}. Move the virtual machine, or reserve CPUs for it",
            percent(steal),
            span(before, now)
        );
        return Some(finding("cpu_steal", text));
    }
    if waited >= RUN_WAIT_MIN {
        let text = format!(
            "other processes use the CPU: each shard was ready and had none for {} of the time {}. Give Forebay more \
             CPU, or move the other processes",
            percent(waited),
            span(before, now)
        );
        return Some(finding("cpu_busy", text));
    }
    let busy =
        now.busy.iter().zip(&before.busy).map(|(now, before)| now.saturating_sub(*before).as_secs_f64() / seconds);
    let (shard, share) = busy.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (share >= BUSY_MIN).then(|| {
        let text = format!(
            "shard {shard} was at work for {} of the time {}. Add CPUs and `shards`, or gateways",
            percent(share),
            span(before, now)
        );
        finding("shard_full", text)
    })
}

fn slow_disk(before: &Sample, now: &Sample) -> Option<FindingJson> {
    let slow = percentile_99(&before.fdatasync, &now.fdatasync)?;
    (slow >= FDATASYNC_MIN).then(|| {
        let text = format!(
            "the disk is slow: the slowest percent of fdatasyncs took {} ms or more {}. Check its other users, or use a faster disk",
            slow.as_millis(),
            span(before, now)
        );
        finding("disk_slow", text)
    })
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

fn clock_jump(before: &Sample, now: &Sample) -> Option<FindingJson> {
    let by_clock = match now.clock.duration_since(before.clock) {
        Ok(passed) => passed.as_secs_f64(),
        Err(back) => -back.duration().as_secs_f64(),
    };
    let jump = by_clock - (now.at - before.at).as_secs_f64();
    (jump.abs() >= JUMP_MIN).then(|| {
        let text =
            format!("the clock jumped by {jump:.1} s {}. Check the time service of the machine", span(before, now));
        finding("clock", text)
    })
}

fn finding(code: &str, text: String) -> FindingJson {
    FindingJson { code: code.to_owned(), text }
}

/// The time between the samples: a minute, or less after a start.
fn span(before: &Sample, now: &Sample) -> String {
    format!("in the last {} s", (now.at - before.at).as_secs())
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Counts of processes are far below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "figures for users; exact below 2⁵³")]
const fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use std::time::{Instant, SystemTime};

    use metrics::Histogram;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn idle(at: Instant, clock: SystemTime) -> Sample {
        Sample {
            at,
            throttled: 0.0,
            cpu_limit: None,
            run_wait: 0.0,
            steal: 0.0,
            cpus: 2.0,
            busy: vec![Duration::ZERO; 2],
            fdatasync: Histogram::new().snapshot(),
            overload: 0,
            log_dropped: 0,
            clock,
            open_fds: 30,
            max_fds: 1_000,
        }
    }

    /// The codes that a changed minute shows, with their texts.
    fn found(change: impl FnOnce(&mut Sample)) -> Vec<(String, String)> {
        let (at, clock) = (Instant::now(), SystemTime::UNIX_EPOCH);
        let (before, mut now) = (idle(at, clock), idle(at + MINUTE, clock + MINUTE));
        change(&mut now);
        findings(&before, &now).into_iter().map(|finding| (finding.code, finding.text)).collect()
    }

    fn codes(change: impl FnOnce(&mut Sample)) -> Vec<String> {
        found(change).into_iter().map(|(code, _)| code).collect()
    }

    #[test]
    fn idle_minute_has_no_findings() {
        assert_eq!(codes(|_| {}), [""; 0]);
    }

    #[test]
    fn each_finding_has_its_threshold() {
        assert_eq!(codes(|now| now.throttled = 2.9), [""; 0]);
        assert_eq!(codes(|now| now.throttled = 3.1), ["cpu_throttled"]);
        // 10 % of two shards' time.
        assert_eq!(codes(|now| now.run_wait = 11.9), [""; 0]);
        assert_eq!(codes(|now| now.run_wait = 12.1), ["cpu_busy"]);
        assert_eq!(codes(|now| now.steal = 6.1), ["cpu_steal"]);
        assert_eq!(codes(|now| now.busy[1] = Duration::from_secs(53)), [""; 0]);
        assert_eq!(codes(|now| now.busy[1] = Duration::from_secs(55)), ["shard_full"]);
        assert_eq!(codes(|now| now.overload = 1), ["memory"]);
        assert_eq!(codes(|now| now.open_fds = 900), ["descriptors"]);
        assert_eq!(codes(|now| now.log_dropped = 1), ["log"]);
        assert_eq!(codes(|now| now.clock -= Duration::from_secs(90)), ["clock"]);
        assert_eq!(codes(|now| now.clock += Duration::from_millis(900)), [""; 0]);
    }

    #[test]
    fn one_reason_explains_the_cpu() {
        let throttled = |now: &mut Sample| {
            (now.throttled, now.run_wait, now.cpu_limit) = (22.8, 60.0, Some(0.5));
            now.busy[0] = MINUTE;
        };
        let text = "throttled by the container's CPU limit (0.5 CPUs): 38 % of the time in the last 60 s. Raise the limit, or remove it";
        assert_eq!(found(throttled), [("cpu_throttled".to_owned(), text.to_owned())]);
    }

    #[test]
    fn slow_percent_of_fdatasyncs_counts() {
        let synced = |slow: u32| {
            let times = Histogram::new();
            (0..1_000).for_each(|_| times.record(Duration::from_millis(1)));
            (0..slow).for_each(|_| times.record(Duration::from_millis(300)));
            codes(|now| now.fdatasync = times.snapshot())
        };
        assert_eq!(synced(9), [""; 0]);
        assert_eq!(synced(20), ["disk_slow"]);
    }
}
