//! `forebay status`: whether a running process is healthy, and its backlog, on one screen.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use config::Role;
use settings::Environment;

use crate::admin_client::AdminClient;
use crate::figures::{age, size};
use crate::flags::StatusFlags;
use crate::output::print;
use crate::route::note;
use crate::table::{Column, Table, terminal_width};
use admin_api::paths::STATUS;
use admin_api::status::{BacklogJson, SinkStatusJson, StatusJson};
use admin_api::upstream::WriterStatusJson;

/// The exit code if something needs an operator.
const EXIT_UNHEALTHY: u8 = 3;
/// Each step of a request.
const LIMIT: Duration = Duration::from_secs(10);
/// The rate is measured over so long.
const INTERVAL: Duration = Duration::from_secs(1);

/// Asks the process of the flags' role, or else of `role`, and returns the exit code.
///
/// # Errors
/// The process can't be asked, or rejects the request.
pub(crate) fn run(flags: &StatusFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    let process = AdminClient::find(&flags.at, flags.role.or(role).unwrap_or(Role::Serve), environment)?;
    let ask = || -> anyhow::Result<StatusJson> {
        process.ask("GET", STATUS, &[], Some(LIMIT))?.map_err(|problem| process.refused(problem))
    };
    let (before, begun) = (ask()?, Instant::now());
    thread::sleep(INTERVAL);
    let mut status = ask()?;
    // A restart between the two requests may lower the count.
    let more = status.events.saturating_sub(before.events);
    status.events_per_second = Some((more as f64 / begun.elapsed().as_secs_f64()).round());
    let text =
        if flags.output.is_json() { serde_json::to_string(&status)? + "\n" } else { screen(&status, terminal_width()) };
    print(|output| output.write_all(text.as_bytes()))?;
    Ok(if status.problems.is_empty() { 0 } else { EXIT_UNHEALTHY })
}

/// The screen in a terminal of this width. Only the lines of problems may be longer: instructions for an operator are never cut.
fn screen(status: &StatusJson, terminal: Option<usize>) -> String {
    let StatusJson { version, role, started, uptime_seconds, events, refused: rejected, .. } = status;
    let mut text = String::new();
    let mut row = |name: &str, value: String| text += &format!("{name:<10}{}\n", text::escape_control(&value));
    row("forebay", format!("{version}, {role}, up {} since {started}", age(*uptime_seconds)));
    if let Some(id) = &status.gateway_id {
        row("gateway", format!("id {id}"));
    }
    row("ready", status.reason.as_ref().map_or_else(|| "yes".to_owned(), |reason| format!("NO: {reason}")));
    let rate = status.events_per_second.unwrap_or_default();
    let counted = if status.journal.is_some() { "accepted" } else { "stored since the start" };
    row("events", format!("{events} {counted}, {rate:.0}/s now; {rejected} rejected since the start"));
    if let Some(journal) = &status.journal {
        row("journal", format!("{}, and {} are free on its disk", size(journal.bytes), size(journal.disk_free_bytes)));
    }
    text += &format!("\n{}\n", sinks(&status.sinks, terminal));
    if !status.writers.is_empty() {
        text += &format!("{}\n", writers(&status.writers, terminal));
    }
    let mut row = |name: &str, value: &str| text += &format!("{name:<10}{}\n", text::escape_control(value));
    if status.problems.is_empty() {
        row("result", "healthy");
    }
    for (at, problem) in status.problems.iter().enumerate() {
        row(if at == 0 { "UNHEALTHY" } else { "" }, problem);
    }
    for (at, finding) in status.findings.iter().enumerate() {
        row(if at == 0 { "slow" } else { "" }, &finding.text);
    }
    text
}

fn sinks(sinks: &[SinkStatusJson], terminal: Option<usize>) -> String {
    if sinks.is_empty() {
        return "no sinks\n".to_owned();
    }
    let has_backlog = sinks.iter().any(|sink| sink.backlog.is_some());
    let backlog = [Column::number("PENDING"), Column::number("OLDEST"), Column::number("DEAD")];
    let backlog = backlog.into_iter().filter(|_| has_backlog);
    let columns = ["SINK", "STATE"].map(Column::text).into_iter().chain(backlog).chain([Column::note("NOTE")]);
    let mut table = Table::new(columns.collect::<Vec<_>>());
    for sink in sinks {
        let of_backlog =
            sink.backlog.iter().flat_map(|BacklogJson { pending, oldest_seconds, dead_letters, .. }| {
                [pending.to_string(), oldest_seconds.map_or_else(|| "-".to_owned(), age), dead_letters.to_string()]
            });
        let cells = [sink.sink.clone(), sink.state.clone()].into_iter().chain(of_backlog);
        table.add(cells.chain([note_of(sink)]).collect::<Vec<_>>());
    }
    table.text(terminal)
}

