//! `forebay schema …`: infers a schema from samples, and compares two.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use anyhow::{anyhow, bail};
use config::schema_files::{SchemaError, SchemaFolder};
use schema::Schema;
use schema_tools::{Samples, differences};
use serde_json::value::RawValue;
use settings::files;

use crate::errors::unreadable;
use crate::flags::{SchemaCommand, SchemaDiff, SchemaInfer};
use crate::input;
use crate::output::print;

/// Bytes of samples that are an array: it is read as a whole.
const ARRAY_BYTES_MAX: u64 = 256 * 1024 * 1024;
const EXIT_DIFFERENT: u8 = 1;
const EXIT_WRONG: u8 = 2;

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(command: &SchemaCommand) -> anyhow::Result<u8> {
    match command {
        SchemaCommand::Infer(infer) => run_infer(infer),
        SchemaCommand::Diff(diff) => run_diff(diff),
    }
}

fn run_infer(infer: &SchemaInfer) -> anyhow::Result<u8> {
    let path = &infer.file;
    let samples = gather(path, BufReader::new(input::open(path).map_err(unreadable(path))?))?;
    if samples.count() == 0 {
        bail!("{} has no records: name a file with sample events", path.display());
    }
    print(|output| output.write_all(samples.schema(infer.ranges).as_bytes()))?;
    Ok(0)
}

fn gather(path: &Path, mut input: impl BufRead) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    let (first, blank_lines) = first_byte(&mut input).map_err(unreadable(path))?;
    if first == Some(b'[') {
        let mut text = Vec::new();
        input.take(ARRAY_BYTES_MAX + 1).read_to_end(&mut text).map_err(unreadable(path))?;
        if text.len() as u64 > ARRAY_BYTES_MAX {
            bail!("{} is an array of more than 256 MiB: write its elements as lines", path.display());
        }
        // If it isn't one array, it is lines of which the first is one.
        if let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(&text) {
            for (number, element) in (1..).zip(elements) {
                samples.add(json::check(element.get().as_bytes()).map_err(|error| wrong(path, number, &error))?);
            }
            return Ok(samples);
        }
        return lines(path, text.as_slice(), blank_lines, samples);
    }
    lines(path, input, blank_lines, samples)
}

/// The message names the record.
fn wrong(path: &Path, number: u64, error: &json::JsonError) -> anyhow::Error {
    anyhow!("{}, record {number}: {error}", path.display())
}

fn lines(path: &Path, mut input: impl BufRead, blank_lines: u64, mut samples: Samples) -> anyhow::Result<Samples> {
    let mut line = Vec::new();
    for number in blank_lines + 1.. {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(unreadable(path))? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        samples.add(json::check(&line).map_err(|error| wrong(path, number, &error))?);
    }
    Ok(samples)
}

/// The first byte that isn't whitespace, and how many lines end before it. The whitespace is skipped.
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

fn run_diff(diff: &SchemaDiff) -> anyhow::Result<u8> {
    let (Some(old), Some(new)) = (load(&diff.old, diff.formats), load(&diff.new, diff.formats)) else {
        return Ok(EXIT_WRONG);
    };
    let found = differences(&old, &new);
    print(|output| {
        if found.is_empty() {
            writeln!(output, "every payload that {} accepts, {} accepts too", diff.old.display(), diff.new.display())?;
        }
        found.iter().try_for_each(|difference| writeln!(output, "{difference}"))
    })?;
    Ok(if found.is_empty() { 0 } else { EXIT_DIFFERENT })
}

/// Loads a schema that may refer to files next to it. Reports its errors.
fn load(path: &Path, formats: bool) -> Option<Schema> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or(path.as_os_str());
    match SchemaFolder::new(folder).compile(Path::new(name), formats) {
        Ok(compiled) => Some(compiled.schema),
        Err(SchemaError::Unreadable { path, why }) => {
            tracing::error!("can't read {}: {why}", path.display());
            None
        }
        Err(SchemaError::Wrong { mistakes, .. }) => {
            mistakes.iter().for_each(|mistake| tracing::error!("{}: {mistake}", path.display()));
            None
        }
    }
}
