//! The screen of `forebay top`: what a user needs first is at the top, and long lists are at the end.

use std::fmt::Write;

use admin_api::health::HostJson;
use admin_api::overview::{OverviewJson, SinkRateJson, TotalsJson, TypeRateJson};
use text::escape_control;

use crate::figures::{age, size};
use crate::table::{Column, Table, shortened};

/// The screen in a terminal of this width. No line is wider.
pub(super) fn screen(overview: &OverviewJson, terminal: Option<usize>, not_live: Option<&str>) -> String {
    let OverviewJson { version, role, instance, at, ready, reason, .. } = overview;
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a text can't fail.
        let _ = writeln!(text, "{name:<10}{}", escape_control(value));
    };
    let time = at.get(11..19).unwrap_or(at);
    let state = if *ready { "ready" } else { "NOT READY" };
    row("forebay", &format!("{version}, {role} on {instance}, {state}, {time} UTC"));
    if let Some(reason) = reason {
        row("", reason);
    }
    if let Some(why) = not_live {
        row("NOT LIVE", why);
    }
    row("events", &events(&overview.totals, role));
    row("latency", &latency(&overview.totals));
    row("host", &host(&overview.host));
    for (at, finding) in overview.findings.iter().enumerate() {
        row(if at == 0 { "slow" } else { "" }, &finding.text);
    }
    let _ = write!(text, "\n{}", sinks(&overview.sinks, terminal));
    if !overview.types.is_empty() {
        let _ = write!(text, "\n{}", types(&overview.types, terminal));
    }
    if overview.types_more > 0 {
        let _ = writeln!(text, "and {} more types", overview.types_more);
    }
    // A table keeps its numbers, and a line that wraps can't be redrawn.
    let Some(width) = terminal else { return text };
    text.lines().map(|line| shortened(line, width) + "\n").collect()
}

fn events(totals: &TotalsJson, role: &str) -> String {
    let TotalsJson { accepted, accepted_per_s, bytes_per_s, refused_per_min, events_a_commit, .. } = totals;
    let counted = if role == "writer" { "stored" } else { "accepted" };
    let bytes = bytes_per_s.map_or_else(String::new, |bytes| format!(", {}/s", size(whole(bytes))));
    let commit = events_a_commit.map_or_else(String::new, |events| format!(", {events:.0} a commit"));
    format!("{accepted} {counted}, {accepted_per_s:.0}/s{bytes}{commit}; {refused_per_min:.0} rejected a minute")
}

fn latency(totals: &TotalsJson) -> String {
    let parts = [("post", totals.post_p99_ms), ("fdatasync", totals.fsync_p99_ms)];
    let parts: Vec<String> =
        parts.into_iter().filter_map(|(name, time)| Some(format!("{name} {} ms", milliseconds(time?)))).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") + " (99 of 100)" }
}

