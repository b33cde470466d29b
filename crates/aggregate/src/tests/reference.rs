//! Folds against an independent computation: a straight loop over all events, with maps and sets that hold everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// An event of the random sequences.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) shard: u16,
    pub(super) time: i64,
    pub(super) received: i64,
    pub(super) group: u8,
    pub(super) value: i32,
    pub(super) is_tick: bool,
}

impl Event {
    pub(super) fn payload(&self) -> String {
        let value = if self.value % 3 == 0 { format!("{}.5", self.value) } else { self.value.to_string() };
        let wide = "w".repeat(12 * self.value.unsigned_abs() as usize);
        format!(r#"{{"g":{},"v":{value},"s":"s{}","w":"{wide}"}}"#, self.group, self.value)
    }

    pub(super) fn feed(&self, fold: &mut Fold, sequence: u64) {
        let position = at(self.shard, sequence);
        if self.is_tick {
            fold.tick(position, self.received);
        } else {
            fold.take(position, Some(self.time), self.received, &self.payload());
        }
    }
}

/// Events of up to three shards around the same time, some late, some ahead.
pub(super) fn events(most: usize) -> impl Strategy<Value = Vec<Event>> {
    let event = (0_u16..3, -90_i64..20, 0_u8..5, -60_i32..60, 0_u8..12);
    prop::collection::vec(event, 0..most).prop_map(|drawn| {
        let mut now = time("10:00:00");
        let made = drawn.into_iter().map(|(shard, skew, group, value, kind)| {
            now += 4 * SECOND;
            // Most are nearly on time.
            let skew = if kind < 8 { skew / 10 } else { skew };
            Event { shard, time: now + skew * SECOND, received: now, group, value, is_tick: kind == 7 && value > 20 }
        });
        made.collect()
    })
}

/// Everything of each group.
#[derive(Debug, Default)]
struct Kept {
    integers: i128,
    halves: i128,
    has_doubles: bool,
    values: Vec<f64>,
    texts: BTreeMap<String, u64>,
    by_time: BTreeSet<(i64, u16, usize, String)>,
}

const MEASURES: [(&str, &str); 10] = [
    ("n", "count"),
    ("sum", "sum:/v"),
    ("min", "min:/v"),
    ("max", "max:/v"),
    ("mean", "mean:/v"),
    ("first", "first:/s"),
    ("last", "last:/s"),
    ("distinct", "distinct:/s"),
    ("half", "p50:/v"),
    ("top", "top(3):/s"),
];

/// All windows by the documented rule: an event counts unless its shard had passed the window's end by the lateness
/// before.
fn computed(events: &[Event], size: i64, hop: i64, lateness: i64) -> BTreeMap<(i64, u8), Kept> {
    let mut watermarks: BTreeMap<u16, i64> = BTreeMap::new();
    let mut windows: BTreeMap<(i64, u8), Kept> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let before = watermarks.get(&event.shard).copied().unwrap_or(i64::MIN / 2);
        let moved = if event.is_tick { event.received } else { event.time.min(event.received) };
        watermarks.insert(event.shard, before.max(moved));
        if event.is_tick {
            continue;
        }
        let first = time("09:00:00") / hop * hop;
        for start in (0..3_000).map(|step| first + step * hop) {
            if start <= event.time && event.time < start + size && before - lateness < start + size {
                let kept = windows.entry((start, event.group)).or_default();
                let value: f64 = if event.value % 3 == 0 {
                    format!("{}.5", event.value).parse().unwrap()
                } else {
                    event.value.into()
                };
                kept.has_doubles |= event.value % 3 == 0;
                #[allow(clippy::cast_possible_truncation, reason = "halves of small numbers")]
                let halves = (value * 2.0) as i128;
                kept.halves += halves;
                kept.integers += i128::from(event.value);
                kept.values.push(value);
                *kept.texts.entry(format!("\"s{}\"", event.value)).or_default() += 1;
                kept.by_time.insert((event.time, event.shard, number, format!("s{}", event.value)));
            }
        }
    }
    windows
}

