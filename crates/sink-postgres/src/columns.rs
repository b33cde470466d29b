//! The columns of the events' table.

use super::kind::ColumnType;
use json::JsonPointer;

/// The column that holds the number of a row's transaction, by this default: the server's number, which is never
/// reused.
pub(super) const STORED_IN: &str = "stored_in";
/// The column that holds a row's own number: they ascend within a transaction.
pub(super) const STORED_NUMBER: &str = "stored_number";
/// The default of [`STORED_IN`]. The server doesn't treat it as a volatile function, so `COPY` still writes many rows
/// at a time.
pub(super) const THIS_TRANSACTION: &str = "txid_current()";

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Id,
    Type,
    Source,
    ReceivedAt,
    /// When it happened, or else when it was received: the partition key.
    EventTime,
    Payload,
    Member(JsonPointer),
}

/// A column with what it holds and the type that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) content: Content,
    pub(super) kind: ColumnType,
    /// The type as the table declares it, with lengths and digits: `numeric(10,2)`.
    pub(super) declared: String,
}

impl Field {
    pub(super) fn new(name: &str, content: Content, kind: ColumnType) -> Self {
        Self { name: name.to_owned(), content, kind, declared: kind.name().to_owned() }
    }

    /// The name, quoted for SQL: a checked name has nothing to escape.
    pub(super) fn quoted(&self) -> String {
        format!("\"{}\"", self.name)
    }

    /// The types that this content may have.
    pub(super) fn may_be(&self, kind: ColumnType) -> bool {
        match self.content {
            Content::Id => kind == ColumnType::Uuid,
            Content::Type | Content::Source => matches!(kind, ColumnType::Text | ColumnType::Varchar),
            Content::ReceivedAt | Content::EventTime => kind == ColumnType::Timestamptz,
            Content::Payload => matches!(kind, ColumnType::Jsonb | ColumnType::Json | ColumnType::Text),
            Content::Member(_) => true,
        }
    }

    /// Those types in words.
    pub(super) fn possible_types(&self) -> String {
        if self.content == Content::EventTime {
            // A rounded part of the key wouldn't be found again.
            return "timestamptz, without a precision".to_owned();
        }
        let names: Vec<&str> = ColumnType::all().filter(|kind| self.may_be(*kind)).map(ColumnType::name).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}