fn writers(writers: &[WriterStatusJson], terminal: Option<usize>) -> String {
    let columns = ["UPSTREAM", "WRITER", "STATE", "LAST RESPONSE"].map(Column::text);
    let mut table = Table::new(columns.into_iter().chain([Column::note("NOTE")]).collect::<Vec<_>>());
    for writer in writers {
        let WriterStatusJson { upstream, server, state, last_success, reason, ejected_for } = writer;
        let ejected_for = ejected_for.iter().map(|ejected| format!("sink {}: {}", ejected.sink, ejected.reason));
        let notes: Vec<String> = reason.iter().cloned().chain(ejected_for).collect();
        let last = last_success.clone().unwrap_or_else(|| "-".to_owned());
        table.add(vec![upstream.clone(), server.clone(), state.clone(), last, notes.join("; ")]);
    }
    table.text(terminal)
}

fn note_of(sink: &SinkStatusJson) -> String {
    let SinkStatusJson { reason, since, backlog, .. } = sink;
    let nothing = BacklogJson::default();
    let backlog = backlog.as_ref().unwrap_or(&nothing);
    note(
        reason.as_ref(),
        since.as_ref(),
        backlog.deferred,
        backlog.last_deferred.as_ref(),
        backlog.last_dead.as_ref().filter(|_| backlog.dead_letters > 0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use admin_api::route::LastDeadJson;
    use admin_api::status::JournalJson;

    fn status() -> StatusJson {
        let sink = |name: &str, state: &str, backlog| SinkStatusJson {
            sink: name.into(),
            state: state.into(),
            backlog: Some(backlog),
            ..SinkStatusJson::default()
        };
        let last_dead = LastDeadJson {
            at: "2026-11-21T10:04:11Z".into(),
            reason: "no bad ones (the table rejects the event)".into(),
        };
        let local = BacklogJson { dead_letters: 2, last_dead: Some(last_dead), ..BacklogJson::default() };
        let behind = BacklogJson { pending: 37, oldest_seconds: Some(261), ..BacklogJson::default() };
        let search = SinkStatusJson {
            reason: Some("Elasticsearch http://10.0.0.7:9200, index events: connection refused".into()),
            since: Some("2026-11-21T10:00:02Z".into()),
            ..sink("search", "waiting", behind)
        };
        StatusJson {
            version: "0.1.0".into(),
            role: "serve".into(),
            gateway_id: Some("2651fa944d608482855fec6e00000007".into()),
            started: "2026-11-18T07:12:40Z".into(),
            uptime_seconds: 3 * 86_400 + 5,
            ready: true,
            reason: None,
            problems: search.problem().into_iter().map(|problem| problem.text).collect(),
            findings: Vec::new(),
            events: 23_514,
            events_per_second: Some(312.0),
            refused: 27,
            journal: Some(JournalJson { bytes: 64 << 20, disk_free_bytes: 41 << 30 }),
            sinks: vec![sink("local", "active", local), search],
            writers: Vec::new(),
        }
    }

    #[test]
    fn page_shows_the_printed_status() {
        let text = screen(&status(), Some(80));
        let page = include_str!("../../../docs/guides/check-health.md");
        assert!(page.contains(&format!("```text\n{text}```\n")), "docs/guides/check-health.md lacks:\n{text}");
    }

    #[test]
    fn problems_are_escaped_and_never_cut() {
        let reason = format!("{} \u{1b}[31m", "long ".repeat(40));
        let mut status = status();
        status.sinks[1].reason = Some(reason);
        status.problems =
            ["the process is not ready: the disk is full".to_owned(), status.sinks[1].problem().unwrap().text].into();
        let text = screen(&status, Some(40));
        assert!(
            text.contains("\nUNHEALTHY the process is not ready: the disk is full\n          sink search waits: long"),
            "{text}"
        );
        assert!(text.ends_with("long  \\u001b[31m\n"), "{text}");
    }

    #[test]
    fn writer_has_no_backlog() {
        let sink = SinkStatusJson { sink: "local".into(), state: "unused".into(), ..SinkStatusJson::default() };
        let text = screen(
            &StatusJson { role: "writer".into(), gateway_id: None, journal: None, sinks: vec![sink], ..status() },
            None,
        );
        assert!(text.contains("\nSINK   STATE   NOTE\nlocal  unused\n") && !text.contains("journal"), "{text}");
        assert!(text.contains("23514 stored since the start, 312/s now"), "{text}");
    }

    #[test]
    fn screen_lists_the_writers_of_a_gateway() {
        let writer = |server: &str, state: &str| WriterStatusJson {
            upstream: "back".into(),
            server: server.into(),
            state: state.into(),
            ..WriterStatusJson::default()
        };
        let dead = WriterStatusJson {
            last_success: Some("2026-11-21T10:00:02Z".into()),
            reason: Some("writer http://w2:8081: no connection within 2s".into()),
            ..writer("http://w2:8081", "ejected")
        };
        assert!(writer("http://w1:8081", "untried").problem().is_none());
        let problem = dead.problem().unwrap().text;
        assert!(
            problem.contains("http://w2:8081") && problem.contains("last response: 2026-11-21T10:00:02Z"),
            "{problem}"
        );
        let text = screen(&StatusJson { writers: vec![writer("http://w1:8081", "untried"), dead], ..status() }, None);
        let table = "UPSTREAM  WRITER          STATE    LAST RESPONSE         NOTE\n\
                     back      http://w1:8081  untried  -\n\
                     back      http://w2:8081  ejected  2026-11-21T10:00:02Z  writer http://w2:8081: no connection within 2s\n";
        assert!(text.contains(table), "{text}");
    }
}
