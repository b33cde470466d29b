//! What holds for any sequence of events: a restart changes nothing, nor does the order between shards, and nothing panics.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{Emit, Late, TimeBasis, merge};
use super::reference::{Event, events};
use super::*;

const MEASURES: [(&str, &str); 9] = [
    ("n", "count"),
    ("sum", "sum:/v"),
    ("mean", "mean:/v"),
    ("min", "min:/v"),
    ("first", "first:/s"),
    ("last", "last:/s"),
    ("distinct", "distinct:/s"),
    ("half", "p50:/v"),
    ("top", "top(3):/s"),
];

fn definitions() -> impl Strategy<Value = Definition> {
    let window = prop::sample::select(vec!["10s", "30s every 10s", "session 15s"]);
    (window, 0_u64..40, any::<[bool; 5]>()).prop_map(|(window, lateness, [parts, last, early, received, state])| {
        let is_timed = !window.starts_with("session");
        Definition {
            lateness: Some(Duration::from_secs(lateness)),
            late: if parts && is_timed { Late::Part } else { Late::Count },
            emit: if last { Emit::Final } else { Emit::Close },
            early: (early && is_timed && !last).then_some(Duration::from_secs(3)),
            time: if received { TimeBasis::Received } else { TimeBasis::Event },
            state,
            ..definition(window, &["/g", "/v", "/w"], &MEASURES)
        }
    })
}

/// Rules with room for a few groups only.
fn narrow(definition: &Definition, is_narrow: bool) -> AggregateRules {
    let mut rules = rules(definition);
    if is_narrow {
        rules.window_bytes = 3_500;
    }
    rules
}

/// Adds events from the number on, and reads up to this many results after each; returns the results.
fn run(fold: &mut Fold, events: &[Event], from: usize, most: usize) -> Vec<WindowResult> {
    let mut out = Vec::new();
    for (number, event) in events.iter().enumerate().skip(from) {
        event.feed(fold, number as u64 + 1);
        out.extend(fold.results(most));
    }
    out
}

fn finish(fold: &mut Fold) -> Vec<WindowResult> {
    (0..3).for_each(|shard| fold.tick(at(shard, u64::MAX), time("23:00:00")));
    all(fold)
}

