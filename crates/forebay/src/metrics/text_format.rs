//! Metrics as text: the classic format of Prometheus, version 0.0.4.
//!
//! Metrics are in the order in which they are added. Names follow the conventions that `promtool check metrics`
//! checks: base units (`_seconds`, `_bytes`) at the end, and `_total` after them for counters only.

use std::fmt::Write;

use metrics::{BUCKET_BOUNDS, HistogramSnapshot, SizeSnapshot};

/// The media type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Names of labels with their values.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

/// An incomplete text of metrics.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
    names: Vec<&'static str>,
}

impl Exposition {
    /// An empty text.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a number that only grows; `name` ends in `_total`. `add` adds its series, each with other labels.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str, add: impl FnOnce(&mut Series<'_>)) {
        debug_assert!(name.ends_with("_total"), "a counter's name ends in _total: {name}");
        self.family(name, help, "counter");
        add(&mut Series { text: &mut self.text, name });
    }

    /// Adds a gauge.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, add: impl FnOnce(&mut Series<'_>)) {
        self.family(name, help, "gauge");
        add(&mut Series { text: &mut self.text, name });
    }

    /// Adds a number that only grows and has no labels.
    pub(crate) fn count(&mut self, name: &'static str, help: &str, count: u64) {
        self.counter(name, help, |series| series.count(&[], count));
    }

    /// Adds a gauge without labels.
    pub(crate) fn level(&mut self, name: &'static str, help: &str, level: u64) {
        self.gauge(name, help, |series| series.count(&[], level));
    }

    /// Adds a distribution.
    pub(crate) fn histogram(&mut self, name: &'static str, help: &str, add: impl FnOnce(&mut HistogramSeries<'_>)) {
        self.family(name, help, "histogram");
        add(&mut HistogramSeries { text: &mut self.text, name });
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn family(&mut self, name: &'static str, help: &str, kind: &str) {
        debug_assert!(!self.names.contains(&name), "a metric is added once: {name}");
        debug_assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        self.names.push(name);
        self.text.extend(["# HELP ", name, " "]);
        push_escaped(&mut self.text, help, false);
        self.text.extend(["\n# TYPE ", name, " ", kind, "\n"]);
    }
}

/// The series of a counter or a gauge.
#[derive(Debug)]
pub(crate) struct Series<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Series<'_> {
    /// Adds a series with a number of any kind.
    pub(crate) fn value(&mut self, labels: Labels<'_>, value: f64) {
        push_name(self.text, self.name, "", labels, None);
        push_number(self.text, value);
    }

    /// Adds a series with a count, digit for digit.
    pub(crate) fn count(&mut self, labels: Labels<'_>, count: u64) {
        push_name(self.text, self.name, "", labels, None);
        push_count(self.text, count);
    }
}

/// The series of a histogram.
#[derive(Debug)]
pub(crate) struct HistogramSeries<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl HistogramSeries<'_> {
    /// Adds a distribution of durations, in seconds.
    pub(crate) fn durations(&mut self, labels: Labels<'_>, snapshot: &HistogramSnapshot) {
        let bounds = BUCKET_BOUNDS.map(seconds);
        self.buckets(labels, &bounds, &snapshot.buckets, seconds(snapshot.nanoseconds));
    }

    /// Adds a distribution of sizes.
    pub(crate) fn sizes(&mut self, labels: Labels<'_>, snapshot: &SizeSnapshot) {
        self.buckets(labels, &snapshot.bounds.map(float), &snapshot.buckets, float(snapshot.sum));
    }

    /// Adds a series of buckets: their upper bounds, ascending; how many values each has alone, with one
    /// more for those beyond all bounds; and the sum of the values.
    pub(crate) fn buckets(&mut self, labels: Labels<'_>, bounds: &[f64], counts: &[u64], sum: f64) {
        debug_assert_eq!(bounds.len() + 1, counts.len(), "the last bucket has no bound");
        let mut so_far = 0;
        for (bound, count) in bounds.iter().chain([&f64::INFINITY]).zip(counts) {
            so_far += count;
            push_name(self.text, self.name, "_bucket", labels, Some(*bound));
            push_count(self.text, so_far);
        }
        push_name(self.text, self.name, "_sum", labels, None);
        push_number(self.text, sum);
        push_name(self.text, self.name, "_count", labels, None);
        push_count(self.text, so_far);
    }
}

/// Sizes and counts are far below 2⁵³, where a float is still exact.
#[expect(clippy::cast_precision_loss, reason = "figures for users; exact below 2⁵³")]
pub(super) const fn float(value: u64) -> f64 {
    value as f64
}

