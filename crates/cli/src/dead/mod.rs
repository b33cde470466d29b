//! `forebay dead …`: lists, shows, edits, replays and drops dead letters.
//!
//! A running server has exclusive use of the data directory, so the command asks it over its admin port. Without a server, `list` and `show`
//! read the dead letters from the directory; the rest needs a server.

mod edit;
mod print;

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use config::Role;
use dead_letters::{DeadFilter, read_dead_letters};
use eventlog::unix_microseconds;
use journal::disk::OsDisk;
use journal::{DataDirectory, DirectoryError};
use ledger::SavedLedger;
use load::{ServerConnector, ServerUrl};
use serde::de::DeserializeOwned;
use text::OperatorCommand;

use crate::admin_address;
use crate::admin_client::AdminClient;
use crate::errors::{at as failed_at, unusable};
use crate::flags::{DeadAt, DeadChoice, DeadCommand, DeadEvent, DeadLetters, DeadList};
use crate::output::{Output, print as printed};
use crate::table::terminal_width;
use admin_api::dead::{DeadLetterJson, ListJson, OutcomesJson, PlanJson};
use admin_api::paths;
use admin_api::query::DeadQuery;
pub use print::{json as letter_as_json, on_one_line};
use settings::Environment;

/// Dead letters of one event: one for each sink, unless ids were used twice.
const SHOW_MAX: u64 = 1000;
/// The exit code if dead letters stay, or there is none.
const EXIT_SOME_STAY: u8 = 1;

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(command: &DeadCommand) -> anyhow::Result<u8> {
    match command {
        DeadCommand::List(list) => run_list(list),
        DeadCommand::Show { event, output } => run_show(event, output.is_json()),
        DeadCommand::Edit { event, payload } => edit::run(event, payload.as_deref()),
        DeadCommand::Replay(letters) => act(letters, "replay", false),
        DeadCommand::Drop { letters, all } => act(letters, "drop", *all),
    }
}

/// Where the dead letters and routes are.
pub(crate) enum DeadLetterSource {
    Directory(DataDirectory),
    Server(RunningServer),
}

/// A server, and the origin of the data directory that it should have.
pub(crate) struct RunningServer {
    server: ServerConnector,
    origin: Option<String>,
}

impl DeadLetterSource {
    /// The data directory, if no server has it; else the server.
    ///
    /// # Errors
    /// There is no such directory, or it can't be used.
    pub(crate) fn find(at: &DeadAt) -> anyhow::Result<Self> {
        let path = &at.data.directory;
        if let Some(address) = &at.admin {
            return Ok(Self::Server(RunningServer { server: at.ca.server(address)?, origin: None }));
        }
        if !path.is_dir() {
            bail!(
                "there is no data directory {}; name one with --data, or a running server with --admin",
                path.display()
            );
        }
        // Creates nothing in a directory that isn't Forebay's.
        let opened = DataDirectory::look(path).map(drop).and_then(|()| DataDirectory::open(Arc::new(OsDisk), path));
        match opened {
            Ok(directory) => Ok(Self::Directory(directory)),
            Err(DirectoryError::InUse(_)) => {
                let (server, origin) = (at.ca.server(&address(at)?)?, Some(origin(path)?));
                Ok(Self::Server(RunningServer { server, origin }))
            }
            Err(error) => Err(unusable(error)),
        }
    }
}

fn environment() -> Environment {
    Environment::of(std::env::vars_os())
}

/// The admin address in the named configuration or the environment.
fn address(at: &DeadAt) -> anyhow::Result<ServerUrl> {
    let address = admin_address::find(Role::Serve, at.config.as_deref(), &environment());
    address.map_err(|reason| anyhow!("{reason}. Name the admin address of the running server with --admin."))
}

/// The id of a data directory, to detect a server of another one.
fn origin(path: &Path) -> anyhow::Result<String> {
    let origin = journal::origin_of(Arc::new(OsDisk), path).map_err(failed_at(path))?;
    Ok(origin.map(|origin| origin.to_string()).unwrap_or_default())
}

fn query(choice: &DeadChoice, limit: Option<u64>, all: bool) -> DeadQuery {
    let DeadChoice { sink, type_name, ids, since, until, reason, condition } = choice.clone();
    let filter = DeadFilter { sink, type_name, ids, since, until, reason, reason_group: None, condition };
    DeadQuery { filter, limit, all, ..DeadQuery::default() }
}

fn run_list(list: &DeadList) -> anyhow::Result<u8> {
    let found = read(&list.at, query(&list.choice, Some(list.limit), false), "")?;
    if list.output.is_json() {
        print_letters(&found, print::json)?;
    } else {
        let text = print::table(&found.letters, terminal_width(), unix_microseconds());
        printed(|output| output.write_all(text.as_bytes()))?;
    }
    if found.lost > 0 {
        tracing::warn!(
            "{} positions in the journals of dead letters are lost, with their dead letters: {} shows where",
            found.lost,
            OperatorCommand::JournalVerify
        );
    }
    if found.more {
        tracing::info!("there are more than {} dead letters: add a filter, or raise --limit", list.limit);
    }
    Ok(0)
}