fn host(host: &HostJson) -> String {
    let HostJson { cpu, cpu_limit, throttled, rss_bytes, memory_limit, disk_free_bytes } = host;
    let limit = |text: Option<String>| text.map_or_else(String::new, |limit| format!(" of {limit}"));
    let parts = [
        cpu.map(|cpu| format!("{cpu:.2}{} CPUs", limit(cpu_limit.map(|limit| limit.to_string())))),
        throttled.filter(|share| *share > 0.0).map(|share| format!("throttled {:.0} %", share * 100.0)),
        rss_bytes.map(|bytes| format!("{}{} memory", size(bytes), limit(memory_limit.map(size)))),
        disk_free_bytes.map(|bytes| format!("{} of disk free", size(bytes))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn sinks(sinks: &[SinkRateJson], terminal: Option<usize>) -> String {
    if sinks.is_empty() {
        return "no sinks\n".to_owned();
    }
    let has_backlog = sinks.iter().any(|sink| sink.pending.is_some());
    let backlog = ["PENDING", "OLDEST", "DRAINS", "DEAD"].map(Column::number);
    let first = [
        Column::text("SINK"),
        Column::text("KIND"),
        Column::text("STATE"),
        Column::number("STORED/S"),
        Column::number("P99 MS"),
    ];
    let columns = first.into_iter().chain(backlog.into_iter().filter(|_| has_backlog)).chain([Column::note("NOTE")]);
    let mut table = Table::new(columns.collect::<Vec<_>>());
    for sink in sinks {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![
            sink.sink.clone(),
            or_dash(sink.kind.clone()),
            sink.state.clone(),
            format!("{:.0}", sink.stored_per_s),
            or_dash(sink.batch_p99_ms.map(milliseconds)),
        ];
        if has_backlog {
            cells.extend([
                or_dash(sink.pending.map(|pending| pending.to_string())),
                or_dash(sink.oldest_s.map(age)),
                or_dash(sink.drains_in_s.map(age)),
                or_dash(sink.dead.map(|dead| dead.to_string())),
            ]);
        }
        let via = sink.server.as_ref().map(|server| format!("via {server}"));
        let notes: Vec<String> = sink.reason.iter().cloned().chain(via).collect();
        cells.push(notes.join("; "));
        table.add(cells);
    }
    table.text(terminal)
}

fn types(types: &[TypeRateJson], terminal: Option<usize>) -> String {
    let columns =
        [Column::text("TYPE"), Column::number("ACCEPTED/S"), Column::number("REJECTED/MIN"), Column::note("NOTE")];
    let mut table = Table::new(columns);
    for listed in types {
        let note = listed.aggregate_of.as_ref().map_or_else(String::new, |of| format!("results of {of}"));
        let (accepted, refused) = (listed.accepted_per_s, listed.refused_per_min);
        table.add(vec![listed.r#type.clone(), format!("{accepted:.0}"), format!("{refused:.0}"), note]);
    }
    table.text(terminal)
}

/// With a decimal if it is short.
fn milliseconds(time: f64) -> String {
    if time < 10.0 { format!("{time:.1}") } else { format!("{time:.0}") }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are not negative and far below 2⁶³")]
const fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    fn overview() -> OverviewJson {
        let search = SinkRateJson {
            sink: "search".into(),
            kind: Some("elasticsearch".into()),
            state: "waiting".into(),
            reason: Some("Elasticsearch http://10.0.0.7:9200: connection refused".into()),
            pending: Some(37_412),
            oldest_s: Some(269),
            dead: Some(0),
            ..SinkRateJson::default()
        };
        let local = SinkRateJson {
            sink: "local".into(),
            kind: Some("sqlite".into()),
            state: "active".into(),
            stored_per_s: 812.4,
            batch_p99_ms: Some(6.31),
            pending: Some(120),
            oldest_s: Some(0),
            drains_in_s: Some(3),
            dead: Some(2),
            ..SinkRateJson::default()
        };
        let of_type = |name: &str, accepted_per_s, aggregate_of: Option<&str>| TypeRateJson {
            r#type: name.into(),
            accepted_per_s,
            refused_per_min: 24.0,
            aggregate_of: aggregate_of.map(str::to_owned),
        };
        OverviewJson {
            at: "2026-11-26T10:04:31.000000Z".into(),
            instance: "gateway-1".into(),
            role: "serve".into(),
            version: "0.1.0".into(),
            ready: true,
            totals: TotalsJson {
                accepted: 18_257_220,
                accepted_per_s: 879.2,
                bytes_per_s: Some(1_140_221.0),
                refused_per_min: 24.0,
                post_p99_ms: Some(8.4),
                fsync_p99_ms: Some(1.63),
                events_a_commit: Some(43.2),
            },
            types: vec![of_type("access", 812.0, None), of_type("access.hits", 0.4, Some("access"))],
            sinks: vec![local, search],
            host: HostJson {
                cpu: Some(0.5),
                cpu_limit: Some(0.5),
                throttled: Some(0.38),
                rss_bytes: Some(71 << 20),
                memory_limit: Some(256 << 20),
                disk_free_bytes: Some(41 << 30),
            },
            ..OverviewJson::default()
        }
    }

    #[test]
    fn page_shows_the_printed_screen() {
        let text = screen(&overview(), Some(100), None);
        let page = include_str!("../../../../docs/guides/watch.md");
        assert!(page.contains(&format!("```text\n{text}```\n")), "docs/guides/watch.md lacks:\n{text}");
    }

    #[test]
    fn lines_fit_and_are_escaped() {
        let mut overview = overview();
        overview.sinks[1].reason = Some(format!("{} \u{1b}[31m", "long ".repeat(40)));
        overview.instance = "\u{1b}]0;x\u{7}".into();
        let text = screen(&overview, Some(60), Some("connection refused"));
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("\nNOT LIVE  connection refused\n"), "{text}");
    }

    #[test]
    fn writer_shows_no_backlog() {
        let sink = SinkRateJson { sink: "local".into(), state: "unused".into(), ..SinkRateJson::default() };
        let writer = OverviewJson { role: "writer".into(), sinks: vec![sink], ..OverviewJson::default() };
        let text = screen(&writer, None, None);
        assert!(
            text.contains("\nSINK   KIND  STATE   STORED/S  P99 MS  NOTE\nlocal  -     unused         0       -\n"),
            "{text}"
        );
        assert!(text.contains("events    0 stored, 0/s; 0 rejected a minute\nlatency   -\n"), "{text}");
    }
}