fn check(payload: &serde_json::Value, mut kept: Kept) {
    let count = kept.values.len();
    assert_eq!(payload["n"], count);
    if kept.has_doubles {
        assert_eq!(payload["sum"].as_f64().unwrap(), kept.halves as f64 / 2.0);
    } else {
        assert_eq!(payload["sum"].as_i64().map(i128::from), Some(kept.integers));
    }
    assert!((payload["mean"].as_f64().unwrap() - kept.halves as f64 / 2.0 / count as f64).abs() < 1e-9);
    kept.values.sort_by(f64::total_cmp);
    assert_eq!(payload["min"].as_f64(), kept.values.first().copied());
    assert_eq!(payload["max"].as_f64(), kept.values.last().copied());
    let (half, exact) = (payload["half"].as_f64().unwrap(), kept.values[(count - 1) / 2]);
    assert!((half - exact).abs() <= exact.abs() / 128.9, "{half} for {exact}");
    assert!(kept.values[0] <= half && half <= kept.values[count - 1], "{half} in {:?}", kept.values);
    assert_eq!(payload["first"].as_str(), kept.by_time.first().map(|(.., text)| text.as_str()));
    assert_eq!(payload["last"].as_str(), kept.by_time.last().map(|(.., text)| text.as_str()));
    assert!(payload["distinct"].as_u64().unwrap().abs_diff(kept.texts.len() as u64) <= 1);
    let mut top: Vec<_> = kept.texts.into_iter().collect();
    top.sort_by_key(|(text, count)| (std::cmp::Reverse(*count), text.clone()));
    let found = payload["top"].as_array().unwrap();
    assert_eq!(found.len(), top.len().min(3));
    for (found, (text, count)) in found.iter().zip(top) {
        assert_eq!((found["value"].to_string(), found["count"].as_u64()), (text, Some(count)));
    }
}

proptest! {
    #[test]
    fn windows_match_a_straight_loop(events in events(120), hops in 1_i64..4, lateness in 0_i64..40) {
        let (hop, lateness) = (10 * SECOND, lateness * SECOND);
        let window = format!("{}s every 10s", 10 * hops);
        let definition = Definition {
            lateness: Some(Duration::from_micros(lateness.unsigned_abs())),
            ..definition(&window, &["/g"], &MEASURES)
        };
        let mut fold = Fold::new(rules(&definition), ORIGIN, &[0, 1, 2]);
        let mut store = Store::default();
        for (number, event) in events.iter().enumerate() {
            event.feed(&mut fold, number as u64 + 1);
            store.put(all(&mut fold));
        }
        for shard in 0..3 {
            fold.tick(at(shard, u64::MAX), time("23:00:00"));
        }
        store.put(all(&mut fold));
        prop_assert_eq!(fold.groups(), 0, "all windows are over");

        let mut expected = computed(&events, hops * hop, hop, lateness);
        for payload in store.payloads() {
            let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
            let start = rfc3339::parse(payload["window"]["start"].as_str().unwrap()).unwrap();
            let group = u8::try_from(payload["group"]["/g"].as_u64().unwrap()).unwrap();
            let kept = expected.remove(&(start, group));
            prop_assert!(kept.is_some(), "{} {} isn't expected", start, group);
            check(&payload, kept.unwrap());
        }
        prop_assert!(expected.is_empty(), "missing: {:?}", expected.keys());
    }

    #[test]
    fn sessions_match_a_straight_loop(events in events(120), gap in 3_i64..30, lateness in 0_i64..40) {
        let (gap, lateness) = (gap * SECOND, lateness * SECOND);
        let definition = Definition {
            lateness: Some(Duration::from_micros(lateness.unsigned_abs())),
            ..definition(&format!("session {}s", gap / SECOND), &["/g"], &[("n", "count"), ("sum", "sum:/v")])
        };
        let mut fold = Fold::new(rules(&definition), ORIGIN, &[0, 1, 2]);
        let mut found = Vec::new();
        for (number, event) in events.iter().enumerate() {
            event.feed(&mut fold, number as u64 + 1);
            found.extend(all(&mut fold));
        }
        (0..3).for_each(|shard| fold.tick(at(shard, u64::MAX), time("23:00:00")));
        found.extend(all(&mut fold));

        let mut watermarks: BTreeMap<u16, i64> = BTreeMap::new();
        let mut times: BTreeMap<u8, Vec<i64>> = BTreeMap::new();
        for event in &events {
            let before = watermarks.get(&event.shard).copied().unwrap_or(i64::MIN / 2);
            if !event.is_tick && event.time >= before - lateness {
                times.entry(event.group).or_default().push(event.time);
            }
            let moved = if event.is_tick { event.received } else { event.time.min(event.received) };
            watermarks.insert(event.shard, before.max(moved));
        }
        let mut expected = BTreeMap::new();
        for (group, mut times) in times {
            times.sort_unstable();
            for session in times.chunk_by(|one, next| next - one < gap) {
                expected.insert((session[0], group), (session[session.len() - 1] + gap, session.len()));
            }
        }
        for result in &found {
            let payload: serde_json::Value = serde_json::from_str(&result.payload).unwrap();
            let start = rfc3339::parse(payload["window"]["start"].as_str().unwrap()).unwrap();
            let group = u8::try_from(payload["group"]["/g"].as_u64().unwrap()).unwrap();
            let count = usize::try_from(payload["n"].as_u64().unwrap()).unwrap();
            prop_assert_eq!(expected.remove(&(start, group)), Some((result.time, count)));
        }
        prop_assert!(expected.is_empty(), "missing: {:?}", expected.keys());
    }
}
