//! The column types that Forebay writes, and the wire form of a JSON value in each.

use std::str::FromStr;

use bytes::BufMut;
use event::EventId;
use text::rfc3339;
use tokio_postgres::types::Type;

use super::numeric;

/// Microseconds from 1970 to 2000, where PostgreSQL's times begin.
const EPOCH: i64 = 946_684_800_000_000;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `boolean`
    Boolean,
    /// `smallint`
    Smallint,
    /// `integer`
    Integer,
    /// `bigint`
    Bigint,
    /// `real`
    Real,
    /// `double precision`
    Double,
    /// `numeric`
    Numeric,
    /// `text`
    Text,
    /// `character varying`
    Varchar,
    /// `uuid`
    Uuid,
    /// `timestamp with time zone`
    Timestamptz,
    /// `json`
    Json,
    /// `jsonb`
    Jsonb,
}

/// Each with its name, its other names, and the driver's type.
const KINDS: [(ColumnType, &str, &[&str], Type); 13] = [
    (ColumnType::Boolean, "boolean", &["bool"], Type::BOOL),
    (ColumnType::Smallint, "smallint", &["int2"], Type::INT2),
    (ColumnType::Integer, "integer", &["int", "int4"], Type::INT4),
    (ColumnType::Bigint, "bigint", &["int8"], Type::INT8),
    (ColumnType::Real, "real", &["float4"], Type::FLOAT4),
    (ColumnType::Double, "double precision", &["float8"], Type::FLOAT8),
    (ColumnType::Numeric, "numeric", &["decimal"], Type::NUMERIC),
    (ColumnType::Text, "text", &[], Type::TEXT),
    (ColumnType::Varchar, "varchar", &["character varying"], Type::VARCHAR),
    (ColumnType::Uuid, "uuid", &[], Type::UUID),
    (ColumnType::Timestamptz, "timestamptz", &["timestamp with time zone"], Type::TIMESTAMPTZ),
    (ColumnType::Json, "json", &[], Type::JSON),
    (ColumnType::Jsonb, "jsonb", &[], Type::JSONB),
];

/// A text that isn't the name of a supported type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {}", ColumnType::names())]
pub struct UnknownKind;

impl FromStr for ColumnType {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let is = |name: &str| name.eq_ignore_ascii_case(text);
        let known = KINDS.iter().find(|(_, name, others, _)| is(name) || others.iter().any(|other| is(other)));
        known.map(|(kind, ..)| *kind).ok_or(UnknownKind)
    }
}

impl ColumnType {
    /// All types, by name, for messages.
    #[must_use]
    pub fn names() -> String {
        KINDS.map(|(_, name, ..)| name).join(", ")
    }

    /// All types.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(kind, ..)| *kind)
    }

    /// The name in SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, ..)| *kind == self).map_or("text", |(_, name, ..)| *name)
    }

    /// The type with this number in the server's catalogue.
    pub(super) fn of_oid(oid: u32) -> Option<Self> {
        KINDS.iter().find(|(.., of)| of.oid() == oid).map(|(kind, ..)| *kind)
    }

    pub(super) fn oid(self) -> u32 {
        KINDS.iter().find(|(kind, ..)| *kind == self).map_or(0, |(.., of)| of.oid())
    }

    /// Writes the JSON value `raw` in the wire form of this type.
    ///
    /// # Errors
    /// Why the type can't hold it, as a continuation of the column's name.
    pub(super) fn put(self, raw: &str, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Jsonb => put_jsonb(raw.as_bytes(), out),
            Self::Json => out.put_slice(raw.as_bytes()),
            Self::Text | Self::Varchar => out.put_slice(text(raw)?.as_bytes()),
            Self::Boolean => out.put_u8(u8::from(self.parsed::<bool>(raw)?)),
            Self::Smallint => out.put_i16(self.whole(raw)?),
            Self::Integer => out.put_i32(self.whole(raw)?),
            Self::Bigint => out.put_i64(self.whole(raw)?),
            Self::Real => out.put_f32(self.finite::<f32>(raw, |number| number.is_finite())?),
            Self::Double => out.put_f64(self.finite::<f64>(raw, |number| number.is_finite())?),
            Self::Numeric => numeric::put(&text(raw)?, out).ok_or_else(|| self.not_valid(raw))?,
            Self::Uuid => out.put_slice(&self.parsed::<EventId>(&raw.to_ascii_lowercase())?.0),
            Self::Timestamptz => {
                let time = rfc3339::parse(&text(raw)?).map_err(|why| format!("{} ({why})", self.not_valid(raw)))?;
                put_time(time, out);
            }
        }
        Ok(())
    }

    fn parsed<T: FromStr>(self, raw: &str) -> Result<T, String> {
        text(raw)?.parse().map_err(|_| self.not_valid(raw))
    }

    /// A whole number by its value.
    fn whole<T: FromStr + TryFrom<i128>>(self, raw: &str) -> Result<T, String> {
        let text = text(raw)?;
        // The usual form needs no arithmetic.
        let number = text.parse().ok().or_else(|| T::try_from(numeric::whole(&text)?).ok());
        number.ok_or_else(|| self.not_valid(raw))
    }

    fn finite<T: FromStr>(self, raw: &str, is_finite: impl Fn(&T) -> bool) -> Result<T, String> {
        Some(self.parsed(raw)?).filter(is_finite).ok_or_else(|| self.not_valid(raw))
    }

    fn not_valid(self, raw: &str) -> String {
        const SHOWN: usize = 60;
        let shown = raw.char_indices().nth(SHOWN).map_or(raw, |(at, _)| &raw[..at]);
        format!("is {} and can't hold {shown}{}", self.name(), if shown.len() < raw.len() { "…" } else { "" })
    }
}

/// A value's text: the content of a string, or any other value unchanged.
fn text(raw: &str) -> Result<std::borrow::Cow<'_, str>, String> {
    match json::text::scalar_text(raw) {
        Some(text) => Ok(text),
        None if raw.starts_with('"') => Err("can't hold a lone surrogate".to_owned()),
        None => Ok(raw.into()),
    }
}

/// Writes the version of the format, then the text.
pub(super) fn put_jsonb(json: &[u8], out: &mut Vec<u8>) {
    out.put_u8(1);
    out.put_slice(json);
}

/// Writes microseconds since 1970. A time outside the range becomes the nearest time in it.
pub(super) fn put_time(microseconds: i64, out: &mut Vec<u8>) {
    out.put_i64(microseconds.saturating_sub(EPOCH));
}

/// Reads microseconds since 1970, as [`put_time`] wrote them.
pub(super) fn time(bytes: [u8; 8]) -> i64 {
    i64::from_be_bytes(bytes).saturating_add(EPOCH)
}
