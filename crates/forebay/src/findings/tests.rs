//! What changed minutes show.

use std::time::{Duration, Instant};

use admin_api::health::{FindingJson, FindingLevel, HostJson};
use config::ConnectionLimits;
use host::{ContainerStats, ProcessStats};
use metrics::Histogram;

use super::sample::MinuteSample;
use super::{CODES, Findings, INTERVAL, KEPT, Seen, host};

const SHARDS: usize = 2;
const MINUTE: Duration = Duration::from_mins(1);
const MIB: u64 = 1 << 20;

fn idle(at: Instant) -> MinuteSample {
    MinuteSample {
        at,
        clock: 1_000_000,
        process: ProcessStats {
            cpu_seconds: Some(10.0),
            resident_bytes: Some(14 * MIB),
            open_fds: Some(30),
            max_fds: Some(1_000),
            ..ProcessStats::default()
        },
        container: ContainerStats {
            cpu_limit: Some(0.5),
            throttled_seconds: Some(100.0),
            memory_limit_bytes: Some(64 * MIB),
            memory_bytes: Some(60 * MIB),
            memory_cache_bytes: Some(40 * MIB),
            memory_limit_hits: Some(7),
            ..ContainerStats::default()
        },
        run_wait: (0..SHARDS).map(|shard| (format!("shard-{shard}"), 3.0)).collect(),
        steal: 0.0,
        cpus: 2.0,
        busy: vec![Duration::ZERO; SHARDS],
        fdatasync: Histogram::new().snapshot(),
        overload: 4,
        accept_errors: 1,
        connections: 10,
        connections_closed: 3,
        lowered: None,
        log_dropped: 2,
        disk_free_bytes: Some(MIB),
    }
}

/// The sample some time after another one, in which nothing happened.
fn later(sample: &MinuteSample, passed: Duration) -> MinuteSample {
    let clock = sample.clock + i64::try_from(passed.as_micros()).unwrap();
    MinuteSample { at: sample.at + passed, clock, ..sample.clone() }
}

/// What a changed minute shows.
fn found(change: impl FnOnce(&mut MinuteSample)) -> Vec<FindingJson> {
    let before = idle(Instant::now());
    let mut now = later(&before, MINUTE);
    change(&mut now);
    let mut seen = Seen::default();
    seen.keep(before);
    seen.judge(&now)
}

fn codes(change: impl FnOnce(&mut MinuteSample)) -> Vec<String> {
    found(change).into_iter().map(|finding| finding.code).collect()
}

fn waits(now: &mut MinuteSample, shard: usize, seconds: f64) {
    *now.run_wait.get_mut(&format!("shard-{shard}")).unwrap() += seconds;
}

fn throttle(now: &mut MinuteSample, seconds: f64) {
    now.container.throttled_seconds = now.container.throttled_seconds.map(|before| before + seconds);
}

#[test]
fn idle_minute_has_no_findings() {
    assert_eq!(codes(|_| {}), [""; 0]);
}

#[test]
fn cpu_findings_have_their_thresholds() {
    assert_eq!(codes(|now| throttle(now, 2.9)), [""; 0]);
    assert_eq!(codes(|now| throttle(now, 3.1)), ["cpu_throttled"]);
    // 10 % of one shard's time.
    assert_eq!(codes(|now| waits(now, 1, 5.9)), [""; 0]);
    assert_eq!(codes(|now| waits(now, 1, 6.1)), ["cpu_busy"]);
    assert_eq!(codes(|now| now.steal = 5.9), [""; 0]);
    assert_eq!(codes(|now| now.steal = 6.1), ["cpu_steal"]);
    assert_eq!(codes(|now| now.busy[1] = Duration::from_secs(53)), [""; 0]);
    assert_eq!(codes(|now| now.busy[1] = Duration::from_secs(55)), ["shard_full"]);
}

#[test]
fn wait_for_the_limit_is_no_neighbour() {
    let text = "throttled by the container's CPU limit (0.5 CPUs): 38 % of the time in the last 60 s. Raise the limit, or remove it";
    let found = found(|now| {
        throttle(now, 22.8);
        waits(now, 0, 40.0);
        now.busy[0] = MINUTE;
    });
    assert_eq!(found.iter().map(|finding| &*finding.text).collect::<Vec<_>>(), [text]);
}

#[test]
fn wait_for_the_hypervisor_is_no_neighbour() {
    let stolen = |waited: f64| {
        codes(|now| {
            now.steal = 24.0;
            waits(now, 0, waited);
        })
    };
    assert_eq!(stolen(17.0), ["cpu_steal"]);
    assert_eq!(stolen(19.0), ["cpu_steal", "cpu_busy"], "more than the hypervisor took");
}

