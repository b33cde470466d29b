//! The results of an aggregate: an event for each group of a window.

use event::{EventId, Origin};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use text::{hex, rfc3339};

use super::accumulator::{Accumulator, Kind};
use super::codec::Writer;
use super::group::{Group, Key};
use super::measure::Read;
use super::number::Number;
use super::rules::AggregateRules;

/// The revision of a withdrawn result: above that of any other, and exact in any JSON reader.
pub const WITHDRAWN: u64 = (1 << 53) - 1;

/// A result, to be stored instead of one with the same id and a lower revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowResult {
    /// The same for each revision: derived from aggregate, origin, window and group.
    pub id: EventId,
    /// How many events are in it, or [`WITHDRAWN`].
    pub revision: u64,
    /// The window's end: the event's time.
    pub time: i64,
    /// The event's payload, as JSON.
    pub payload: String,
}

/// The window of a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowPart {
    pub(super) start: i64,
    pub(super) end: i64,
    /// 0 for the window itself, otherwise the number of the part with late events.
    pub(super) part: u32,
}

/// The results of one emission.
pub(super) struct Emission<'r> {
    pub(super) rules: &'r AggregateRules,
    pub(super) origin: Origin,
    /// How many there may be.
    pub(super) most: usize,
    pub(super) results: Vec<WindowResult>,
}

impl Emission<'_> {
    pub(super) const fn is_full(&self) -> bool {
        self.results.len() >= self.most
    }

    /// Adds the present result of a group.
    pub(super) fn group(&mut self, place: WindowPart, key: &Key, group: &Group) {
        let mut payload = head(self.rules, place, key);
        write_measures(self.rules, key, group, (place.end - place.start) as f64 / 1e6, &mut payload);
        self.add(place, key, group.count, payload);
    }

    /// Withdraws the emitted result of a group that moved into the overflow group later.
    pub(super) fn withdrawn(&mut self, place: WindowPart, key: &Key) {
        self.add(place, key, WITHDRAWN, head(self.rules, place, key) + ",\"withdrawn\":true");
    }

    fn add(&mut self, place: WindowPart, key: &Key, revision: u64, mut payload: String) {
        let Self { rules, origin, .. } = self;
        payload.push_str(&format!(",\"origin\":\"{origin}\",\"revision\":{revision}}}"));
        self.results.push(WindowResult { id: id(rules, *origin, place, key), revision, time: place.end, payload });
    }
}

/// Each measure, and the state if it is configured.
pub(super) fn write_measures(rules: &AggregateRules, key: &Key, group: &Group, seconds: f64, payload: &mut String) {
    for named in &rules.measures {
        payload.push(',');
        payload.push_str(&Value::from(named.name.as_str()).to_string());
        payload.push(':');
        match (named.read, named.slot) {
            (Read::Quantile(of_one), Some(slot)) => double(quantile(of_one, slot, rules, group), payload),
            (read, slot) => write_measure(read, slot, group, seconds, payload),
        }
    }
    if rules.state {
        let mut out = Writer::default();
        out.raw(&rules.fingerprint.to_le_bytes());
        key.save(&mut out);
        group.save(&mut out);
        payload.push_str(",\"state\":\"");
        payload.push_str(&hex::encode(&out.into_bytes()));
        payload.push('"');
    }
}

/// The quantile, which is an estimate, between the minimum and the maximum of the same values if these are measured too.
fn quantile(of_one: f64, slot: usize, rules: &AggregateRules, group: &Group) -> Option<f64> {
    let Accumulator::Quantiles(quantiles) = group.accumulator(slot) else { return None };
    let estimate = quantiles.quantile(of_one)?;
    let extreme = |kind| match rules.slot_of_kind(slot, kind).map(|slot| group.accumulator(slot)) {
        Some(Accumulator::Least(kept) | Accumulator::Greatest(kept)) => kept.map(Number::to_double),
        _ => None,
    };
    let above = extreme(Kind::Least).map_or(estimate, |least| estimate.max(least));
    Some(extreme(Kind::Greatest).map_or(above, |greatest| above.min(greatest)))
}