/// Divided, as 1e-9 is not exact: multiplied by it, 9 ms would read 0.009000000000000001.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn push_name(text: &mut String, name: &str, suffix: &str, labels: Labels<'_>, bound: Option<f64>) {
    text.extend([name, suffix]);
    let mut separator = '{';
    for (label, value) in labels {
        text.push(separator);
        text.extend([label, "=\""]);
        push_escaped(text, value, true);
        text.push('"');
        separator = ',';
    }
    if let Some(bound) = bound {
        text.push(separator);
        text.push_str("le=\"");
        push_float(text, bound);
        text.push('"');
        separator = ',';
    }
    if separator == ',' {
        text.push('}');
    }
    text.push(' ');
}

fn push_number(text: &mut String, value: f64) {
    push_float(text, value);
    text.push('\n');
}

fn push_count(text: &mut String, count: u64) {
    writeln!(text, "{count}").expect("a String takes everything");
}

fn push_float(text: &mut String, value: f64) {
    if value.is_infinite() {
        text.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
    } else {
        // Both call it `NaN`.
        write!(text, "{value}").expect("a String takes everything");
    }
}

/// In the value of a label quotes are escaped, in a help text they are not.
fn push_escaped(text: &mut String, raw: &str, quotes: bool) {
    for character in raw.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quotes => text.push_str("\\\""),
            _ => text.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use metrics::Histogram;

    use super::*;

    fn example() -> String {
        let mut exposition = Exposition::new();
        exposition.counter("forebay_events_accepted_total", "Events that were journaled.", |series| {
            series.count(&[("type", "access")], u64::MAX);
            series.value(&[("type", "quote \" slash \\ line\nend é")], 0.5);
        });
        exposition.gauge("forebay_backlog_age_seconds", "A \"help\" with a \\ and\na second line.", |series| {
            series.value(&[], f64::NAN);
        });
        exposition.histogram("forebay_commit_size_bytes", "Bytes of a commit.", |series| {
            series.buckets(&[("shard", "0")], &[0.5, 1e9], &[1, 2, 3], 12.25);
            series.buckets(&[], &[1.0], &[0, 0], 0.0);
        });
        exposition.finish()
    }

    #[test]
    fn text_has_the_documented_format() {
        let expected = r#"# HELP forebay_events_accepted_total Events that were journaled.
# TYPE forebay_events_accepted_total counter
forebay_events_accepted_total{type="access"} 18446744073709551615
forebay_events_accepted_total{type="quote \" slash \\ line\nend é"} 0.5
# HELP forebay_backlog_age_seconds A "help" with a \\ and\na second line.
# TYPE forebay_backlog_age_seconds gauge
forebay_backlog_age_seconds NaN
# HELP forebay_commit_size_bytes Bytes of a commit.
# TYPE forebay_commit_size_bytes histogram
forebay_commit_size_bytes_bucket{shard="0",le="0.5"} 1
forebay_commit_size_bytes_bucket{shard="0",le="1000000000"} 3
forebay_commit_size_bytes_bucket{shard="0",le="+Inf"} 6
forebay_commit_size_bytes_sum{shard="0"} 12.25
forebay_commit_size_bytes_count{shard="0"} 6
forebay_commit_size_bytes_bucket{le="1"} 0
forebay_commit_size_bytes_bucket{le="+Inf"} 0
forebay_commit_size_bytes_sum 0
forebay_commit_size_bytes_count 0
"#;
        assert_eq!(example(), expected);
    }

    /// The messages of promtool about a text; `None` if it isn't installed.
    fn promtool(text: &str) -> Option<Result<(), String>> {
        let mut command = Command::new("promtool");
        command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            testkit::skipped::report("promtool is not installed");
            return None;
        };
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let clean = output.status.success() && said.is_empty();
        Some(if clean { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned()) })
    }

    #[test]
    fn promtool_finds_nothing() {
        let durations = Histogram::default();
        durations.record(Duration::from_millis(9));
        let mut exposition = Exposition::new();
        exposition.histogram("forebay_request_seconds", "Time to answer a request.", |series| {
            series.durations(&[("shard", "0")], &durations.snapshot());
        });
        let text = exposition.finish();
        assert!(text.contains("forebay_request_seconds_bucket{shard=\"0\",le=\"0.00005\"} 0\n"), "{text}");
        assert!(text.contains("forebay_request_seconds_bucket{shard=\"0\",le=\"26.2144\"} 1\n"), "{text}");
        assert!(text.contains("forebay_request_seconds_sum{shard=\"0\"} 0.009\n"), "{text}");
        if let Some(said) = promtool(&(example() + &text)) {
            assert_eq!(said, Ok(()));
            assert!(promtool("forebay_total{le=\"1\" 5\n").unwrap().is_err(), "promtool checks what it is given");
        }
    }
}
