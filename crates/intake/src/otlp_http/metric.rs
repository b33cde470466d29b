//! A metric: its name, and what its data points share.

use super::emitter::Emitter;
use super::message::{Fault, Fields, Message, Value};
use super::point::{self, Table};
use super::shared::{SHARED_BYTES_MAX, SHARED_TOO_LARGE};
use super::write;
use crate::Stop;

const METRIC: &Fields = &[
    (1, "name"),
    (2, "description"),
    (3, "unit"),
    (5, "gauge"),
    (7, "sum"),
    (9, "histogram"),
    (10, "exponentialHistogram"),
    (11, "summary"),
];
const DATA: &Fields = &[(1, "dataPoints"), (2, "aggregationTemporality"), (3, "isMonotonic")];

const TEMPORALITIES: &[&str] = &["unspecified", "delta", "cumulative"];

/// The name of a kind of data, and the table of its points.
fn kind(number: u32) -> (&'static str, &'static Table) {
    match number {
        5 => ("gauge", &point::NUMBER),
        7 => ("sum", &point::NUMBER),
        9 => ("histogram", &point::HISTOGRAM),
        10 => ("exponential_histogram", &point::EXPONENTIAL),
        _ => ("summary", &point::SUMMARY),
    }
}

/// Passes the data points of a metric on, each with what they share.
pub(super) fn emit(metric: Message<'_>, emitter: &mut Emitter<'_, '_>, tail: Result<&str, Fault>) -> Result<(), Stop> {
    let (mut texts, mut data) = ([None; 3], None);
    metric.walk(METRIC, |number, value| {
        match number {
            1 => texts[0] = Some(value),
            2 => texts[1] = Some(value),
            3 => texts[2] = Some(value),
            _ => data = Some((number, value)),
        }
        Ok::<_, Stop>(())
    })?;
    let Some((number, data)) = data else { return Ok(()) };
    let (data, (name, table)) = (data.message()?, kind(number));
    let mut shared = String::from("{");
    let written = write_shared(texts, name, data, &mut shared);
    let tail = written.and(tail);
    data.walk(DATA, |number, value| {
        if number != 1 {
            return Ok(());
        }
        let point = value.message()?;
        emitter.emit(point, tail, |out| {
            out.push_str(&shared[1..]);
            point::write(point, table, out)?;
            Ok(None)
        })
    })
}

fn write_shared(texts: [Option<Value<'_>>; 3], kind: &str, data: Message<'_>, out: &mut String) -> Result<(), Fault> {
    if texts.iter().flatten().map(|text| text.bytes()).sum::<usize>() > SHARED_BYTES_MAX {
        return Err(SHARED_TOO_LARGE);
    }
    for (name, text) in ["name", "description", "unit"].into_iter().zip(texts) {
        write::text(name, text, out)?;
    }
    write::word("kind", kind, out);
    let (mut temporality, mut is_monotonic) = (0, None);
    data.walk(DATA, |number, value| {
        match number {
            2 => temporality = value.number_of("AGGREGATION_TEMPORALITY_", TEMPORALITIES)?,
            3 => is_monotonic = Some(value.boolean()?),
            _ => {}
        }
        Ok::<_, Fault>(())
    })?;
    write::named("temporality", temporality, TEMPORALITIES, out);
    if kind == "sum" {
        write::member("is_monotonic", out);
        out.push_str(if is_monotonic == Some(true) { "true" } else { "false" });
    }
    Ok(())
}