proptest! {
    #[test]
    fn a_restart_changes_no_byte(
        events in events(100), definition in definitions(), cut in 0_usize..100, most in 0_usize..4, is_narrow: bool,
    ) {
        let rules = narrow(&definition, is_narrow);
        let cut = cut.min(events.len());
        let mut whole = Fold::new(rules.clone(), ORIGIN, &[0, 1, 2]);
        run(&mut whole, &events[..cut], 0, most);
        let saved = whole.save();
        let rest = run(&mut whole, &events, cut, most);
        let last = finish(&mut whole);

        let mut again = Fold::restore(rules.clone(), &saved).unwrap();
        prop_assert_eq!(again.save(), saved);
        // If it begins too early, it skips the events that it has.
        let early = cut.saturating_sub(5);
        let repeated = run(&mut again, &events[..cut], early, 0);
        prop_assert!(repeated.is_empty());
        prop_assert_eq!(run(&mut again, &events, cut, most), rest);
        prop_assert_eq!(finish(&mut again), last);
        prop_assert_eq!(again.counts(), whole.counts());
        prop_assert_eq!(again.memory_bytes(), whole.memory_bytes());
        prop_assert_eq!(again.save(), whole.save());
    }

    #[test]
    fn shard_order_does_not_change_results(
        events in events(100), definition in definitions(), order in prop::collection::vec(0_u16..3, 100), most in 1_usize..4,
        is_narrow: bool,
    ) {
        // With sessions, memory that runs short is the one thing that depends on the order.
        let rules = narrow(&definition, is_narrow && !definition.window.starts_with("session"));
        let numbered: Vec<(u64, &Event)> = events.iter().enumerate().map(|(number, event)| (number as u64 + 1, event)).collect();
        let mut queues: Vec<Vec<_>> = (0..3).map(|shard| {
            numbered.iter().rev().filter(|(_, event)| event.shard == shard).copied().collect()
        }).collect();
        let mut shuffled = Vec::new();
        for shard in order.into_iter().chain(0..3) {
            shuffled.extend(queues[usize::from(shard)].pop());
        }
        queues.into_iter().for_each(|queue| shuffled.extend(queue.into_iter().rev()));
        prop_assert_eq!(shuffled.len(), numbered.len());
        let results = |events: &[(u64, &Event)]| {
            let (mut fold, mut store) = (Fold::new(rules.clone(), ORIGIN, &[0, 1, 2]), Store::default());
            for (sequence, event) in events {
                event.feed(&mut fold, *sequence);
                store.put(fold.results(most));
            }
            store.put(finish(&mut fold));
            let counts = fold.counts();
            (store, counts.late, counts.parts, counts.events)
        };
        let (one, other) = (results(&numbered), results(&shuffled));
        // Results that were never emitted need no withdrawal: compare what remains.
        prop_assert_eq!(one.0.payloads(), other.0.payloads());
        prop_assert_eq!((one.1, one.2, one.3), (other.1, other.2, other.3));
    }

    #[test]
    fn merged_results_are_those_of_one_origin(events in events(60), split in prop::collection::vec(any::<bool>(), 60)) {
        let definition = Definition { state: true, ..definition("1h", &["/g"], &MEASURES) };
        let rules = rules(&definition);
        let of = |origin: u8, side: Option<bool>| {
            let mut fold = Fold::new(rules.clone(), Origin([origin; 16]), &[0, 1, 2]);
            for (number, event) in events.iter().enumerate().filter(|(number, _)| side.is_none_or(|side| split[*number] == side)) {
                fold.take(at(event.shard, number as u64 + 1), Some(event.time.max(time("10:00:00"))), event.received, &event.payload());
            }
            finish(&mut fold)
        };
        let (all, parts) = (of(1, None), [of(2, Some(false)), of(3, Some(true))]);
        for whole in all {
            let group = whole.payload.split("\"group\":").nth(1).unwrap().split('}').next().unwrap().to_owned();
            let mine: Vec<&str> = parts.iter().flatten().map(|part| part.payload.as_str()).filter(|part| part.contains(&group)).collect();
            let merged = merge(&rules, &mine).unwrap();
            let head = |payload: &str| payload.split(",\"state\"").next().unwrap().to_owned();
            prop_assert_eq!(head(&merged), head(&whole.payload));
        }
    }

    #[test]
    fn no_bytes_and_no_payload_panic(mut bytes: Vec<u8>, flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5), events in events(40), definition in definitions()) {
        let rules = rules(&definition);
        let _ = Fold::restore(rules.clone(), &bytes);
        let mut fold = Fold::new(rules.clone(), ORIGIN, &[0, 1, 2]);
        run(&mut fold, &events, 0, 1);
        let saved = fold.save();
        bytes.splice(0..0, saved[..25].iter().copied());
        let _ = Fold::restore(rules.clone(), &bytes);
        let mut damaged = saved;
        for (at, byte) in flips {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        let _ = Fold::restore(rules, &damaged);
    }

    #[test]
    fn no_payload_panics_and_the_memory_is_bounded(
        payloads in prop::collection::vec((json(), any::<Option<i64>>(), any::<i64>(), 0_u16..9), 0..60), definition in definitions(),
    ) {
        let rules = narrow(&definition, true);
        let mut fold = Fold::new(rules, ORIGIN, &[0, 1, 2]);
        for (sequence, (payload, event_time, received, shard)) in payloads.into_iter().enumerate() {
            json::check(payload.as_bytes()).unwrap();
            fold.take(at(shard, sequence as u64), event_time, received, &payload);
            let _ = fold.ticks(received);
            fold.results(1);
        }
        finish(&mut fold);
    }

    #[test]
    fn no_definition_panics(window in ".{0,20}", pointers in prop::collection::vec(".{0,10}|/.{0,10}", 0..4), measures in prop::collection::vec((".{0,8}", "[a-z0-9.()]{0,12}:?.{0,10}"), 0..5)) {
        let definition = Definition { window, group_by: pointers, measures, ..Definition::default() };
        let _ = AggregateRules::new(TypeName::new("a").unwrap(), &definition);
    }
}

/// JSON of any kind, with the members that the measures read.
fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i128>().prop_map(|value| value.to_string()),
        "-?[1-9][0-9]{0,60}(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,5})?",
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    scalar.prop_recursive(4, 20, 4, |inner| {
        let member = (prop::sample::select(vec!["g", "v", "s", "x"]), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|elements| format!("[ {} ]", elements.join(" ,"))),
            prop::collection::vec(member, 0..4).prop_map(|members| {
                let members: Vec<_> =
                    members.into_iter().map(|(name, value)| format!("\"{name}\" : {value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}
