//! Bodies in JSON: `streams` with `values`, or with `entries` as the first versions had them.

use std::borrow::Cow;

use ::text::rfc3339;
use json::{parts, text};
use limits::EVENT_BYTES_MAX;
use timestamp::TimeFormat;

use super::labels;
use super::line::{self, Line, Lines};
use crate::{Problem, Stop};

/// Passes the lines of a body on that is JSON.
pub(super) fn walk(body: &str, lines: &mut Lines<'_, '_>) -> Result<(), Stop> {
    let streams = parts::member(body, "streams").filter(|streams| streams.starts_with('['));
    let streams = streams.ok_or_else(|| Problem::invalid("`streams` is no array: send the streams in it"))?;
    parts::elements(streams).try_for_each(|stream| walk_stream(stream, lines))
}

fn walk_stream(stream: &str, lines: &mut Lines<'_, '_>) -> Result<(), Stop> {
    let (mut labels, mut values, mut is_entries) = (Some(Cow::Borrowed("{}")), "[]", false);
    for member in parts::members(stream) {
        match &*member.name() {
            "stream" => labels = member.value.starts_with('{').then_some(member.value.into()),
            "labels" => labels = written(member.value).map(Cow::Owned),
            "values" => values = member.value,
            "entries" => (values, is_entries) = (member.value, true),
            _ => {}
        }
    }
    if !stream.starts_with('{') || !values.starts_with('[') {
        return Err(
            Problem::invalid("an element of `streams` is no object with `values`: send the lines in them").into()
        );
    }
    for value in parts::elements(values) {
        let line = if is_entries { entry(value, labels.as_deref()) } else { value_line(value, labels.as_deref()) };
        match line {
            Some(line) => lines.push(&line)?,
            None => lines.reject(
                value.as_bytes(),
                "the line is no array of a time and a text: send [\"NANOSECONDS\", \"TEXT\"]",
            )?,
        }
    }
    Ok(())
}

fn written(labels: &str) -> Option<String> {
    let mut out = String::new();
    let labels = text::read_string(labels).filter(|labels| labels.len() <= EVENT_BYTES_MAX)?;
    labels::write(&labels, &mut out).map(|()| out)
}

/// `["NANOSECONDS", "TEXT", {METADATA}]`.
fn value_line<'a>(value: &'a str, labels: Option<&'a str>) -> Option<Line<'a>> {
    let mut elements = parts::elements(value);
    let (time, line) = (elements.next()?, elements.next().filter(|line| line.starts_with('"'))?);
    let metadata = elements.next().filter(|metadata| metadata.starts_with('{')).map(Cow::Borrowed);
    let nanoseconds = text::scalar(time).and_then(|time| time.parse().ok());
    let time = nanoseconds.map(line::time).ok_or("the time is no number of nanoseconds since 1970".into());
    Some(Line { time, line: line.into(), labels, metadata })
}

/// `{"ts": "RFC 3339", "line": "TEXT"}`.
fn entry<'a>(value: &'a str, labels: Option<&'a str>) -> Option<Line<'a>> {
    let line = parts::member(value, "line").filter(|line| line.starts_with('"'))?;
    let time = text::read_string(parts::member(value, "ts")?)?;
    let time = match TimeFormat::Rfc3339.read(&time, None) {
        // It keeps its nanoseconds.
        Ok(_) if time.ends_with('Z') && rfc3339::parse(&time).is_ok() => Ok(time.into_owned()),
        Ok(microseconds) => Ok(rfc3339::format_short(microseconds)),
        Err(detail) => Err(detail.into()),
    };
    Some(Line { time, line: line.into(), labels, metadata: None })
}
