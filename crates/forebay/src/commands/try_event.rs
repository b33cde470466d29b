//! `forebay try`: one payload through the schema and the steps of its type, with what each step does and how long it takes.

use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::bail;
use eventlog::unix_microseconds;
use gateway::{AcceptedEvent, DryRunOutcome, DryRunTrace, RequestContext};
use limits::EVENT_BYTES_MAX;
use settings::Environment;
use transform::{Did, Filtered, Traced};

use crate::configuration_report::valid;
use crate::dry_run::{self, DryRunJson, DryRunReport, DryRunner, config_of, type_of, without_config};
use cli::EXIT_CONFIGURATION;
use cli::TryFlags;
use cli::errors::unreadable;
use cli::input;
use cli::output::print;

/// The exit code if the payload would be rejected.
const EXIT_REFUSED: u8 = 3;
/// The type argument that lets the configuration find the type.
const BY_CONFIGURATION: &str = "-";

/// Tries a payload and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(flags: &TryFlags, environment: &Environment) -> anyhow::Result<u8> {
    flags.common.warn_of_overlooked();
    let Some(configuration) = valid(flags.common.load(environment)) else { return Ok(EXIT_CONFIGURATION) };
    let named = flags.event_type.as_deref().filter(|name| *name != BY_CONFIGURATION);
    let named = match named.map(|name| (name, type_of(&configuration, name))) {
        Some((name, Err(_))) if Path::new(name).is_file() => bail!(
            "`{name}` is a file, but the type comes first: write `forebay try TYPE {name}`, or `forebay try - {name}` to find the type by the \
             configuration"
        ),
        Some((_, found)) => Some(found?),
        None => None,
    };
    let (bytes, around) = (payload(flags)?, around(flags));
    let found = match named {
        Some((name, _)) => Ok(name),
        None => dry_run::finder(&configuration).of_payload(&bytes, &around),
    };
    let report = match found {
        Ok(name) => {
            let config = config_of(&configuration, &name).ok_or_else(|| without_config(&name))?;
            DryRunner::new(name, config).run(&bytes, &around)
        }
        Err(rejection) => DryRunReport::without_type(rejection),
    };
    let text =
        if flags.json { serde_json::to_string(&DryRunJson::of(&report))? + "\n" } else { as_text(&bytes, &report) };
    print(|output| output.write_all(text.as_bytes()))?;
    Ok(if report.rehearsed.end.refused.is_some() { EXIT_REFUSED } else { 0 })
}

fn payload(flags: &TryFlags) -> anyhow::Result<Vec<u8>> {
    let read = || {
        let mut bytes = Vec::new();
        input::open(&flags.file)?.take(EVENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        let too_large =
            || io::Error::other(format!("an event has at most {EVENT_BYTES_MAX} bytes: use a smaller payload"));
        if bytes.len() > EVENT_BYTES_MAX { Err(too_large()) } else { Ok(bytes) }
    };
    read().map_err(unreadable(&flags.file))
}

fn around(flags: &TryFlags) -> RequestContext {
    RequestContext {
        received_at: flags.received.unwrap_or_else(unix_microseconds),
        client: Some(flags.client),
        source: flags.source.clone(),
        key: flags.key.clone(),
        headers: flags.header.clone(),
    }
}

fn as_text(received: &[u8], report: &DryRunReport<'_>) -> String {
    let DryRunTrace { schema, steps, more_steps, end, .. } = &report.rehearsed;
    let received = String::from_utf8_lossy(received);
    let mut text = format!("received  {}\n", received.trim());
    if let Some(event_type) = &report.event_type {
        text += &format!("type      {event_type}\n");
    }
    if let Some(took) = schema {
        let is_refused = end.refused.as_ref().is_some_and(|refused| refused.code() == "schema");
        let found = if is_refused { "refused" } else { "ok" };
        text += &format!("schema    {found}, {took:.1?}\n");
    }
    let (mut before, mut part_before) = (received.trim(), &Vec::new());
    for step in steps {
        let Traced { step: number, operation, part, did, took, payload } = step;
        if part != part_before {
            // Each part starts from the result of its first step.
            (before, part_before) = ("", part);
        }
        let part: String = part.iter().map(|part| format!(", event {}", part + 1)).collect();
        text += &format!("step {number}    {operation}{part}: {}, {took:.1?}\n", result_of(did));
        if let Some(payload) = payload.as_deref().filter(|payload| *payload != before) {
            text += &format!("          {payload}\n");
            before = payload;
        }
    }
    if *more_steps > 0 {
        text += &format!("          and {more_steps} more\n");
    }
    text + &end_as_text(end, report)
}

fn end_as_text(end: &DryRunOutcome, report: &DryRunReport<'_>) -> String {
    let stored = |taken: &AcceptedEvent| {
        let id = taken.id.map_or_else(|| "a new id".to_owned(), |id| format!("the id {id}"));
        let unread = taken
            .time_unread
            .as_ref()
            .map(|why| format!("          its time cannot be read ({why}): its time of receipt is used\n"));
        let unread = unread.unwrap_or_default();
        format!("stored    {}\n          with {id}, in {}\n{unread}", taken.payload, report.routing(taken))
    };
    let mut text: String = end.taken.iter().map(stored).collect();
    for Filtered { step, operation } in &end.filtered {
        text += &format!("filtered  by step {step} ({operation})\n");
    }
    if let Some(refused) = &end.refused {
        text += &format!("refused   {}: {}\n", refused.code(), refused.detail());
        for violation in refused.errors().iter().skip(1) {
            text += &format!("          {}: {violation}\n", place(&violation.pointer));
        }
    }
    text
}

/// A JSON pointer in readable form.
pub(crate) fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the value" } else { pointer }
}

fn result_of(did: &Did) -> String {
    match did {
        Did::Done => "done".to_owned(),
        Did::NotMet => "its condition is false".to_owned(),
        Did::Skipped(why) => format!("skipped, because {why}"),
        Did::Refused(why) => format!("rejected, because {why}"),
        Did::Filtered => "filtered".to_owned(),
        Did::Exploded(count) => format!("became {}", text::counted(*count, "event")),
    }
}
