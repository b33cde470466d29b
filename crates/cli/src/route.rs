//! `forebay route …`: lists routes, discards the backlog of removed ones, and resumes stopped lanes. If a server uses the data directory, the command
//! asks it over its admin port; otherwise it reads and writes the directory.

use std::io::{self, BufWriter, Write};

use anyhow::bail;
use dead_letters::DeadFilter;
use ledger::SavedLedger;
use serde::Serialize;
use text::counted;

use crate::dead::DeadLetterSource;
use crate::flags::{RouteAccept, RouteCommand, RouteDrop, RouteList};
use crate::output::{Output, print};
use crate::table::{Column, Table, terminal_width};
use admin_api::paths;
use admin_api::query::DeadQuery;
use admin_api::route::{AcceptedJson, GivenUpJson, LastDeadJson, RouteJson, RoutesJson};

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(command: &RouteCommand) -> anyhow::Result<u8> {
    match command {
        RouteCommand::List(list) => run_list(list),
        RouteCommand::Drop(drop) => run_drop(drop),
        RouteCommand::Accept(accept) => run_accept(accept),
    }
}

fn run_list(list: &RouteList) -> anyhow::Result<u8> {
    let routes = match DeadLetterSource::find(&list.at)? {
        DeadLetterSource::Directory(directory) => RoutesJson::of_rows(&SavedLedger::load(&directory)?.rows()),
        DeadLetterSource::Server(server) => server
            .ask(&list.at, "GET", paths::ROUTES, DeadQuery::default(), &[])?
            .unwrap_or(RoutesJson { routes: Vec::new() }),
    };
    if list.output.is_json() {
        print(|output| routes.routes.iter().try_for_each(|route| json(output, route)))?;
    } else {
        let text = table(&routes.routes, terminal_width());
        print(|output| output.write_all(text.as_bytes()))?;
    }
    Ok(0)
}

fn run_drop(drop: &RouteDrop) -> anyhow::Result<u8> {
    let given_up = match DeadLetterSource::find(&drop.at)? {
        DeadLetterSource::Directory(directory) => {
            let mut saved = SavedLedger::load(&directory)?;
            GivenUpJson::of(saved.discard(&drop.sink.as_str().into(), drop.type_name.as_ref())?)
        }
        DeadLetterSource::Server(server) => {
            let type_name = drop.type_name.as_ref().map(ToString::to_string);
            let filter = DeadFilter { sink: Some(drop.sink.clone()), type_name, ..DeadFilter::default() };
            let query = DeadQuery { filter, ..DeadQuery::default() };
            let given_up = server.ask(&drop.at, "POST", &format!("{}/drop", paths::ROUTES), query, &[])?;
            given_up.unwrap_or(GivenUpJson { routes: Vec::new(), lanes: 0 })
        }
    };
    print(|output| print_given_up(output, &drop.sink, &given_up))?;
    Ok(0)
}

fn run_accept(accept: &RouteAccept) -> anyhow::Result<u8> {
    let server = match DeadLetterSource::find(&accept.at)? {
        DeadLetterSource::Server(server) => server,
        DeadLetterSource::Directory(directory) => bail!(
            "no Forebay is running on {}: start it first, because the lane has to ask its store",
            directory.path().display()
        ),
    };
    let filter = DeadFilter { sink: Some(accept.sink.clone()), ..DeadFilter::default() };
    let query = DeadQuery { filter, resend: accept.resend, ..DeadQuery::default() };
    let accepted = server.ask(&accept.at, "POST", &format!("{}/accept", paths::ROUTES), query, &[])?;
    let lanes = accepted.map_or(0, |AcceptedJson { lanes }| lanes);
    let sink = &accept.sink;
    print(|output| writeln!(output, "{sink}: the store's cursor is accepted for {}", counted(lanes, "stopped lane")))?;
    Ok(0)
}

