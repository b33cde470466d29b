//! Events that are late, early, out of order, or missing; each case has a name.

use std::time::Duration;

use super::super::{AggregateRules, Definition, Emit, InvalidState, Late, TimeBasis, merge};
use super::*;

fn minute() -> Definition {
    definition("1m", &["/a"], &[("n", "count")])
}

fn lateness(seconds: u64, definition: Definition) -> Definition {
    Definition { lateness: Some(Duration::from_secs(seconds)), ..definition }
}

#[test]
fn a_window_holds_its_start_and_not_its_end() {
    let mut hand = Hand::new(&minute());
    hand.event("10:00:00", r#"{"a":1}"#);
    hand.event("10:00:59.999999", r#"{"a":1}"#);
    assert!(hand.results().is_empty());
    hand.event("10:01:00", r#"{"a":1}"#);
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":1},"n":2 r2"#]);
    hand.event("10:02:00", r#"{"a":1}"#);
    assert_eq!(hand.results(), [r#"10:01:00-10:02:00 {"/a":1},"n":1 r1"#]);
}

#[test]
fn sliding_windows_overlap() {
    let mut hand = Hand::new(&definition("3m every 1m", &[], &[("n", "count")]));
    hand.event("10:00:30", "{}");
    hand.event("10:01:30", "{}");
    hand.event("10:10:00", "{}");
    assert_eq!(
        hand.results(),
        [
            "09:58:00-10:01:00 {},\"n\":1 r1",
            "09:59:00-10:02:00 {},\"n\":2 r2",
            "10:00:00-10:03:00 {},\"n\":2 r2",
            "10:01:00-10:04:00 {},\"n\":1 r1",
        ]
    );
}

#[test]
fn order_within_a_window_does_not_matter() {
    let mut hand = Hand::new(&definition("1m", &[], &[("first", "first:/v"), ("last", "last:/v")]));
    for (time, value) in [("10:00:20", 2), ("10:00:40", 3), ("10:00:10", 1), ("10:00:30", 9)] {
        hand.event(time, &format!(r#"{{"v":{value}}}"#));
    }
    hand.tick("10:01:00");
    assert_eq!(hand.results(), ["10:00:00-10:01:00 {},\"first\":1,\"last\":3 r4"]);
}

#[test]
fn late_event_within_lateness_raises_the_revision() {
    let mut hand = Hand::new(&lateness(60, minute()));
    hand.event("10:00:10", r#"{"a":1}"#);
    hand.event("10:00:20", r#"{"a":2}"#);
    hand.event("10:01:30", r#"{"a":1}"#);
    assert_eq!(hand.results().len(), 2);
    hand.event("10:00:30", r#"{"a":1}"#);
    hand.event("10:00:40", r#"{"a":3}"#);
    let mut again = hand.results();
    again.sort();
    assert_eq!(again, [r#"10:00:00-10:01:00 {"/a":1},"n":2 r2"#, r#"10:00:00-10:01:00 {"/a":3},"n":1 r1"#]);
    assert_eq!(hand.fold.counts().late, 0);
}

#[test]
fn event_beyond_lateness_is_counted() {
    let mut hand = Hand::new(&lateness(60, minute()));
    hand.event("10:00:10", r#"{"a":1}"#);
    hand.event("10:02:00", r#"{"a":1}"#);
    assert_eq!(hand.results().len(), 1);
    hand.event("10:00:30", r#"{"a":1}"#);
    assert!(hand.results().is_empty());
    assert_eq!(hand.fold.counts().late, 1);
}

#[test]
fn event_beyond_lateness_goes_to_a_configured_part() {
    let mut hand = Hand::new(&Definition { late: Late::Part, ..minute() });
    hand.event("10:00:10", r#"{"a":1}"#);
    hand.event("10:01:00", r#"{"a":1}"#);
    hand.event("10:00:30", r#"{"a":1}"#);
    hand.event("10:00:40", r#"{"a":1}"#);
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":1},"n":1 r1"#]);
    hand.event("10:02:00", r#"{"a":1}"#);
    hand.event("10:00:50", r#"{"a":1}"#);
    let found = hand.results();
    assert_eq!(found, [r#"10:00:00-10:01:00 {"/a":1},"part":1,"n":2 r2"#, r#"10:01:00-10:02:00 {"/a":1},"n":1 r1"#]);
    hand.tick("10:03:00");
    assert!(hand.results().contains(&r#"10:00:00-10:01:00 {"/a":1},"part":2,"n":1 r1"#.to_owned()));
    hand.tick("12:00:00");
    hand.received("10:00:55", "12:00:00", r#"{"a":1}"#);
    assert_eq!((hand.fold.counts().parts, hand.fold.counts().late), (3, 1), "beyond sixty windows there are no parts");
}

#[test]
fn early_results_come_while_the_window_is_open() {
    let mut hand = Hand::new(&Definition { early: Some(Duration::from_secs(10)), ..minute() });
    hand.event("10:00:05", r#"{"a":1}"#);
    assert!(hand.results().is_empty());
    hand.event("10:00:10", r#"{"a":1}"#);
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":1},"n":2 r2"#]);
    hand.event("10:00:21", r#"{"a":2}"#);
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":2},"n":1 r1"#], "only what changed");
    hand.event("10:00:22", r#"{"a":2}"#);
    hand.tick("10:01:00");
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":2},"n":2 r2"#]);
    hand.tick("10:02:00");
    assert!(hand.results().is_empty());
}

#[test]
fn final_result_is_emitted_once() {
    let mut hand = Hand::new(&lateness(60, Definition { emit: Emit::Final, ..minute() }));
    hand.event("10:00:10", r#"{"a":1}"#);
    hand.event("10:01:59", r#"{"a":1}"#);
    hand.event("10:00:59", r#"{"a":1}"#);
    assert!(hand.results().is_empty());
    hand.tick("10:02:00");
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":1},"n":2 r2"#]);
}

#[test]
fn far_future_event_does_not_move_the_watermark() {
    let mut hand = Hand::new(&minute());
    hand.event("10:00:10", r#"{"a":1}"#);
    hand.received("2030-01-01T00:00:00Z", "10:00:11", r#"{"a":1}"#);
    hand.event("10:00:20", r#"{"a":1}"#);
    assert!(hand.results().is_empty());
    hand.tick("10:01:00");
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":1},"n":2 r2"#]);
    assert_eq!(hand.fold.counts().out_of_range, 1);
}

#[test]
fn slightly_future_event_waits_for_its_window() {
    let mut hand = Hand::new(&minute());
    hand.received("10:03:00", "10:00:10", r#"{"a":1}"#);
    hand.event("10:00:20", r#"{"a":2}"#);
    hand.tick("10:04:00");
    assert_eq!(hand.results().len(), 2);
    assert_eq!(hand.fold.counts().out_of_range, 0);
}

#[test]
fn event_without_time_uses_its_receive_time() {
    let mut hand = Hand::new(&minute());
    hand.fold.take(at(0, 1), None, time("10:00:30"), r#"{"a":1}"#);
    hand.fold.tick(at(0, 2), time("10:01:00"));
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":1},"n":1 r1"#]);
}

#[test]
fn an_event_from_before_1970_is_counted() {
    let mut hand = Hand::new(&minute());
    hand.fold.take(at(0, 1), Some(-1), time("10:00:30"), "{}");
    hand.fold.take(at(0, 2), Some(i64::MIN), i64::MIN, "{}");
    hand.fold.take(at(0, 3), Some(i64::MAX), i64::MAX, "{}");
    assert_eq!(hand.fold.counts().out_of_range, 3);
}

#[test]
fn idle_type_is_ended_by_ticks() {
    let mut hand = Hand::new(&minute());
    assert!(hand.fold.ticks(time("10:00:00")).is_empty(), "nothing waits");
    hand.event("10:00:10", r#"{"a":1}"#);
    assert!(hand.fold.ticks(time("10:01:05")).is_empty(), "it isn't quiet yet");
    let ticks = hand.fold.ticks(time("10:01:10"));
    assert_eq!(ticks, [(0, time("10:01:10"))]);
    hand.fold.tick(at(0, 2), ticks[0].1);
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {"/a":1},"n":1 r1"#]);
    assert!(hand.fold.ticks(time("12:00:00")).is_empty(), "nothing waits any more");
}

#[test]
fn windows_of_received_time_end_by_the_clock() {
    let mut hand = Hand::new(&Definition { time: TimeBasis::Received, ..minute() });
    hand.received("09:00:00", "10:00:10", r#"{"a":1}"#);
    assert!(hand.fold.ticks(time("10:00:59")).is_empty());
    assert_eq!(hand.fold.ticks(time("10:01:00")), [(0, time("10:01:00"))], "no test of idleness is needed");
}

#[test]
fn idle_shard_follows_the_others() {
    let mut fold = Fold::new(rules(&minute()), ORIGIN, &[0, 1, 2]);
    // Old events, read in today.
    fold.take(at(1, 1), Some(time("2015-05-17T10:05:03Z")), time("10:00:00"), r#"{"a":1}"#);
    fold.take(at(1, 2), Some(time("2015-05-17T10:06:03Z")), time("10:00:50"), r#"{"a":1}"#);
    assert!(fold.ticks(time("10:00:55")).is_empty(), "the others may yet bring something");
    let ticks = fold.ticks(time("10:01:00"));
    assert_eq!(ticks, [(0, time("2015-05-17T10:06:03Z")), (2, time("2015-05-17T10:06:03Z"))]);
    ticks.iter().for_each(|(shard, time)| fold.tick(at(*shard, 1), *time));
    assert_eq!(all(&mut fold).len(), 1);
    fold.take(at(2, 2), Some(time("2015-05-17T10:06:10Z")), time("10:01:01"), r#"{"a":1}"#);
    assert_eq!(fold.counts().late, 0);
}

#[test]
fn window_ends_after_all_shards_pass_it() {
    let mut fold = Fold::new(rules(&minute()), ORIGIN, &[0, 1]);
    fold.take(at(0, 1), Some(time("10:00:10")), time("10:00:10"), r#"{"a":1}"#);
    fold.take(at(0, 2), Some(time("10:05:00")), time("10:05:00"), r#"{"a":1}"#);
    assert!(all(&mut fold).is_empty());
    fold.take(at(1, 1), Some(time("10:00:20")), time("10:05:00"), r#"{"a":1}"#);
    fold.tick(at(1, 2), time("10:05:00"));
    let found: Vec<_> = all(&mut fold).iter().map(short).collect();
    assert_eq!(found, [r#"10:00:00-10:01:00 {"/a":1},"n":2 r2"#]);
    fold.add_shard(2);
    fold.tick(at(0, 3), time("10:10:00"));
    fold.tick(at(1, 3), time("10:10:00"));
    assert!(all(&mut fold).is_empty());
    fold.tick(at(2, 1), time("10:10:00"));
    assert_eq!(all(&mut fold).len(), 1);
}

#[test]
fn received_time_ignores_backward_clock_steps() {
    let mut hand = Hand::new(&Definition { time: TimeBasis::Received, ..minute() });
    hand.received("09:00:00", "10:00:10", r#"{"a":1}"#);
    hand.received("09:00:00", "10:01:10", r#"{"a":1}"#);
    hand.received("09:00:00", "09:00:00", r#"{"a":1}"#);
    hand.tick("09:00:00");
    hand.tick("10:02:00");
    let found = hand.results();
    assert_eq!(found, [r#"10:00:00-10:01:00 {"/a":1},"n":1 r1"#, r#"10:01:00-10:02:00 {"/a":1},"n":2 r2"#]);
    assert_eq!(hand.fold.counts().late, 0);
}

#[test]
fn forward_clock_step_ends_windows() {
    let mut hand = Hand::new(&minute());
    hand.event("10:00:10", r#"{"a":1}"#);
    hand.event("10:30:00", r#"{"a":1}"#);
    assert_eq!(hand.results().len(), 1);
    hand.event("10:00:20", r#"{"a":1}"#);
    assert_eq!(hand.fold.counts().late, 1);
    // Its own time holds an event back where only the clock of arrival is wrong.
    let mut hand = Hand::new(&minute());
    hand.received("10:00:10", "23:00:00", r#"{"a":1}"#);
    hand.received("10:00:20", "10:00:20", r#"{"a":1}"#);
    assert_eq!((hand.results().len(), hand.fold.counts().late), (0, 0));
}

#[test]
fn a_window_over_midnight_is_one() {
    let mut hand = Hand::new(&definition("7m", &[], &[("n", "count")]));
    hand.event("2026-11-21T23:59:59Z", "{}");
    hand.event("2026-11-22T00:00:01Z", "{}");
    hand.event("2026-11-22T02:00:00+01:00", "{}");
    assert_eq!(hand.results(), ["23:59:00-00:06:00 {},\"n\":2 r2"]);
    let mut hand = Hand::new(&definition("1day", &[], &[("n", "count")]));
    hand.event("2026-11-21T23:59:59Z", "{}");
    hand.event("2026-11-22T00:00:00Z", "{}");
    hand.event("2026-11-21T23:30:00-01:00", "{}");
    hand.tick("2026-11-23T00:00:00Z");
    assert_eq!(hand.results(), ["00:00:00-00:00:00 {},\"n\":1 r1", "00:00:00-00:00:00 {},\"n\":2 r2"]);
}

#[test]
fn a_leap_second_is_the_second_before_it() {
    assert_eq!(time("2016-12-31T23:59:60Z"), time("2016-12-31T23:59:59Z"));
    let mut hand = Hand::new(&definition("1s", &[], &[("n", "count")]));
    for second in ["2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z", "2017-01-01T00:00:01Z"] {
        hand.event(second, "{}");
    }
    assert_eq!(hand.results(), ["23:59:59-00:00:00 {},\"n\":2 r2", "00:00:00-00:00:01 {},\"n\":1 r1"]);
}

#[test]
fn groups_keep_the_form_of_their_values() {
    let mut hand = Hand::new(&definition("1m", &["/a", "/b/c"], &[("n", "count")]));
    for payload in [
        r#"{"a":200,"b":{"c":"x"}}"#,
        r#"{"a":200,"b":{"c":"\u0078"}}"#,
        r#"{"a":2e2,"b":{"c":"x"}}"#,
        r#"{"a":null}"#,
        "{}",
        "[1]",
        r#"{"a":{"z": [1, "a b"]},"b":{"c":true}}"#,
    ] {
        hand.event("10:00:00", payload);
    }
    hand.tick("10:01:00");
    let mut found = hand.results();
    found.sort();
    assert_eq!(
        found,
        [
            r#"10:00:00-10:01:00 {"/a":200,"/b/c":"x"},"n":2 r2"#,
            r#"10:00:00-10:01:00 {"/a":2e2,"/b/c":"x"},"n":1 r1"#,
            r#"10:00:00-10:01:00 {"/a":null,"/b/c":null},"n":3 r3"#,
            r#"10:00:00-10:01:00 {"/a":{"z":[1,"a b"]},"/b/c":true},"n":1 r1"#,
        ]
    );
}

#[test]
fn measures_skip_unusable_values() {
    let measures = [
        ("n", "count"),
        ("sum", "sum:/v"),
        ("v", "count:/v"),
        ("max", "max:/v"),
        ("mean", "mean:/w"),
        ("top", "top(2):/w"),
    ];
    let mut hand = Hand::new(&definition("1m", &[], &measures));
    for payload in [r#"{"v":5}"#, r#"{"v":"6"}"#, r#"{"v":null}"#, "{}", r#"{"v":1e999}"#, r#"{"v":2.5}"#] {
        hand.event("10:00:00", payload);
    }
    hand.event("10:00:01", &format!(r#"{{"w":"{}"}}"#, "x".repeat(1_100)));
    hand.tick("10:01:00");
    assert_eq!(hand.results(), [r#"10:00:00-10:01:00 {},"n":7,"sum":7.5,"v":4,"max":5,"mean":null,"top":[] r7"#]);
    assert_eq!(hand.fold.counts().unused, 6, "two for the sum, two for the maximum, two of the long value");
}

#[test]
fn groups_without_room_count_in_the_overflow_group() {
    let mut hand = Hand::new(&Definition { memory: Some(1 << 20), ..minute() });
    for number in 0..20_000 {
        hand.event("10:00:00", &format!(r#"{{"a":{number}}}"#));
    }
    hand.event("10:00:01", &format!(r#"{{"a":"{}"}}"#, "x".repeat(2_000)));
    let budget = hand.fold.rules().window_bytes();
    assert!(hand.fold.memory_bytes() < budget + 4_096, "{} of {budget}", hand.fold.memory_bytes());
    assert!(hand.fold.memory_bytes() > budget / 2);
    hand.tick("10:01:00");
    let found = hand.results();
    let overflow: Vec<_> = found.iter().filter(|result| result.contains("null,\"overflow\":true")).collect();
    assert_eq!(overflow.len(), 1);
    assert_eq!(
        overflow[0].split("\"n\":").nth(1).unwrap(),
        format!("{} r{}", 20_002 - found.len(), 20_002 - found.len())
    );
}

#[test]
fn evicted_group_is_withdrawn() {
    let mut hand = Hand::new(&lateness(600, Definition { memory: Some(1 << 20), ..minute() }));
    for number in 0..100 {
        hand.event("10:00:00", &format!(r#"{{"a":{number}}}"#));
    }
    hand.event("10:01:00", "{}");
    let mut store = Store::default();
    store.put(all(&mut hand.fold));
    for number in 100..20_000 {
        hand.event("10:00:00", &format!(r#"{{"a":{number}}}"#));
    }
    let mut again = Fold::restore(hand.fold.rules().clone(), &hand.fold.save()).unwrap();
    let changed = all(&mut hand.fold);
    assert_eq!(all(&mut again), changed);
    store.put(changed);
    let gone = store.0.values().filter(|(_, payload)| payload.contains("\"withdrawn\":true")).count();
    assert!(gone > 0 && gone <= 100, "{gone}");
    let events: u64 = store.payloads().iter().map(|payload| count_of(payload)).sum();
    assert_eq!(events, 20_000, "each event is in one group that holds");
}

fn count_of(payload: &str) -> u64 {
    serde_json::from_str::<serde_json::Value>(payload).unwrap()["n"].as_u64().unwrap()
}

#[test]
fn sessions_end_after_a_gap() {
    let mut hand = Hand::new(&definition("session 1m", &["/a"], &[("n", "count")]));
    hand.event("10:00:00", r#"{"a":1}"#);
    hand.event("10:00:59.999999", r#"{"a":1}"#);
    hand.event("10:01:30", r#"{"a":2}"#);
    hand.event("10:01:59.999999", r#"{"a":1}"#);
    assert_eq!(hand.results(), [r#"10:00:00-10:01:59.999999 {"/a":1},"n":2 r2"#], "exactly a gap is another session");
    hand.tick("10:30:00");
    let found = hand.results();
    assert_eq!(
        found,
        [r#"10:01:30-10:02:30 {"/a":2},"n":1 r1"#, r#"10:01:59.999999-10:02:59.999999 {"/a":1},"n":1 r1"#]
    );
    assert_eq!(hand.fold.groups(), 0);
}

#[test]
fn a_late_event_joins_two_sessions() {
    let mut hand = Hand::new(&lateness(120, definition("session 1m", &[], &[("n", "count"), ("first", "first:/v")])));
    for (time, value) in [("10:00:00", 1), ("10:01:40", 3), ("10:00:50", 2)] {
        hand.event(time, &format!(r#"{{"v":{value}}}"#));
    }
    assert_eq!(hand.fold.groups(), 1);
    hand.event("10:04:40", "{}");
    assert_eq!(hand.results(), ["10:00:00-10:02:40 {},\"n\":3,\"first\":1 r3"]);
    hand.event("10:02:30", "{}");
    assert_eq!(hand.fold.counts().late, 1);
}

#[test]
fn sessions_stay_within_the_memory() {
    let mut hand =
        Hand::new(&Definition { memory: Some(1 << 20), ..definition("session 1m", &["/a"], &[("n", "count")]) });
    for number in 0..20_000 {
        hand.event("10:00:00", &format!(r#"{{"a":{number}}}"#));
    }
    assert!(hand.fold.memory_bytes() < 2 << 20, "{}", hand.fold.memory_bytes());
    hand.tick("10:01:00");
    let events: u64 = all(&mut hand.fold).iter().map(|result| count_of(&result.payload)).sum();
    assert_eq!(events, 20_000);
    assert!(hand.fold.counts().overflowed > 0);
}

#[test]
fn known_event_is_skipped() {
    let mut hand = Hand::new(&minute());
    hand.event("10:00:00", "{}");
    hand.fold.take(at(0, 1), None, time("10:00:00"), "{}");
    hand.fold.pass(at(0, 5));
    hand.fold.take(at(0, 4), None, time("10:00:00"), "{}");
    hand.fold.tick(at(0, 5), time("12:00:00"));
    assert_eq!(hand.fold.counts().events, 1);
    assert_eq!(hand.fold.positions().collect::<Vec<_>>(), [at(0, 5)]);
    assert!(hand.results().is_empty());
}

#[test]
fn restart_continues_after_the_last_result() {
    let definition = lateness(60, minute());
    let mut hand = Hand::new(&definition);
    for group in 0..10 {
        hand.event("10:00:00", &format!(r#"{{"a":{group}}}"#));
    }
    hand.event("10:01:00", r#"{"a":0}"#);
    let given: Vec<_> = hand.fold.results(3).iter().map(short).collect();
    // One of them changes after the place where the results are.
    let group = given[0].split("\"/a\":").nth(1).unwrap().split('}').next().unwrap();
    hand.event("10:00:30", &format!(r#"{{"a":{group}}}"#));
    let mut again = Fold::restore(rules(&definition), &hand.fold.save()).unwrap();
    let rest = all(&mut hand.fold);
    assert_eq!(rest.len(), 8);
    assert!(short(&rest[7]).ends_with("\"n\":2 r2"), "what changed comes last");
    assert_eq!(all(&mut again), rest);
}

#[test]
fn state_of_another_definition_is_rejected() {
    let (one, other) = (rules(&minute()), rules(&definition("2m", &[], &[("n", "count")])));
    let saved = Fold::new(one.clone(), ORIGIN, &[0]).save();
    assert!(Fold::restore(one.clone(), &saved).is_ok());
    assert_eq!(Fold::restore(other, &saved).err(), Some(InvalidState::OtherRules));
    let mut later = saved.clone();
    later[0] = 9;
    assert_eq!(Fold::restore(one.clone(), &later).err(), Some(InvalidState::OtherForm(9)));
    for cut in 9..saved.len() {
        assert!(matches!(Fold::restore(one.clone(), &saved[..cut]).err(), Some(InvalidState::Damaged(_))), "{cut}");
    }
}

#[test]
fn results_of_two_origins_are_merged() {
    let measures = [
        ("n", "count"),
        ("sum", "sum:/v"),
        ("least", "min:/v"),
        ("first", "first:/v"),
        ("kinds", "distinct:/v"),
        ("half", "p50:/v"),
        ("top", "top(1):/v"),
        ("rate", "rate"),
    ];
    let definition = Definition { state: true, ..definition("1m", &["/a"], &measures) };
    let rules: AggregateRules = rules(&definition);
    let of = |origin: u8, numbers: std::ops::Range<u64>| {
        let mut fold = Fold::new(rules.clone(), Origin([origin; 16]), &[0]);
        for number in numbers {
            let payload = format!(r#"{{"a":"x","v":{}}}"#, number % 70);
            fold.take(at(0, number + 1), Some(time("10:00:00") + number.cast_signed()), time("10:00:30"), &payload);
        }
        fold.tick(at(0, 1_000_000), time("10:01:00"));
        all(&mut fold).remove(0).payload
    };
    let (one, other, both) = (of(1, 0..300), of(2, 300..1_000), of(3, 0..1_000));
    let merged = merge(&rules, &[&one, &other]).unwrap();
    let without_origin = |payload: &str| payload.split(",\"origin").next().unwrap().to_owned();
    let until_state = |payload: &str| payload.split(",\"state\"").next().unwrap().to_owned();
    assert_eq!(until_state(&without_origin(&merged)), until_state(&without_origin(&both)));
    assert_eq!(merge(&rules, &[&other, &one]).unwrap(), merged);
    assert!(merged.contains(&format!(
        "\"origins\":[\"{}\",\"{}\"],\"revision\":1000}}",
        "01".repeat(16),
        "02".repeat(16)
    )));
    assert!(merge(&rules, &[]).is_err() && merge(&rules, &["{}"]).is_err());
    assert!(merge(&rules, &[&one, &other.replace("2026-11-21T10", "2026-11-21T11")]).is_err());
}
