//! `forebay try`: one payload through the schema and the steps of its type, with what each step does and how long it takes.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use event::TypeName;
use event::limits::EVENT_BYTES_MAX;
use eventlog::unix_microseconds;
use pipeline::transform::{Did, Filtered, Traced};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::check::{EXIT_CONFIGURATION, show};
use crate::cli::TryFlags;
use crate::config::{self, Configuration, Environment, TypeConfig};
use crate::trial::{Around, Bench, End, Refused, Trial};

/// What the process exits with where the payload would be refused.
const EXIT_REFUSED: u8 = 3;

/// Why nothing can be tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TryError {
    /// The payload can't be read.
    #[error("can't read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The type isn't one of the configuration's.
    #[error("the configuration has no [types.{0}], and none for others")]
    UnknownType(String),
    /// The output can't be written.
    #[error("can't write: {0}")]
    Write(#[from] io::Error),
}

/// Tries a payload and gives the process's exit code.
///
/// # Errors
/// [`TryError`] says what stands in the way.
pub(crate) fn run(flags: &TryFlags, environment: &Environment) -> Result<u8, TryError> {
    let common = &flags.common;
    let loaded = config::load(common.config.as_deref(), environment, &common.flags(), &common.data.directory);
    let (configuration, _) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            show(&error)?;
            return Ok(EXIT_CONFIGURATION);
        }
    };
    let config =
        type_of(&configuration, &flags.event_type).ok_or_else(|| TryError::UnknownType(flags.event_type.clone()))?;
    let bytes = payload(flags)?;
    let trial = Bench::new(config).run(&bytes, &around(flags));
    let mut output = io::stdout().lock();
    if flags.json {
        writeln!(output, "{}", serde_json::to_string(&Told::of(&trial)).map_err(io::Error::from)?)?;
    } else {
        output.write_all(as_text(&bytes, &trial).as_bytes())?;
    }
    Ok(if trial.end.refused.is_some() { EXIT_REFUSED } else { 0 })
}

/// What the configuration says of a type.
pub(crate) fn type_of<'c>(configuration: &'c Configuration, name: &str) -> Option<&'c TypeConfig> {
    let name = TypeName::new(name).ok()?;
    configuration.types.get(&name).or(configuration.other_types.as_ref())
}

fn payload(flags: &TryFlags) -> Result<Vec<u8>, TryError> {
    let read = |input: &mut dyn Read| {
        let mut bytes = Vec::new();
        input.take(EVENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        let too_large = || io::Error::other(format!("an event has at most {EVENT_BYTES_MAX} bytes"));
        if bytes.len() > EVENT_BYTES_MAX { Err(too_large()) } else { Ok(bytes) }
    };
    let path = &flags.file;
    let result = if path.as_os_str() == "-" {
        read(&mut io::stdin())
    } else {
        fs::File::open(path).and_then(|mut file| read(&mut file))
    };
    result.map_err(|source| TryError::Read { path: path.clone(), source })
}

fn around(flags: &TryFlags) -> Around {
    Around {
        event_type: flags.event_type.clone(),
        received_at: flags.received.unwrap_or_else(unix_microseconds),
        client: Some(flags.client),
        source: flags.source.clone(),
        key: flags.key.clone(),
        headers: flags.header.clone(),
    }
}

fn as_text(received: &[u8], trial: &Trial) -> String {
    let received = String::from_utf8_lossy(received);
    let mut text = format!("received  {}\n", received.trim());
    if let Some(took) = trial.schema {
        let found =
            if trial.end.refused.as_ref().is_some_and(|refused| refused.code == "schema") { "refused" } else { "ok" };
        text += &format!("schema    {found}, {took:.1?}\n");
    }
    let mut before = received.trim();
    for step in &trial.steps {
        let Traced { step: number, operation, part, did, took, payload } = step;
        let part: String = part.iter().map(|part| format!(", event {}", part + 1)).collect();
        text += &format!("step {number}    {operation}{part}: {}, {took:.1?}\n", said(did));
        if payload != before {
            text += &format!("          {payload}\n");
        }
        before = payload;
    }
    text + &end_as_text(&trial.end)
}

fn end_as_text(end: &End) -> String {
    let mut text: String = end.stored.iter().map(|payload| format!("stored    {payload}\n")).collect();
    for Filtered { step, operation } in &end.filtered {
        text += &format!("filtered  by step {step} ({operation})\n");
    }
    if let Some(Refused { code, detail, errors, .. }) = &end.refused {
        text += &format!("refused   {code}: {detail}\n");
        errors.iter().skip(1).for_each(|error| text += &format!("          {error}\n"));
    }
    text
}

fn said(did: &Did) -> String {
    match did {
        Did::Done => "done".to_owned(),
        Did::NotMet => "its condition is false".to_owned(),
        Did::Skipped(why) => format!("skipped, since {why}"),
        Did::Refused(why) => format!("refused, since {why}"),
        Did::Filtered => "filtered".to_owned(),
        Did::Exploded(count) => format!("became {count} events"),
    }
}

/// A trial as JSON. Payloads stand in it byte for byte.
#[derive(Serialize)]
struct Told<'t> {
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_microseconds: Option<f64>,
    steps: Vec<ToldStep<'t>>,
    stored: Vec<Option<Box<RawValue>>>,
    filtered: Vec<ToldFiltered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'t Refused>,
}

#[derive(Serialize)]
struct ToldStep<'t> {
    step: usize,
    operation: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    part: &'t [usize],
    did: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'t str>,
    microseconds: f64,
    payload: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct ToldFiltered {
    step: usize,
    operation: &'static str,
}

impl<'t> Told<'t> {
    fn of(trial: &'t Trial) -> Self {
        let End { stored, filtered, refused } = &trial.end;
        Self {
            schema_microseconds: trial.schema.map(microseconds),
            steps: trial.steps.iter().map(ToldStep::of).collect(),
            stored: stored.iter().map(|payload| raw(payload)).collect(),
            filtered: filtered.iter().map(|by| ToldFiltered { step: by.step, operation: by.operation }).collect(),
            refused: refused.as_ref(),
        }
    }
}

impl<'t> ToldStep<'t> {
    fn of(traced: &'t Traced) -> Self {
        let Traced { step, operation, part, did, took, payload } = traced;
        let (did, detail) = match did {
            Did::Done => ("done", None),
            Did::NotMet => ("not_met", None),
            Did::Skipped(why) => ("skipped", Some(why.as_str())),
            Did::Refused(why) => ("refused", Some(why.as_str())),
            Did::Filtered => ("filtered", None),
            Did::Exploded(_) => ("exploded", None),
        };
        Self { step: *step, operation, part, did, detail, microseconds: microseconds(*took), payload: raw(payload) }
    }
}

/// What comes out of steps is JSON.
fn raw(payload: &str) -> Option<Box<RawValue>> {
    serde_json::from_str::<&RawValue>(payload).and_then(to_raw_value).ok()
}

fn microseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}
