//! One case: the files of its folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::Configuration;
use crate::trial::{Around, Bench, End, Refused};
use crate::try_command::type_of;

/// What says that a folder is a case.
pub(super) const CASE_FILE: &str = "case.toml";
const INPUT: &str = "input.ndjson";
const EXPECTED: &str = "expected.ndjson";
const REFUSED: &str = "refused.ndjson";
const FILTERED: &str = "filtered.ndjson";
/// The time at which the events of a case are received, unless it says another one.
const RECEIVED: &str = "2026-01-01T00:00:00Z";

/// Why a case can't be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum CaseError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// What is said of the case is wrong.
    #[error("{path}: {message}")]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

/// `case.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    r#type: String,
    received: Option<String>,
    client: Option<IpAddr>,
    #[serde(default)]
    source: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// What comes out of a case, or should: texts of a line for each event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    stored: String,
    refused: String,
    filtered: String,
}

impl Output {
    /// The texts with the names of their files.
    pub(super) fn files(&self) -> [(&'static str, &str); 3] {
        [(EXPECTED, &self.stored), (REFUSED, &self.refused), (FILTERED, &self.filtered)]
    }
}

/// One case.
#[derive(Debug)]
pub(super) struct Case {
    folder: PathBuf,
    around: Around,
    input: String,
    pub(super) expected: Output,
}

/// A line of `refused.ndjson` and of `filtered.ndjson`.
#[derive(Serialize)]
struct Line<T> {
    line: usize,
    #[serde(flatten)]
    what: T,
}

#[derive(Serialize)]
struct Step {
    step: usize,
    operation: &'static str,
}

impl Case {
    /// Reads the files of a case. Those that say what is expected may be missing: then nothing is.
    ///
    /// # Errors
    /// One of them can't be read, or says something wrong.
    pub(super) fn read(folder: &Path) -> Result<Self, CaseError> {
        let path = folder.join(CASE_FILE);
        let wrong = |message: String| CaseError::Wrong { path: path.clone(), message };
        let about: About = toml::from_str(&read(&path)?).map_err(|error| wrong(error.to_string()))?;
        let received = about.received.as_deref().unwrap_or(RECEIVED);
        let around = Around {
            event_type: about.r#type,
            received_at: event::rfc3339::parse(received).map_err(|why| wrong(format!("`received`: {why}")))?,
            client: about.client,
            source: about.source,
            key: String::new(),
            headers: about.headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect(),
        };
        let optional = |name: &str| match read(&folder.join(name)) {
            Err(CaseError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            other => other,
        };
        let expected =
            Output { stored: optional(EXPECTED)?, refused: optional(REFUSED)?, filtered: optional(FILTERED)? };
        Ok(Self { folder: folder.to_owned(), around, input: read(&folder.join(INPUT))?, expected })
    }

    /// Takes each line of the input through the steps of its type.
    ///
    /// # Errors
    /// There is no such type.
    pub(super) fn run(&self, configuration: &Configuration) -> Result<Output, CaseError> {
        let config = type_of(configuration, &self.around.event_type).ok_or_else(|| CaseError::Wrong {
            path: self.folder.join(CASE_FILE),
            message: format!("the configuration has no [types.{}]", self.around.event_type),
        })?;
        let (mut bench, mut output) = (Bench::new(config), Output::default());
        for (number, line) in (1..).zip(self.input.lines()) {
            if !line.trim().is_empty() {
                output.add(number, bench.run(line.as_bytes(), &self.around).end);
            }
        }
        Ok(output)
    }

    /// Writes what came out as what is expected. A file of which nothing is expected is taken away.
    ///
    /// # Errors
    /// That can't be.
    pub(super) fn write(&self, output: &Output) -> Result<(), CaseError> {
        for (name, text) in output.files() {
            let path = self.folder.join(name);
            let result = if text.is_empty() && path.exists() {
                fs::remove_file(&path)
            } else if text.is_empty() {
                Ok(())
            } else {
                fs::write(&path, text)
            };
            result.map_err(|source| CaseError::File { path, source })?;
        }
        Ok(())
    }
}

impl Output {
    fn add(&mut self, line: usize, end: End) {
        let End { stored, filtered, refused } = end;
        stored.iter().for_each(|payload| push(&mut self.stored, payload));
        for by in filtered {
            let what = Step { step: by.step, operation: by.operation };
            push(&mut self.filtered, &written(&Line { line, what }));
        }
        if let Some(what) = refused {
            push(&mut self.refused, &written::<Line<Refused>>(&Line { line, what }));
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

fn read(path: &Path) -> Result<String, CaseError> {
    fs::read_to_string(path).map_err(|source| CaseError::File { path: path.to_owned(), source })
}