fn run_show(event: &DeadEvent, json: bool) -> anyhow::Result<u8> {
    let found = read_event(event, SHOW_MAX)?;
    if found.letters.is_empty() {
        return Ok(EXIT_SOME_STAY);
    }
    print_letters(&found, if json { print::json } else { print::whole })?;
    Ok(0)
}

/// The dead letters of one event, with their payloads. Warns if there is none.
fn read_event(event: &DeadEvent, max: u64) -> anyhow::Result<ListJson> {
    let DeadEvent { at, id, sink } = event;
    let choice = DeadChoice { sink: sink.clone(), ids: Some((*id).into()), ..DeadChoice::default() };
    let found = read(at, query(&choice, Some(max), false), &format!("/{id}"))?;
    if found.letters.is_empty() {
        tracing::warn!("there is no dead letter with the id {id}: it was replayed or dropped, or the id is mistyped");
    }
    Ok(found)
}

fn print_letters(
    found: &ListJson,
    print: fn(&mut BufWriter<Output>, &DeadLetterJson) -> io::Result<()>,
) -> anyhow::Result<()> {
    printed(|output| found.letters.iter().try_for_each(|letter| print(output, letter)))
}

/// The dead letters of a query; `path` names one id if payloads are wanted.
fn read(at: &DeadAt, query: DeadQuery, path: &str) -> anyhow::Result<ListJson> {
    match DeadLetterSource::find(at)? {
        DeadLetterSource::Server(server) => {
            let found = server.ask(at, "GET", &format!("{}{path}", paths::DEAD), query, &[])?;
            Ok(found.unwrap_or(ListJson { letters: Vec::new(), more: false, lost: 0, next: None }))
        }
        DeadLetterSource::Directory(directory) => {
            let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
            let found = read_dead_letters(&directory, &query.filter, limit, !path.is_empty());
            let found = found.map_err(failed_at(directory.path().join("dead")))?;
            if let Some(sink) = query.filter.sink.filter(|_| found.letters.is_empty())
                && !SavedLedger::load(&directory)?.has_sink(&sink)
            {
                bail!("there is no sink {sink}, and no dead letter of one: check the name");
            }
            Ok(ListJson::of(&found))
        }
    }
}

fn act(letters: &DeadLetters, action: &str, all: bool) -> anyhow::Result<u8> {
    let query = query(&letters.choice, letters.limit, all);
    if letters.dry_run {
        return plan(&letters.at, action, query);
    }
    order(&letters.at, "POST", action, query, &[])
}

/// Prints how many dead letters an action would handle.
fn plan(at: &DeadAt, action: &str, query: DeadQuery) -> anyhow::Result<u8> {
    let query = DeadQuery { dry_run: true, ..query };
    let answer: Option<PlanJson> =
        running_server(at)?.ask(at, "POST", &format!("{}/{action}", paths::DEAD), query, &[])?;
    let sinks = answer.map(|plan| plan.sinks).unwrap_or_default();
    printed(|output| {
        if sinks.is_empty() {
            writeln!(output, "no dead letters match")?;
        }
        sinks.iter().try_for_each(|sink| print::planned(output, sink))
    })?;
    Ok(0)
}

fn running_server(at: &DeadAt) -> anyhow::Result<RunningServer> {
    match DeadLetterSource::find(at)? {
        DeadLetterSource::Server(server) => Ok(server),
        DeadLetterSource::Directory(directory) => bail!(
            "no Forebay is running on {}: start it to edit, replay or drop; only list and show work without it",
            directory.path().display()
        ),
    }
}

/// Has the running server replay, edit or drop dead letters, and prints the outcome.
fn order(at: &DeadAt, method: &str, path: &str, query: DeadQuery, body: &[u8]) -> anyhow::Result<u8> {
    let server = running_server(at)?;
    let answer = server.ask(at, method, &format!("{}/{path}", paths::DEAD), query, body)?;
    let Some(OutcomesJson { sinks }) = answer else {
        tracing::warn!("there is no dead letter with this id: it was replayed or dropped, or the id is mistyped");
        return Ok(EXIT_SOME_STAY);
    };
    let sinks: Vec<_> =
        sinks.into_iter().filter(|sink| method != "PUT" || sink.edited > 0 || sink.failure.is_some()).collect();
    printed(|output| sinks.iter().try_for_each(|outcome| print::outcome(output, outcome)))?;
    let some_stay = sinks.iter().any(|sink| sink.refused > 0 || sink.left > 0 || sink.failure.is_some());
    Ok(if some_stay { EXIT_SOME_STAY } else { 0 })
}

impl RunningServer {
    /// Asks the server. `None`: there is no dead letter with this id.
    ///
    /// # Errors
    /// The server can't be asked, or rejected the request.
    pub(crate) fn ask<T: DeserializeOwned>(
        self,
        at: &DeadAt,
        method: &str,
        path: &str,
        query: DeadQuery,
        body: &[u8],
    ) -> anyhow::Result<Option<T>> {
        let target = format!("{path}{}", DeadQuery { origin: self.origin, ..query }.write());
        let client = AdminClient::new(self.server, at.token.token(&environment())?);
        match client.ask(method, &target, body, None)? {
            Ok(answer) => Ok(Some(answer)),
            Err(problem) if problem.code == "letter" => Ok(None),
            Err(problem) => Err(client.refused(problem)),
        }
    }
}
