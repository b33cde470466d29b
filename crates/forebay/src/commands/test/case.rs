//! One case: the files of its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use config::{Configuration, TypeConfig};
use event::TypeName;
use gateway::{DryRunOutcome, DryRunRejection, RequestContext};
use serde::{Deserialize, Serialize};
use settings::files;

use super::folding::Folding;
use crate::commands::try_event::place;
use crate::dry_run::{DryRunner, type_of};
use cli::errors::at;

/// The file that marks a folder as a case.
pub(super) const CASE_FILE: &str = "case.toml";
const INPUT: &str = "input.ndjson";
/// Events, each after the time at which it is received.
const TIMED: &str = "input.timed";
const EXPECTED: &str = "expected.ndjson";
const REFUSED: &str = "refused.ndjson";
const FILTERED: &str = "filtered.ndjson";
/// The prefix and the suffix of an aggregate's name in the name of its results file.
const RESULTS: (&str, &str) = ("results.", ".ndjson");
/// The time at which the events of a case are received, unless it says another one.
const RECEIVED: &str = "2026-01-01T00:00:00Z";

/// `case.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    r#type: String,
    received: Option<String>,
    until: Option<String>,
    client: Option<IpAddr>,
    #[serde(default)]
    source: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// The output of a case, actual or expected: texts of a line for each event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    stored: String,
    refused: String,
    filtered: String,
    /// Results of aggregates, by their names.
    results: BTreeMap<String, String>,
}

impl Output {
    /// The names of all files that there can be of these outputs.
    pub(super) fn names(outputs: [&Self; 2]) -> Vec<String> {
        let aggregates: BTreeSet<&String> = outputs.into_iter().flat_map(|output| output.results.keys()).collect();
        let results = aggregates.into_iter().map(|name| format!("{}{name}{}", RESULTS.0, RESULTS.1));
        [EXPECTED, REFUSED, FILTERED].into_iter().map(str::to_owned).chain(results).collect()
    }

    /// The text of a file, empty if there is none.
    pub(super) fn text(&self, file: &str) -> &str {
        match file {
            EXPECTED => &self.stored,
            REFUSED => &self.refused,
            FILTERED => &self.filtered,
            _ => aggregate_of(file).and_then(|name| self.results.get(name)).map_or("", String::as_str),
        }
    }
}

/// The aggregate whose results a file has.
fn aggregate_of(file: &str) -> Option<&str> {
    file.strip_prefix(RESULTS.0)?.strip_suffix(RESULTS.1)
}

/// One case.
#[derive(Debug)]
pub(super) struct Case {
    folder: PathBuf,
    event_type: String,
    around: RequestContext,
    input: Vec<Event>,
    /// The time up to which the clock runs: without it no aggregate is evaluated.
    until: Option<i64>,
    pub(super) expected: Output,
}

/// A line of the input.
#[derive(Debug)]
struct Event {
    line: usize,
    received: i64,
    text: String,
}

/// A line of `refused.ndjson` and of `filtered.ndjson`.
#[derive(Serialize)]
struct Line<T> {
    line: usize,
    #[serde(flatten)]
    what: T,
}

/// Why an event is rejected.
#[derive(Serialize)]
struct Refused<'r> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    detail: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
}

#[derive(Serialize)]
struct Step {
    step: usize,
    operation: &'static str,
}

