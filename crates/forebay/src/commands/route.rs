//! `forebay route …`: lists routes, gives up what those hold that are out of the configuration, and lets stopped lanes go on. A running server is
//! asked over its admin port; where none runs, the data directory is read and written.

use std::io::{self, BufWriter, Write};

use anyhow::bail;
use delivery::{DeadFilter, SavedLedger};
use event::counted;
use serde::Serialize;

use crate::admin::DeadQuery;
use crate::admin_json::route::{AcceptedJson, GivenUpJson, LastDeadJson, RouteJson, RoutesJson};
use crate::cli::{RouteAccept, RouteCommand, RouteDrop, RouteList};
use crate::commands::dead::{DeadLetterSource, on_one_line};
use crate::commands::output::{Output, print};

/// Runs the command and gives the process's exit code.
///
/// # Errors
/// The message says what stands in the way.
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
            .ask(&list.at, ("GET", "/api/routes"), DeadQuery::default(), &[])?
            .unwrap_or(RoutesJson { routes: Vec::new() }),
    };
    let print_one = if list.json { json::<RouteJson> } else { line };
    print(|output| routes.routes.iter().try_for_each(|route| print_one(output, route)))?;
    Ok(0)
}

fn run_drop(drop: &RouteDrop) -> anyhow::Result<u8> {
    let given_up = match DeadLetterSource::find(&drop.at)? {
        DeadLetterSource::Directory(directory) => {
            let mut saved = SavedLedger::load(&directory)?;
            GivenUpJson::of(saved.give_up(&drop.sink.as_str().into(), drop.type_name.as_ref())?)
        }
        DeadLetterSource::Server(server) => {
            let type_name = drop.type_name.as_ref().map(ToString::to_string);
            let filter = DeadFilter { sink: Some(drop.sink.clone()), type_name, ..DeadFilter::default() };
            let query = DeadQuery { filter, ..DeadQuery::default() };
            let given_up = server.ask(&drop.at, ("POST", "/api/routes/drop"), query, &[])?;
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
            "no Forebay is running on {}: start it, and then accept: the lane has to ask its store",
            directory.path().display()
        ),
    };
    let filter = DeadFilter { sink: Some(accept.sink.clone()), ..DeadFilter::default() };
    let query = DeadQuery { filter, again: accept.again, ..DeadQuery::default() };
    let accepted = server.ask(&accept.at, ("POST", "/api/routes/accept"), query, &[])?;
    let lanes = accepted.map_or(0, |AcceptedJson { lanes }| lanes);
    let sink = &accept.sink;
    print(|output| writeln!(output, "{sink}: what the store has is accepted for {}", counted(lanes, "stopped lane")))?;
    Ok(0)
}

fn line(output: &mut BufWriter<Output>, route: &RouteJson) -> io::Result<()> {
    let RouteJson { type_name, sink, state, reason, since, pending, stored, dead, skipped, lost, .. } = route;
    write!(output, "{type_name}  {sink}  {state}  {pending} pending, {stored} stored, {dead} dead, {skipped} skipped")?;
    if *lost > 0 {
        write!(output, ", {lost} lost")?;
    }
    if let (Some(reason), Some(since)) = (reason, since) {
        write!(output, "  since {since}: {}", on_one_line(reason))?;
    }
    if let Some(LastDeadJson { at, reason }) = &route.last_set_aside {
        write!(output, "  {} set aside, last refused {at}: {}", route.set_aside, on_one_line(reason))?;
    }
    if let Some(LastDeadJson { at, reason }) = &route.last_dead {
        write!(output, "  last dead letter {at}: {}", on_one_line(reason))?;
    }
    writeln!(output)
}

fn json<T: Serialize>(output: &mut BufWriter<Output>, value: &T) -> io::Result<()> {
    writeln!(output, "{}", serde_json::to_string(value)?)
}

fn print_given_up(output: &mut BufWriter<Output>, sink: &str, given_up: &GivenUpJson) -> io::Result<()> {
    for route in &given_up.routes {
        writeln!(output, "{} to {sink}: {} given up", route.type_name, counted(route.events, "event"))?;
    }
    if given_up.lanes > 0 {
        writeln!(
            output,
            "{sink}: delivery goes on behind what the store has lost: {}",
            counted(given_up.lanes, "lane")
        )?;
    }
    Ok(())
}
