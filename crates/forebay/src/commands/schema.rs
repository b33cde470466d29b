//! `forebay schema …`: makes a schema of samples, and compares two.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use config::schema_files::{SchemaError, SchemaFolder};
use schema::Schema;
use schema_tools::{Samples, differences};
use serde_json::value::RawValue;
use settings::files;

use crate::cli::{SchemaCommand, SchemaDiff, SchemaInfer};
use crate::commands::output::Output;

/// Bytes of samples that are an array: it is read as a whole.
const ARRAY_BYTES_MAX: u64 = 256 * 1024 * 1024;
const EXIT_DIFFERENT: u8 = 1;
const EXIT_WRONG: u8 = 2;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaCommandError {
    /// A file can't be read.
    #[error("can't read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A record is no JSON.
    #[error("{path}, record {number}: {error}")]
    Record {
        /// The file.
        path: PathBuf,
        /// The line or element, from 1.
        number: u64,
        /// What is wrong.
        error: json::JsonError,
    },
    /// There is no record.
    #[error("{0} has no record: a schema is made of samples")]
    Empty(PathBuf),
    /// The file is an array that is too large.
    #[error("{0} is an array of more than 256 MiB: give its elements as lines")]
    TooLarge(PathBuf),
    /// The output can't be written.
    #[error("can't write: {0}")]
    Write(#[from] io::Error),
}

/// Runs the command and gives the process's exit code.
///
/// # Errors
/// [`SchemaCommandError`] says what stands in the way.
pub(crate) fn run(command: &SchemaCommand) -> Result<u8, SchemaCommandError> {
    match command {
        SchemaCommand::Infer(infer) => run_infer(infer),
        SchemaCommand::Diff(diff) => run_diff(diff),
    }
}

fn run_infer(infer: &SchemaInfer) -> Result<u8, SchemaCommandError> {
    let path = &infer.file;
    let unreadable = |source| SchemaCommandError::Read { path: path.clone(), source };
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(fs::File::open(path).map_err(unreadable)?)
    };
    let samples = gather(path, BufReader::new(input))?;
    if samples.count() == 0 {
        return Err(SchemaCommandError::Empty(path.clone()));
    }
    Output::lock().write_all(samples.schema(infer.ranges).as_bytes())?;
    Ok(0)
}

fn gather(path: &Path, mut input: impl BufRead) -> Result<Samples, SchemaCommandError> {
    let unreadable = |source| SchemaCommandError::Read { path: path.to_owned(), source };
    let wrong = |number, error| SchemaCommandError::Record { path: path.to_owned(), number, error };
    let mut samples = Samples::default();
    let (first, blank_lines) = first_byte(&mut input).map_err(unreadable)?;
    if first == Some(b'[') {
        let mut text = Vec::new();
        input.take(ARRAY_BYTES_MAX + 1).read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > ARRAY_BYTES_MAX {
            return Err(SchemaCommandError::TooLarge(path.to_owned()));
        }
        // Where it isn't one array it is lines of which the first is one.
        if let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(&text) {
            for (number, element) in (1..).zip(elements) {
                samples.add(json::check(element.get().as_bytes()).map_err(|error| wrong(number, error))?);
            }
            return Ok(samples);
        }
        return lines(path, text.as_slice(), blank_lines, samples);
    }
    lines(path, input, blank_lines, samples)
}

fn lines(
    path: &Path,
    mut input: impl BufRead,
    blank_lines: u64,
    mut samples: Samples,
) -> Result<Samples, SchemaCommandError> {
    let mut line = Vec::new();
    for number in blank_lines + 1.. {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|source| SchemaCommandError::Read { path: path.to_owned(), source })? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let wrong = |error| SchemaCommandError::Record { path: path.to_owned(), number, error };
        samples.add(json::check(&line).map_err(wrong)?);
    }
    Ok(samples)
}

/// The first byte that isn't whitespace, and how many lines end before it. They are passed over.
fn first_byte(input: &mut impl BufRead) -> io::Result<(Option<u8>, u64)> {
    let mut blank_lines = 0;
    let line_ends = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok((None, blank_lines));
        }
        let mark = buffer.len() - files::content(buffer).len();
        if mark > 0 {
            input.consume(mark);
            continue;
        }
        if let Some(at) = buffer.iter().position(|byte| !byte.is_ascii_whitespace()) {
            let first = buffer[at];
            blank_lines += line_ends(&buffer[..at]);
            input.consume(at);
            return Ok((Some(first), blank_lines));
        }
        blank_lines += line_ends(buffer);
        let length = buffer.len();
        input.consume(length);
    }
}

fn run_diff(diff: &SchemaDiff) -> Result<u8, SchemaCommandError> {
    let (Some(old), Some(new)) = (load(&diff.old, diff.formats), load(&diff.new, diff.formats)) else {
        return Ok(EXIT_WRONG);
    };
    let found = differences(&old, &new);
    let mut output = Output::lock();
    for difference in &found {
        writeln!(output, "{difference}")?;
    }
    if found.is_empty() {
        writeln!(output, "whatever {} takes, {} takes too", diff.old.display(), diff.new.display())?;
    }
    Ok(if found.is_empty() { 0 } else { EXIT_DIFFERENT })
}

/// A schema that may refer to what stands beside it. What is wrong with it is said.
fn load(path: &Path, formats: bool) -> Option<Schema> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or(path.as_os_str());
    match SchemaFolder::new(folder).compile(Path::new(name), formats) {
        Ok(compiled) => Some(compiled.schema),
        Err(SchemaError::Unreadable { path, why }) => {
            crate::log::error(format_args!("can't read {}: {why}", path.display()));
            None
        }
        Err(SchemaError::Wrong { mistakes, .. }) => {
            mistakes.iter().for_each(|mistake| crate::log::error(format_args!("{}: {mistake}", path.display())));
            None
        }
    }
}