impl Case {
    /// Reads the files of a case. Without a file of expected output, nothing is expected there.
    ///
    /// # Errors
    /// One of them can't be read, or says something wrong.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(CASE_FILE);
        let wrong = |message: String| anyhow!("{}: {message}", path.display());
        let about: About = toml::from_str(&read(&path)?).map_err(|error| wrong(error.to_string()))?;
        let received = about.received.as_deref().unwrap_or(RECEIVED);
        let around = RequestContext {
            received_at: text::rfc3339::parse(received).map_err(|why| wrong(format!("`received`: {why}")))?,
            client: about.client,
            source: about.source,
            key: String::new(),
            headers: about.headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect(),
        };
        let time = |text: &String| text::rfc3339::parse(text).map_err(|why| wrong(format!("`until`: {why}")));
        let until = about.until.as_ref().map(time).transpose()?;
        let input = events(folder, around.received_at)?;
        if let (Some(until), Some(last)) = (until, input.iter().map(|event| event.received).max())
            && until < last
        {
            return Err(wrong("`until` is before the last event: set a later time".to_owned()));
        }
        let expected = Output {
            stored: optional(folder, EXPECTED)?.unwrap_or_default(),
            refused: optional(folder, REFUSED)?.unwrap_or_default(),
            filtered: optional(folder, FILTERED)?.unwrap_or_default(),
            results: results(folder)?,
        };
        if until.is_none() && !expected.results.is_empty() {
            let message = "the case has results and no `until`: set the time up to which the clock runs".to_owned();
            return Err(wrong(message));
        }
        Ok(Self { folder: folder.to_owned(), event_type: about.r#type, around, input, until, expected })
    }

    /// Runs each line of the input through the steps of its type, and the remaining events through its aggregates.
    ///
    /// # Errors
    /// There is no such type, or no aggregate of it that the case is about.
    pub(super) fn run(&self, configuration: &Configuration) -> anyhow::Result<Output> {
        let (name, config) =
            type_of(configuration, &self.event_type).map_err(|unknown| self.wrong(unknown.to_string()))?;
        let mut folding = self.folding(&name, config)?;
        let (mut bench, mut output) = (DryRunner::new(name, config), Output::default());
        for Event { line, received, text } in &self.input {
            let around = RequestContext { received_at: *received, ..self.around.clone() };
            let end = bench.run(text.as_bytes(), &around).rehearsed.end;
            folding.run_to(*received);
            end.taken.iter().for_each(|taken| folding.take(*received, &taken.payload));
            output.add(*line, end);
        }
        if let Some(until) = self.until {
            folding.run_to(until);
        }
        Ok(Output { results: folding.finish(), ..output })
    }

    fn folding(&self, name: &TypeName, config: &TypeConfig) -> anyhow::Result<Folding> {
        let looks = self.until.is_some();
        let folding = Folding::new(name.as_str(), config.aggregates.iter().map(|one| &one.rules).filter(|_| looks));
        if looks && folding.names().next().is_none() {
            return Err(self.wrong(format!("`until` is for aggregates, and type {name} has none: remove it")));
        }
        match self.expected.results.keys().find(|wanted| !folding.names().any(|known| known == *wanted)) {
            None => Ok(folding),
            Some(wanted) => {
                let known: Vec<&str> = folding.names().collect();
                Err(self.wrong(format!("type {name} has no aggregate `{wanted}`; it has {}", known.join(", "))))
            }
        }
    }

    fn wrong(&self, message: String) -> anyhow::Error {
        anyhow!("{}: {message}", self.folder.join(CASE_FILE).display())
    }

    /// Writes the output as the expected output. A file of which nothing is expected is removed.
    ///
    /// # Errors
    /// That can't be.
    pub(super) fn write(&self, output: &Output) -> anyhow::Result<()> {
        for name in Output::names([&self.expected, output]) {
            let (path, text) = (self.folder.join(&name), output.text(&name));
            let result = if text.is_empty() && path.exists() {
                fs::remove_file(&path)
            } else if text.is_empty() {
                Ok(())
            } else {
                fs::write(&path, text)
            };
            result.map_err(at(path))?;
        }
        Ok(())
    }
}

impl Output {
    fn add(&mut self, line: usize, end: DryRunOutcome) {
        let DryRunOutcome { taken, filtered, refused } = end;
        taken.iter().for_each(|taken| push(&mut self.stored, &taken.payload));
        for by in filtered {
            let what = Step { step: by.step, operation: by.operation };
            push(&mut self.filtered, &written(&Line { line, what }));
        }
        if let Some(refused) = &refused {
            push(&mut self.refused, &written(&Line { line, what: Refused::of(refused) }));
        }
    }
}

impl<'r> Refused<'r> {
    fn of(rejection: &'r DryRunRejection) -> Self {
        let errors = rejection.errors();
        // The list has all errors of a schema, and its message no type's name.
        let detail = errors.first().map_or_else(|| rejection.detail().to_owned(), ToString::to_string);
        Self {
            code: rejection.code(),
            pointer: rejection.pointer(),
            step: rejection.step(),
            detail,
            errors: errors.iter().map(|violation| format!("{}: {violation}", place(&violation.pointer))).collect(),
        }
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Numbers and texts can't fail to be written.
fn written<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The events of a case, one a line.
fn events(folder: &Path, received: i64) -> anyhow::Result<Vec<Event>> {
    let lines = |text: &str| -> Vec<(usize, String)> {
        let lines = (1..).zip(text.lines().map(str::to_owned));
        lines.filter(|(_, text)| !text.trim().is_empty()).collect()
    };
    let Some(timed) = optional(folder, TIMED)? else {
        let lines = lines(&read(&folder.join(INPUT))?);
        return Ok(lines.into_iter().map(|(line, text)| Event { line, received, text }).collect());
    };
    let path = folder.join(TIMED);
    if folder.join(INPUT).exists() {
        bail!("{}: the case has {INPUT} too: remove one of them", path.display());
    }
    let event = |(line, text): (usize, String)| {
        let (time, payload) = text.split_once(' ').unwrap_or((&text, ""));
        let received = text::rfc3339::parse(time)
            .map_err(|why| anyhow!("{}: line {line} must be a time, a blank and an event: {why}", path.display()))?;
        Ok(Event { line, received, text: payload.to_owned() })
    };
    lines(&timed).into_iter().map(event).collect()
}

/// The results that are expected of each aggregate.
fn results(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let file = entry.map_err(at(folder))?.file_name();
        if let Some(name) = file.to_str().and_then(aggregate_of) {
            found.insert(name.to_owned(), read(&folder.join(&file))?);
        }
    }
    Ok(found)
}

/// The text of a file that may be missing.
fn optional(folder: &Path, name: &str) -> anyhow::Result<Option<String>> {
    let path = folder.join(name);
    match files::read_text(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(at(path)),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    files::read_text(path).map_err(at(path))
}
