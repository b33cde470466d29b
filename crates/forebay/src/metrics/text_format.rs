//! Metrics as text: the classic format of Prometheus, version 0.0.4.

use std::fmt::Write;

use super::exposition::{Buckets, Exposition, Kind, Labels, MetricSink, Number};

/// The media type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An incomplete text of metrics.
#[derive(Debug, Default)]
struct Text {
    text: String,
    names: Vec<&'static str>,
}

/// The metrics that `collect` adds, as text.
pub(crate) fn text_of(collect: impl FnOnce(&mut Exposition)) -> String {
    let mut text = Text::default();
    collect(&mut text);
    text.text
}

impl Text {
    fn name(&self) -> &'static str {
        self.names.last().copied().unwrap_or_default()
    }
}

impl MetricSink for Text {
    fn family(&mut self, name: &'static str, help: &str, kind: Kind) {
        debug_assert!(!self.names.contains(&name), "a metric is added once: {name}");
        debug_assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        self.names.push(name);
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.text.extend(["# HELP ", name, " "]);
        push_escaped(&mut self.text, help, false);
        self.text.extend(["\n# TYPE ", name, " ", kind, "\n"]);
    }

    fn number(&mut self, labels: Labels<'_>, number: Number) {
        let name = self.name();
        push_name(&mut self.text, name, "", labels, None);
        match number {
            Number::Count(count) => push_count(&mut self.text, count),
            Number::Float(value) => push_number(&mut self.text, value),
        }
    }

    fn buckets(&mut self, labels: Labels<'_>, Buckets { bounds, counts, sum }: Buckets<'_>) {
        let (name, text) = (self.name(), &mut self.text);
        let mut so_far = 0;
        for (bound, count) in bounds.iter().chain([&f64::INFINITY]).zip(counts) {
            so_far += count;
            push_name(text, name, "_bucket", labels, Some(*bound));
            push_count(text, so_far);
        }
        push_name(text, name, "_sum", labels, None);
        push_number(text, sum);
        push_name(text, name, "_count", labels, None);
        push_count(text, so_far);
    }
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
        text_of(add_example)
    }

    fn add_example(exposition: &mut Exposition) {
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
        let text = text_of(|exposition| {
            exposition.histogram("forebay_request_seconds", "Time to answer a request.", |series| {
                series.durations(&[("shard", "0")], &durations.snapshot());
            });
        });
        assert!(text.contains("forebay_request_seconds_bucket{shard=\"0\",le=\"0.00005\"} 0\n"), "{text}");
        assert!(text.contains("forebay_request_seconds_bucket{shard=\"0\",le=\"26.2144\"} 1\n"), "{text}");
        assert!(text.contains("forebay_request_seconds_sum{shard=\"0\"} 0.009\n"), "{text}");
        if let Some(said) = promtool(&(example() + &text)) {
            assert_eq!(said, Ok(()));
            assert!(promtool("forebay_total{le=\"1\" 5\n").unwrap().is_err(), "promtool checks what it is given");
        }
    }
}
