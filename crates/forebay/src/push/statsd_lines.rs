//! Metrics as lines of StatsD. A counter is its increase since the push before, a gauge its value, and a histogram two counters. Labels are
//! parts of the name, since the protocol has none.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::metrics::exposition::{Buckets, Kind, Labels, MetricSink, Number};

/// Bytes of a datagram: what an Ethernet frame carries over IPv6, with some room for tunnels.
const DATAGRAM_BYTES_MAX: usize = 1_432;

/// The counters of the push before, by a hash of their names.
#[derive(Debug)]
pub(super) enum Known {
    /// There was no push before.
    Nothing,
    /// Their values.
    Values(HashMap<u64, Number>),
}

/// Incomplete datagrams.
pub(super) struct Lines {
    prefix: String,
    before: Known,
    now: HashMap<u64, Number>,
    family: (&'static str, Kind),
    line: String,
    datagrams: Vec<Vec<u8>>,
}

impl Lines {
    /// None yet. Counters are compared with those that are known.
    pub(super) fn new(prefix: &str, before: Known) -> Self {
        let (prefix, now, family) = (prefix.to_owned(), HashMap::new(), ("", Kind::Gauge));
        Self { prefix, before, now, family, line: String::new(), datagrams: Vec::new() }
    }

    /// The datagrams, and what the next push must know.
    pub(super) fn finish(self) -> (Vec<Vec<u8>>, Known) {
        (self.datagrams, Known::Values(self.now))
    }

    /// Begins a line with the name of a series.
    fn begin(&mut self, suffix: &str, labels: Labels<'_>) {
        self.line.clear();
        if !self.prefix.is_empty() {
            self.line.extend([&*self.prefix, "."]);
        }
        self.line.extend([self.family.0, suffix]);
        for (name, value) in labels {
            self.line.extend([".", name, "."]);
            let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '-';
            self.line.extend(value.chars().map(|character| if is_plain(character) { character } else { '_' }));
        }
    }

    /// Adds a counter, if it has grown.
    fn increase(&mut self, suffix: &str, labels: Labels<'_>, value: Number) {
        self.begin(suffix, labels);
        let mut hasher = DefaultHasher::new();
        self.line.hash(&mut hasher);
        let key = hasher.finish();
        self.now.insert(key, value);
        let Known::Values(before) = &self.before else { return };
        // A series that is new began at 0.
        let before = before.get(&key).copied();
        let increase = match (value, before) {
            (value, None) => value,
            (Number::Count(now), Some(Number::Count(before))) => Number::Count(now.saturating_sub(before)),
            (Number::Float(now), Some(Number::Float(before))) => Number::Float(now - before),
            _ => return,
        };
        self.end(increase, 'c');
    }

    /// Ends the line. A gauge below 0 would be a difference to the one before, and Forebay has none.
    fn end(&mut self, number: Number, kind: char) {
        let written = match number {
            Number::Count(0) if kind == 'c' => return,
            Number::Count(count) => write!(self.line, ":{count}|{kind}"),
            Number::Float(value) if value.is_finite() && (value > 0.0 || kind == 'g' && value == 0.0) => {
                write!(self.line, ":{value}|{kind}")
            }
            Number::Float(_) => return,
        };
        if written.is_err() || self.line.len() > DATAGRAM_BYTES_MAX {
            return;
        }
        let is_room = |last: &Vec<u8>| last.len() + 1 + self.line.len() <= DATAGRAM_BYTES_MAX;
        match self.datagrams.last_mut().filter(|last| is_room(last)) {
            Some(last) => {
                last.push(b'\n');
                last.extend_from_slice(self.line.as_bytes());
            }
            None => {
                let mut datagram = Vec::with_capacity(DATAGRAM_BYTES_MAX);
                datagram.extend_from_slice(self.line.as_bytes());
                self.datagrams.push(datagram);
            }
        }
    }
}

impl MetricSink for Lines {
    fn family(&mut self, name: &'static str, _help: &str, kind: Kind) {
        self.family = (name, kind);
    }

    fn number(&mut self, labels: Labels<'_>, number: Number) {
        if self.family.1 == Kind::Counter {
            return self.increase("", labels, number);
        }
        self.begin("", labels);
        self.end(number, 'g');
    }

    fn buckets(&mut self, labels: Labels<'_>, Buckets { counts, sum, .. }: Buckets<'_>) {
        self.increase("_count", labels, Number::Count(counts.iter().sum()));
        self.increase("_sum", labels, Number::Float(sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::exposition::Exposition;

    /// The lines of a push, and what the next one knows.
    fn pushed(prefix: &str, known: Known, collect: impl FnOnce(&mut Exposition)) -> (Vec<String>, Known) {
        let mut lines = Lines::new(prefix, known);
        collect(&mut lines);
        let (datagrams, known) = lines.finish();
        let texts = datagrams.into_iter().map(|datagram| String::from_utf8(datagram).unwrap());
        (texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect(), known)
    }

    #[test]
    fn counters_are_increases_and_gauges_are_values() {
        let collect = |count, seconds, level| {
            move |metrics: &mut Exposition| {
                metrics.counter("forebay_a_total", "", |series| series.count(&[("type", "a.b/c")], count));
                metrics.counter("process_cpu_seconds_total", "", |series| series.value(&[], seconds));
                metrics.level("forebay_b", "", level);
                metrics.histogram("forebay_c_seconds", "", |series| series.buckets(&[], &[1.0], &[count, 1], 0.25));
            }
        };
        let (_, known) = pushed("", Known::Nothing, collect(1_000, 2.0, 5));
        let (lines, known) = pushed("", known, collect(1_003, 2.5, 0));
        let expected = ["forebay_a_total.type.a_b_c:3|c", "process_cpu_seconds_total:0.5|c", "forebay_b:0|g"];
        assert_eq!(lines, [&expected[..], &["forebay_c_seconds_count:3|c"]].concat());
        // Nothing has happened, or a count fell: no counter is sent.
        assert_eq!(pushed("", known, collect(1_000, 2.5, 7)).0, ["forebay_b:7|g"]);
    }

    #[test]
    fn new_series_counts_from_zero_and_names_have_the_prefix() {
        let none = |_: &mut Exposition| {};
        let (_, known) = pushed("prod", Known::Nothing, none);
        let (lines, _) = pushed("prod", known, |metrics| metrics.count("forebay_a_total", "", 4));
        assert_eq!(lines, ["prod.forebay_a_total:4|c"]);
    }

    #[test]
    fn datagrams_are_full_and_never_larger_than_a_frame() {
        let mut lines = Lines::new("", Known::Values(HashMap::new()));
        lines.family("forebay_a", "", Kind::Gauge);
        let long = "x".repeat(DATAGRAM_BYTES_MAX);
        lines.number(&[("a", &long)], Number::Count(1));
        (0..200).for_each(|number| lines.number(&[("n", &format!("{number:04}"))], Number::Count(1)));
        let (datagrams, _) = lines.finish();
        let line = "forebay_a.n.0000:1|g\n".len();
        let sizes: Vec<_> = datagrams.iter().map(Vec::len).collect();
        let full = (DATAGRAM_BYTES_MAX + 1) / line;
        assert_eq!(sizes, [full * line - 1, full * line - 1, (200 - 2 * full) * line - 1]);
    }
}
