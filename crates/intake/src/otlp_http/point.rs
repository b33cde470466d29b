//! Data points of metrics: `opentelemetry/proto/metrics/v1/metrics.proto`. Tables say which members each kind of point has.

use super::attributes::{TOO_LARGE, attributes};
use super::message::{Fault, Fields, Message, NO_MESSAGE, Value};
use super::write;
use crate::protobuf;

/// How the JSON of a message is written.
#[derive(Debug)]
pub(super) struct Table {
    fields: &'static Fields,
    /// The members in their order: the number of the field, the name of the member, and how its value is written. Of two members in a row
    /// with the same name, the first that is there counts.
    members: &'static [(u32, &'static str, How)],
}

/// How a value is written.
#[derive(Debug)]
enum How {
    Time,
    /// A number that counts; 0 if it is absent.
    Count,
    /// A number that is left out if it is 0.
    Flags,
    Signed,
    /// A signed number that protobuf has as `sint32`; 0 if it is absent.
    Zigzag,
    Double,
    Id,
    Attributes,
    List(Packed),
    Message(&'static Table),
    Messages(&'static Table),
}

/// How protobuf packs the numbers of a list.
#[derive(Clone, Copy, Debug)]
enum Packed {
    Fixed64,
    Double,
    Varint,
}

/// Fields have lower numbers.
const NUMBERS: usize = 16;

pub(super) static NUMBER: Table = Table {
    fields: &[
        (2, "startTimeUnixNano"),
        (3, "timeUnixNano"),
        (4, "asDouble"),
        (5, "exemplars"),
        (6, "asInt"),
        (7, "attributes"),
        (8, "flags"),
    ],
    members: &[
        (2, "start", How::Time),
        (3, "time", How::Time),
        (6, "value", How::Signed),
        (4, "value", How::Double),
        (8, "flags", How::Flags),
        (7, "attributes", How::Attributes),
        (5, "exemplars", How::Messages(&EXEMPLAR)),
    ],
};

pub(super) static HISTOGRAM: Table = Table {
    fields: &[
        (2, "startTimeUnixNano"),
        (3, "timeUnixNano"),
        (4, "count"),
        (5, "sum"),
        (6, "bucketCounts"),
        (7, "explicitBounds"),
        (8, "exemplars"),
        (9, "attributes"),
        (10, "flags"),
        (11, "min"),
        (12, "max"),
    ],
    members: &[
        (2, "start", How::Time),
        (3, "time", How::Time),
        (4, "count", How::Count),
        (5, "sum", How::Double),
        (11, "min", How::Double),
        (12, "max", How::Double),
        (7, "explicit_bounds", How::List(Packed::Double)),
        (6, "bucket_counts", How::List(Packed::Fixed64)),
        (10, "flags", How::Flags),
        (9, "attributes", How::Attributes),
        (8, "exemplars", How::Messages(&EXEMPLAR)),
    ],
};

pub(super) static EXPONENTIAL: Table = Table {
    fields: &[
        (1, "attributes"),
        (2, "startTimeUnixNano"),
        (3, "timeUnixNano"),
        (4, "count"),
        (5, "sum"),
        (6, "scale"),
        (7, "zeroCount"),
        (8, "positive"),
        (9, "negative"),
        (10, "flags"),
        (11, "exemplars"),
        (12, "min"),
        (13, "max"),
        (14, "zeroThreshold"),
    ],
    members: &[
        (2, "start", How::Time),
        (3, "time", How::Time),
        (4, "count", How::Count),
        (5, "sum", How::Double),
        (12, "min", How::Double),
        (13, "max", How::Double),
        (6, "scale", How::Zigzag),
        (7, "zero_count", How::Count),
        (14, "zero_threshold", How::Double),
        (8, "positive", How::Message(&BUCKETS)),
        (9, "negative", How::Message(&BUCKETS)),
        (10, "flags", How::Flags),
        (1, "attributes", How::Attributes),
        (11, "exemplars", How::Messages(&EXEMPLAR)),
    ],
};

pub(super) static SUMMARY: Table = Table {
    fields: &[
        (2, "startTimeUnixNano"),
        (3, "timeUnixNano"),
        (4, "count"),
        (5, "sum"),
        (6, "quantileValues"),
        (7, "attributes"),
        (8, "flags"),
    ],
    members: &[
        (2, "start", How::Time),
        (3, "time", How::Time),
        (4, "count", How::Count),
        (5, "sum", How::Double),
        (6, "quantiles", How::Messages(&QUANTILE)),
        (8, "flags", How::Flags),
        (7, "attributes", How::Attributes),
    ],
};

static BUCKETS: Table = Table {
    fields: &[(1, "offset"), (2, "bucketCounts")],
    members: &[(1, "offset", How::Zigzag), (2, "bucket_counts", How::List(Packed::Varint))],
};

static QUANTILE: Table = Table {
    fields: &[(1, "quantile"), (2, "value")],
    members: &[(1, "quantile", How::Double), (2, "value", How::Double)],
};

static EXEMPLAR: Table = Table {
    fields: &[
        (2, "timeUnixNano"),
        (3, "asDouble"),
        (4, "spanId"),
        (5, "traceId"),
        (6, "asInt"),
        (7, "filteredAttributes"),
    ],
    members: &[
        (2, "time", How::Time),
        (6, "value", How::Signed),
        (3, "value", How::Double),
        (5, "trace_id", How::Id),
        (4, "span_id", How::Id),
        (7, "attributes", How::Attributes),
    ],
};

/// Writes the members of a point.
pub(super) fn write(message: Message<'_>, table: &Table, out: &mut String) -> Result<(), Fault> {
    let mut found = [None; NUMBERS];
    message.walk(table.fields, |number, value| {
        if let Some(slot) = usize::try_from(number).ok().and_then(|number| found.get_mut(number)) {
            *slot = Some(value);
        }
        Ok::<_, Fault>(())
    })?;
    let mut before = "";
    for (number, name, how) in table.members {
        let value = usize::try_from(*number).ok().and_then(|number| *found.get(number)?);
        if *name != before && write_member((message, table, *number), name, how, value, out)? {
            before = name;
        }
    }
    Ok(())
}

/// The repeated field of a message: a list is read in a further walk.
type Repeated<'a> = (Message<'a>, &'a Table, u32);

/// Returns whether there is such a member.
fn write_member(
    repeated: Repeated<'_>,
    name: &str,
    how: &How,
    value: Option<Value<'_>>,
    out: &mut String,
) -> Result<bool, Fault> {
    match (how, value) {
        (How::Count | How::Zigzag, None) => {
            write::member(name, out);
            out.push('0');
            return Ok(true);
        }
        (_, None) => return Ok(false),
        (How::Time, Some(value)) => write::time(name, value.unsigned()?, out),
        (How::Flags, Some(value)) => write::count(name, value.unsigned()?, out),
        (How::Id, value) => write::id(name, value, out)?,
        (how, Some(value)) => {
            write::member(name, out);
            write_value(repeated, how, value, out)?;
        }
    }
    Ok(true)
}

fn write_value(repeated: Repeated<'_>, how: &How, value: Value<'_>, out: &mut String) -> Result<(), Fault> {
    let (message, table, number) = repeated;
    match how {
        How::Count | How::Time | How::Flags | How::Id => write::whole(value.unsigned()?, out),
        How::Signed => write::signed(value.signed()?, out),
        How::Zigzag => write::signed(value.zigzag()?, out),
        How::Double => write::double(value, out)?,
        How::Attributes => attributes(message, table.fields, number, out)?,
        How::List(packed) => list(repeated, out, |value, out| numbers(*packed, value, out))?,
        How::Message(table) => {
            out.push('{');
            write(value.message()?, table, out)?;
            out.push('}');
        }
        How::Messages(table) => list(repeated, out, |value, out| {
            out.push('{');
            write(value.message()?, table, out)?;
            out.push_str("},");
            Ok(())
        })?,
    }
    Ok(())
}

/// Writes a list; `each` writes a comma after each element.
fn list(
    (message, table, wanted): Repeated<'_>,
    out: &mut String,
    each: impl Fn(Value<'_>, &mut String) -> Result<(), Fault>,
) -> Result<(), Fault> {
    out.push('[');
    message.walk(table.fields, |number, value| {
        if out.len() > limits::EVENT_BYTES_MAX {
            return Err(TOO_LARGE);
        }
        if number == wanted { each(value, out) } else { Ok(()) }
    })?;
    if out.ends_with(',') {
        out.pop();
    }
    out.push(']');
    Ok(())
}

/// Writes one number, or those that a packed field has.
fn numbers(packed: Packed, value: Value<'_>, out: &mut String) -> Result<(), Fault> {
    let one = |value: Value<'_>, out: &mut String| {
        match packed {
            Packed::Double => write::double(value, out)?,
            Packed::Fixed64 | Packed::Varint => write::whole(value.unsigned()?, out),
        }
        out.push(',');
        Ok(())
    };
    let Value::Wire(protobuf::WireValue::Bytes(bytes)) = value else { return one(value, out) };
    if let Packed::Varint = packed {
        return protobuf::varints(bytes).try_for_each(|number| {
            let number = number.map_err(|_| NO_MESSAGE)?;
            one(Value::Wire(protobuf::WireValue::Varint(number)), out)
        });
    }
    let (numbers, []) = bytes.as_chunks::<8>() else { return Err(NO_MESSAGE) };
    numbers
        .iter()
        .try_for_each(|number| one(Value::Wire(protobuf::WireValue::Fixed64(u64::from_le_bytes(*number))), out))
}