/// Routes as a table, in a terminal of this width.
fn table(routes: &[RouteJson], terminal: Option<usize>) -> String {
    if routes.is_empty() {
        return "no routes\n".to_owned();
    }
    let has_lost = routes.iter().any(|route| route.lost > 0);
    let texts = ["TYPE", "SINK", "STATE"].map(Column::text);
    let counts = ["PENDING", "STORED", "DEAD", "SKIPPED"].map(Column::number);
    let lost = has_lost.then(|| Column::number("LOST"));
    let mut table =
        Table::new(texts.into_iter().chain(counts).chain(lost).chain([Column::note("NOTE")]).collect::<Vec<_>>());
    for route in routes {
        let RouteJson { type_name, sink, state, pending, stored, dead, skipped, lost, .. } = route;
        let counts = [pending, stored, dead, skipped].into_iter().chain(has_lost.then_some(lost));
        let texts = [type_name, sink, state].into_iter().cloned();
        table.add(texts.chain(counts.map(ToString::to_string)).chain([note_of(route)]).collect::<Vec<_>>());
    }
    table.text(terminal)
}

fn note_of(route: &RouteJson) -> String {
    let RouteJson { reason, since, deferred, last_deferred, last_dead, .. } = route;
    note(reason.as_ref(), since.as_ref(), *deferred, last_deferred.as_ref(), last_dead.as_ref())
}

/// The problems of a route or a sink.
pub(super) fn note(
    reason: Option<&String>,
    since: Option<&String>,
    deferred: u64,
    last_deferred: Option<&LastDeadJson>,
    last_dead: Option<&LastDeadJson>,
) -> String {
    let mut notes = Vec::new();
    if let (Some(reason), Some(since)) = (reason, since) {
        notes.push(format!("{reason} (since {since})"));
    }
    if let Some(LastDeadJson { at, reason }) = last_deferred {
        notes.push(format!("{deferred} deferred: {reason} (last rejected {at})"));
    }
    if let Some(LastDeadJson { at, reason }) = last_dead {
        notes.push(format!("last dead letter: {reason} ({at})"));
    }
    notes.join("; ")
}

fn json<T: Serialize>(output: &mut BufWriter<Output>, value: &T) -> io::Result<()> {
    writeln!(output, "{}", serde_json::to_string(value)?)
}

fn print_given_up(output: &mut BufWriter<Output>, sink: &str, given_up: &GivenUpJson) -> io::Result<()> {
    for route in &given_up.routes {
        writeln!(output, "{} to {sink}: {} discarded", route.type_name, counted(route.events, "event"))?;
    }
    if given_up.lanes > 0 {
        writeln!(
            output,
            "{sink}: delivery resumes after the events that the store has lost: {}",
            counted(given_up.lanes, "lane")
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(type_name: &str, sink: &str, pending: u64, stored: u64, dead: u64) -> RouteJson {
        RouteJson {
            type_name: type_name.into(),
            sink: sink.into(),
            state: "active".into(),
            reason: None,
            since: None,
            pending,
            stored,
            dead,
            skipped: 0,
            deferred: 0,
            last_deferred: None,
            lost: 0,
            last_dead: None,
        }
    }

    fn last(reason: &str) -> Option<LastDeadJson> {
        Some(LastDeadJson { at: "2026-11-21T10:04:11Z".into(), reason: reason.into() })
    }

    #[test]
    fn page_shows_the_printed_routes() {
        let waiting = RouteJson {
            state: "waiting".into(),
            reason: Some("Elasticsearch http://10.0.0.7:9200, index events: connection refused".into()),
            since: Some("2026-11-21T10:00:02Z".into()),
            ..route("access", "search", 37, 18_169, 0)
        };
        let routes = [
            RouteJson {
                last_dead: last("no bad ones (the table rejects the event)"),
                ..route("access", "local", 0, 18_204, 2)
            },
            waiting,
            route("job", "local", 0, 5_310, 0),
        ];
        let text = table(&routes, Some(80));
        let page = include_str!("../../../docs/guides/change-routes.md");
        assert!(page.contains(&format!("```text\n{text}```\n")), "docs/guides/change-routes.md lacks:\n{text}");
    }

    #[test]
    fn note_lists_all_problems() {
        let route = RouteJson {
            lost: 3,
            deferred: 1,
            last_deferred: last("for now"),
            last_dead: last("permanent\n"),
            ..route("a", "b", 1, 2, 0)
        };
        let expected = "TYPE  SINK  STATE   PENDING  STORED  DEAD  SKIPPED  LOST  NOTE\n\
                        a     b     active        1       2     0        0     3  1 deferred: for now (last rejected \
                        2026-11-21T10:04:11Z); last dead letter: permanent\\n (2026-11-21T10:04:11Z)\n";
        assert_eq!(table(&[route], None), expected);
        assert_eq!(table(&[], None), "no routes\n");
    }
}
