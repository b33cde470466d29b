//! A record as a row: the wire form of its columns' values, for COPY and for parameters.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use event::EventId;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

use super::columns::{Content, Field};
use super::kind::{ColumnType, put_jsonb, put_time, time};
use sink::Record;

/// The header of a binary COPY: a signature, no flags, no extension.
pub(super) const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The end of a binary COPY.
pub(super) const COPY_TRAILER: &[u8] = &[0xff, 0xff];
/// The length that means null.
const NULL: i32 = -1;

/// Adds `record` as a row of a COPY.
///
/// # Errors
/// Why the table can't hold it. The caller must discard what was added.
pub(super) fn put_row(fields: &[Field], record: &Record<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    out.put_i16(i16::try_from(fields.len()).unwrap_or(i16::MAX));
    fields.iter().try_for_each(|field| put_value(field, record, out))
}

/// Adds a value with its length before it.
pub(super) fn put_value(field: &Field, record: &Record<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let at = out.len();
    out.put_i32(0);
    let is_null = !put(field, record, out).map_err(|why| format!("column {} {why}", field.name))?;
    let length =
        i32::try_from(out.len() - at - 4).map_err(|_| format!("column {} has a value that is too long", field.name))?;
    out[at..at + 4].copy_from_slice(&(if is_null { NULL } else { length }).to_be_bytes());
    Ok(())
}

/// Adds a value; `false` for null.
fn put(field: &Field, record: &Record<'_>, out: &mut Vec<u8>) -> Result<bool, String> {
    match &field.content {
        Content::Id => out.put_slice(&record.id.0),
        Content::Type => out.put_slice(record.type_name.as_bytes()),
        Content::Source => out.put_slice(record.source.as_bytes()),
        Content::ReceivedAt => put_time(record.received_at, out),
        Content::EventTime => put_time(record.time(), out),
        Content::Payload if field.kind == ColumnType::Jsonb => put_jsonb(record.payload, out),
        Content::Payload => out.put_slice(record.payload),
        Content::Member(pointer) => {
            let json = std::str::from_utf8(record.payload).map_err(|_| "can't be read: the payload isn't UTF-8")?;
            match pointer.lookup(json) {
                None | Some("null") => return Ok(false),
                Some(raw) => field.kind.put(raw, out)?,
            }
        }
    }
    Ok(true)
}

/// Many values of one type, as one parameter: the server expands them to rows.
#[derive(Debug)]
pub(super) struct Array {
    bytes: Vec<u8>,
}

impl Array {
    /// The values, each with its length before it, of the type with this number.
    pub(super) fn new(oid: u32, count: usize, values: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(20 + values.len());
        bytes.put_i32(1);
        // Whether there are nulls: the server checks this itself.
        bytes.put_i32(1);
        bytes.put_u32(oid);
        bytes.put_i32(i32::try_from(count).unwrap_or(i32::MAX));
        bytes.put_i32(1);
        bytes.extend_from_slice(values);
        Self { bytes }
    }

    pub(super) fn of_ids(ids: impl ExactSizeIterator<Item = EventId>) -> Self {
        let count = ids.len();
        let mut values = Vec::with_capacity(count * 20);
        for id in ids {
            values.put_i32(16);
            values.put_slice(&id.0);
        }
        Self::new(ColumnType::Uuid.oid(), count, &values)
    }
}

impl ToSql for Array {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(of, out)
    }
}

/// An id in the server's form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Id(pub(super) EventId);

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(EventId(bytes.try_into()?)))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::UUID
    }
}

/// A time in the server's form: microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time(pub(super) i64);

impl<'a> FromSql<'a> for Time {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(time(bytes.try_into()?)))
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TIMESTAMPTZ
    }
}

impl ToSql for Time {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let mut bytes = Vec::with_capacity(8);
        put_time(self.0, &mut bytes);
        out.extend_from_slice(&bytes);
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        *of == Type::TIMESTAMPTZ
    }

    fn to_sql_checked(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(of, out)
    }
}
