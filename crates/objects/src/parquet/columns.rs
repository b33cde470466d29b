//! The columns of a table of events, and their descriptions
//! (<https://github.com/apache/parquet-format/blob/master/LogicalTypes.md>).

use super::thrift::Fields;
use crate::Line;
use sink::{Record, Write};

// How values are stored.
const INT32: i32 = 1;
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;
const FIXED_LEN_BYTE_ARRAY: i32 = 7;
// Whether there is one in each row.
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
// Their meaning in the older form, which is the only one for some readers.
const UTF8: i32 = 0;
const TIMESTAMP_MICROS: i32 = 10;
const JSON: i32 = 19;

const UUID_BYTES: i32 = 16;

/// A value in its stored form.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// Of a column of UUIDs.
    Uuid([u8; 16]),
    /// Of a column of texts.
    Bytes(&'a [u8]),
    /// Of a column of small numbers.
    Small(i32),
    /// Of a column of numbers or times.
    Large(i64),
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Uuid,
    /// UTF-8.
    Text,
    /// A JSON text, UTF-8.
    Json,
    /// Microseconds since 1970, UTC.
    Time,
    Small,
    Large,
}

impl Kind {
    pub(super) const fn physical(self) -> i32 {
        match self {
            Self::Uuid => FIXED_LEN_BYTE_ARRAY,
            Self::Text | Self::Json => BYTE_ARRAY,
            Self::Small => INT32,
            Self::Time | Self::Large => INT64,
        }
    }

    const fn converted(self) -> Option<i32> {
        match self {
            Self::Text => Some(UTF8),
            Self::Json => Some(JSON),
            Self::Time => Some(TIMESTAMP_MICROS),
            Self::Uuid | Self::Small | Self::Large => None,
        }
    }

    /// The field of the union `LogicalType` that states their type.
    const fn logical(self) -> Option<u8> {
        match self {
            Self::Text => Some(1),
            Self::Time => Some(8),
            Self::Json => Some(12),
            Self::Uuid => Some(14),
            Self::Small | Self::Large => None,
        }
    }
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether there are rows without a value.
    pub(super) is_optional: bool,
    /// Returns its value of a record in a shard.
    pub(super) value: ValueOf,
}

type ValueOf = for<'a> fn(u16, &Record<'a>) -> Option<Value<'a>>;

impl Column {
    const fn new(name: &'static str, kind: Kind, value: ValueOf) -> Self {
        Self { name, kind, is_optional: false, value }
    }

    const fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// `SchemaElement`.
    pub(super) fn write(&self, fields: &mut Fields<'_>) {
        fields.i32(1, self.kind.physical());
        if self.kind == Kind::Uuid {
            fields.i32(2, UUID_BYTES);
        }
        fields.i32(3, if self.is_optional { OPTIONAL } else { REQUIRED }).binary(4, self.name.as_bytes());
        if let Some(converted) = self.kind.converted() {
            fields.i32(6, converted);
        }
        if let Some(number) = self.kind.logical() {
            fields.structure(10, |logical| {
                logical.structure(number, |fields| self.write_unit(fields));
            });
        }
    }

    /// For times, that they are in UTC and in microseconds; nothing for other types.
    fn write_unit(&self, fields: &mut Fields<'_>) {
        if self.kind == Kind::Time {
            fields.bool(1, true).structure(2, |unit| {
                unit.structure(2, |_| {});
            });
        }
    }
}

const PAYLOAD: Column = Column::new("payload", Kind::Json, |_, record| Some(Value::Bytes(record.payload)));
static PAYLOADS: [Column; 1] = [PAYLOAD];
static ENVELOPES: [Column; 9] = [
    Column::new("id", Kind::Uuid, |_, record| Some(Value::Uuid(record.id.0))),
    Column::new("type", Kind::Text, |_, record| Some(Value::Bytes(record.type_name.as_bytes()))),
    Column::new("source", Kind::Text, |_, record| Some(Value::Bytes(record.source.as_bytes()))),
    Column::new("received_at", Kind::Time, |_, record| Some(Value::Large(record.received_at))),
    Column::new("event_time", Kind::Time, |_, record| record.event_time.map(Value::Large)).optional(),
    Column::new("revision", Kind::Large, |_, record| revision(record.write)).optional(),
    Column::new("shard", Kind::Small, |shard, _| Some(Value::Small(shard.into()))),
    Column::new("sequence", Kind::Large, |_, record| Some(Value::Large(record.sequence.cast_signed()))),
    PAYLOAD,
];

const fn revision(write: Write) -> Option<Value<'static>> {
    match write {
        Write::Upsert(revision) => Some(Value::Large(revision.cast_signed())),
        _ => None,
    }
}

/// The columns of objects with such lines.
pub(super) const fn of(line: Line) -> &'static [Column] {
    match line {
        Line::Payload => &PAYLOADS,
        Line::Envelope => &ENVELOPES,
    }
}