#[test]
fn shard_without_a_cpu_is_not_full() {
    let busy = |now: &mut MinuteSample| {
        waits(now, 1, 50.0);
        now.busy[1] = MINUTE;
    };
    assert_eq!(codes(busy), ["cpu_busy"]);
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

#[test]
fn reclaim_counts_only_if_little_can_be_freed() {
    let rejected = found(|now| now.overload += 1);
    assert!(
        rejected[0].level == FindingLevel::Error && rejected[0].text.contains(" 1 request got 503"),
        "{rejected:?}"
    );
    assert_eq!(codes(|now| now.container.memory_limit_hits = Some(90)), [""; 0], "pages of files");
    assert_eq!(codes(|now| now.container.memory_cache_bytes = Some(MIB)), [""; 0], "the limit wasn't reached");
    let reclaims = found(|now| {
        now.container.memory_limit_hits = Some(90);
        now.container.memory_cache_bytes = Some(4 * MIB);
    });
    let text = "memory is short: the container reached its limit of 64 MiB 83 times in the last 60 s, and can't free 56 MiB of it. Raise the limit";
    assert_eq!((reclaims.len(), &*reclaims[0].text), (1, text));
}

#[test]
fn descriptors_count_at_their_highest() {
    assert_eq!(codes(|now| now.process.open_fds = Some(899)), [""; 0]);
    assert_eq!(codes(|now| now.process.open_fds = Some(900)), ["descriptors"]);
    assert_eq!(codes(|now| now.accept_errors += 1), ["descriptors"]);
    // If all are in use, there is none to list them.
    assert_eq!(codes(|now| now.process.open_fds = None), [""; 0]);
    let mut seen = Seen::default();
    let mut peak = idle(Instant::now());
    peak.process.open_fds = Some(950);
    seen.keep(later(&idle(peak.at), Duration::ZERO));
    seen.keep(later(&peak, INTERVAL));
    let now = MinuteSample { at: peak.at + MINUTE, clock: peak.clock + 60_000_000, ..idle(peak.at) };
    assert_eq!(seen.judge(&now).len(), 1, "within the minute");
}

/// As with `ulimit -n 1000`.
const LOWERED: Option<ConnectionLimits> = Some(ConnectionLimits { all: 744, per_client: 372 });

#[test]
fn connections_count_if_descriptors_limit_them() {
    let open = |connections, lowered| {
        found(|now| (now.connections, now.lowered) = (connections, lowered)).pop().map(|finding| finding.text)
    };
    assert_eq!((open(40_000, None), open(669, LOWERED)), (None, None));
    let text = "670 of 744 connections were open in the last 60 s: more can't be, with 1000 file descriptors. Raise the limit of \
                open files (`ulimit -n`, `LimitNOFILE`)";
    assert_eq!(open(670, LOWERED).as_deref(), Some(text));
}

#[test]
fn closed_connections_count_if_descriptors_limit_them() {
    let closed = |lowered| {
        found(|now| {
            now.connections_closed += 44;
            now.lowered = lowered;
        })
    };
    assert_eq!(closed(None), []);
    let text = "closed 44 connections in the last 60 s: 1000 file descriptors are allowed, so 744 connections can be open, 372 of them \
                from one client. Raise the limit of open files (`ulimit -n`, `LimitNOFILE`)";
    let found: Vec<_> = closed(LOWERED).into_iter().map(|finding| (finding.level, finding.text)).collect();
    assert_eq!(found, [(FindingLevel::Error, text.to_owned())]);
}

#[test]
fn dropped_lines_and_a_jump_are_found() {
    assert_eq!(codes(|now| now.log_dropped += 1), ["log"]);
    assert_eq!(codes(|now| now.clock -= 90_000_000), ["clock"]);
    assert_eq!(codes(|now| now.clock += 900_000), [""; 0]);
}

#[test]
fn unreadable_figures_show_nothing() {
    let unreadable = |now: &mut MinuteSample| {
        now.process = ProcessStats::default();
        now.container = ContainerStats::default();
        now.run_wait.clear();
    };
    assert_eq!(codes(unreadable), [""; 0]);
    let mut before = idle(Instant::now());
    let now = later(&before, MINUTE);
    unreadable(&mut before);
    let mut seen = Seen::default();
    seen.keep(before.clone());
    assert_eq!(seen.judge(&now), [], "what becomes readable isn't a jump from 0");
    assert_eq!(host(Some(&now), &before), HostJson { disk_free_bytes: Some(MIB), ..HostJson::default() });
}

#[test]
fn finding_keeps_its_beginning_and_ends_a_minute_later() {
    let (mut seen, begin) = (Seen::default(), idle(Instant::now()));
    seen.keep(begin.clone());
    let mut shown = Vec::new();
    let mut now = begin;
    for step in 1..=12_u64 {
        now = later(&now, INTERVAL);
        now.overload += u64::from(step == 2);
        shown.push(seen.judge(&now).pop().map(|finding| finding.since));
        seen.keep(now.clone());
    }
    let present: Vec<usize> = (0..shown.len()).filter(|at| shown[*at].is_some()).collect();
    assert_eq!(present, (1..=KEPT).collect::<Vec<_>>(), "{shown:?}");
    assert!(shown[1..=KEPT].iter().all(|since| since.as_deref() == Some("1970-01-01T00:00:21Z")), "{shown:?}");
}

#[test]
fn each_code_is_listed_and_documented() {
    let page = include_str!("../../../../docs/guides/why-slow.md");
    for code in CODES {
        assert!(page.contains(&format!("## {code}\n")), "docs/guides/why-slow.md lacks {code}");
    }
    let all = found(|now| {
        now.overload += 1;
        now.accept_errors += 1;
        now.log_dropped += 1;
        now.clock = 0;
    });
    assert!(all.iter().all(|finding| CODES.contains(&&*finding.code)) && all.len() == 4, "{all:?}");
}

#[test]
fn host_has_the_figures_of_the_minute() {
    let before = idle(Instant::now());
    let mut now = later(&before, MINUTE);
    throttle(&mut now, 22.8);
    now.process.cpu_seconds = Some(40.0);
    let expected = HostJson {
        cpu: Some(0.5),
        cpu_limit: Some(0.5),
        throttled: Some(0.38),
        rss_bytes: Some(14 * MIB),
        memory_limit: Some(64 * MIB),
        disk_free_bytes: Some(MIB),
    };
    assert_eq!(host(Some(&before), &now), expected);
    assert_eq!(host(None, &now), HostJson { cpu: None, throttled: None, ..expected });
}

#[test]
fn first_sample_precedes_the_first_poll() {
    let findings = Findings::new(None);
    let _following = findings.clone().follow();
    assert_eq!(findings.seen().samples.len(), 1);
}