/// Appends a measure's result as JSON: null if no value was usable. `seconds` is the length of the window.
fn write_measure(read: Read, slot: Option<usize>, group: &Group, seconds: f64, out: &mut String) {
    let accumulator = slot.map(|slot| group.accumulator(slot));
    match (read, accumulator) {
        (Read::Count, None) => integer(group.count, out),
        (Read::Rate, None) => double(Some(group.count as f64 / seconds), out),
        (Read::Count, Some(Accumulator::Present(count))) => integer(*count, out),
        (Read::Distinct, Some(Accumulator::Distinct(distinct))) => integer(distinct.estimate(), out),
        (Read::Rate, Some(Accumulator::Sum(sum))) => {
            double(sum.total().map(|total| total.to_double() / seconds), out);
        }
        (Read::Mean, Some(Accumulator::Sum(sum))) => double(sum.mean(), out),
        (Read::Sum, Some(Accumulator::Sum(sum))) => number(sum.total(), out),
        (_, Some(Accumulator::Least(kept) | Accumulator::Greatest(kept))) => number(*kept, out),
        (_, Some(Accumulator::Sample(_, Some(sample)))) => out.push_str(sample.value()),
        (Read::Top(most), Some(Accumulator::Top(capacity, top))) => {
            let (found, error) = top.read(most, *capacity);
            out.push('[');
            for (place, frequent) in found.iter().enumerate() {
                out.push_str(if place == 0 { "{\"value\":" } else { ",{\"value\":" });
                out.push_str(&frequent.value);
                out.push_str(",\"count\":");
                integer(frequent.count, out);
                if error > 0 {
                    out.push_str(",\"error\":");
                    integer(error, out);
                }
                out.push('}');
            }
            out.push(']');
        }
        _ => out.push_str("null"),
    }
}

fn integer(count: u64, out: &mut String) {
    number(Some(Number::Int(count.into())), out);
}

fn double(value: Option<f64>, out: &mut String) {
    number(value.map(Number::Double), out);
}

fn number(value: Option<Number>, out: &mut String) {
    match value {
        Some(number) => number.write(out),
        None => out.push_str("null"),
    }
}

/// The window and the group, without the closing brace.
fn head(rules: &AggregateRules, place: WindowPart, key: &Key) -> String {
    let (start, end) = (rfc3339::format(place.start), rfc3339::format(place.end));
    let mut payload = format!("{{\"window\":{{\"start\":\"{start}\",\"end\":\"{end}\"}},\"group\":");
    key.write(&rules.group_by, &mut payload);
    if key.is_overflow() {
        payload.push_str(",\"overflow\":true");
    }
    if place.part > 0 {
        payload.push_str(&format!(",\"part\":{}", place.part));
    }
    payload
}

/// A JSON Schema of the results of an aggregate: which members they can have.
#[must_use]
pub fn result_schema(rules: &AggregateRules) -> String {
    let scalar = || json!({"type": ["number", "string", "boolean"]});
    let own = ["origin", "overflow", "part", "revision", "withdrawn"].into_iter().chain(rules.state.then_some("state"));
    let own = own.map(|name| (name.to_owned(), scalar()));
    let window = closed(["start", "end"].map(|name| (name.to_owned(), scalar())));
    let group = closed(rules.group_by.iter().map(|pointer| (pointer.clone(), json!({}))));
    let measures = rules.measures.iter().map(|named| (named.name.clone(), measure_schema(named.read)));
    let tables = [("window".to_owned(), window), ("group".to_owned(), group)];
    closed(own.chain(tables).chain(measures)).to_string()
}

fn measure_schema(read: Read) -> Value {
    match read {
        Read::Top(_) => {
            let members = ["value", "count", "error"].map(|name| (name.to_owned(), json!({})));
            json!({"type": ["array", "null"], "items": closed(members)})
        }
        Read::Sample(_) => json!({}),
        _ => json!({"type": ["number", "null"]}),
    }
}

/// An object with these members and no others, or null.
fn closed(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    let members: Map<String, Value> = members.into_iter().collect();
    json!({"type": ["object", "null"], "properties": members, "additionalProperties": false})
}

/// A UUIDv8 that begins with the window's start, so the results of a window are adjacent in a store's index. The other
/// 74 bits are a hash: among a million groups of a window, two have the same one once in 10^10 windows.
fn id(rules: &AggregateRules, origin: Origin, place: WindowPart, key: &Key) -> EventId {
    let mut hash = Sha256::new();
    for part in [rules.name.as_str(), key.text()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update([u8::from(key.is_overflow())]);
    hash.update(origin.0);
    hash.update(place.start.to_le_bytes());
    hash.update(place.end.to_le_bytes());
    hash.update(place.part.to_le_bytes());
    let digest = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    let milliseconds = (place.start / 1_000).max(0).cast_unsigned().to_be_bytes();
    bytes[..6].copy_from_slice(&milliseconds[2..]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    EventId(bytes)
}
