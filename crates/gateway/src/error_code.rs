//! Why a request or a record isn't taken, as a stable name, and the HTTP status that goes with it. This is the one
//! place that maps the two.

use http::StatusCode;
use pipeline::RefusalCode;

/// The stable name of a reason. Clients match on [`ErrorCode::as_str`]: a name is never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The text is no JSON.
    Json,
    /// The text is not UTF-8.
    Utf8,
    /// Arrays and objects stand deeper within each other than allowed.
    Depth,
    /// A `\u` escape names half of a surrogate pair.
    Surrogate,
    /// The event or the batch has more bytes than allowed.
    TooLarge,
    /// The batch has more records than allowed.
    TooManyRecords,
    /// The configuration doesn't name the type.
    UnknownType,
    /// As many types as allowed have been taken under `"*"`.
    TooManyTypes,
    /// The payload isn't what the schema of its type wants.
    Schema,
    /// A step of the transform of its type can't be done on the payload.
    Transform,
    /// There is something in the payload that a store of its type can't take.
    Unstorable,
    /// The time in the payload cannot be read, and its type refuses such events.
    Time,
    /// The key, or the id in the payload, can't be one.
    Key,
    /// The key, or the id in the payload, came before with other bytes.
    IdReused,
    /// Events of the type are not answered before they are durable.
    AckMemory,
    /// A sink has refused the event for good; it is durable all the same.
    DeadLetter,
    /// The body's coding is not one that is taken.
    ContentEncoding,
    /// The body isn't what its coding wants.
    Encoding,
    /// The body ended before its end.
    BodyIncomplete,
    /// The request came too slowly.
    Timeout,
    /// The request is not sound HTTP.
    BadRequest,
    /// The request expects what isn't done here.
    Expectation,
    /// The request's line has more bytes than allowed.
    TargetTooLong,
    /// The request's line and headers have more bytes or lines than allowed.
    HeaderTooLarge,
    /// The request needs a token, and has none that is good.
    Unauthorized,
    /// The token doesn't allow this.
    Forbidden,
    /// A web page of a stranger may have sent the request.
    Page,
    /// There is nothing at this path.
    NotFound,
    /// The path doesn't take this method.
    MethodNotAllowed,
    /// Too much waits to become durable.
    Overload,
    /// Too many events of the type wait for a store.
    BacklogFull,
    /// The disk is full.
    DiskFull,
    /// The journal failed.
    JournalFailed,
    /// The server is stopping or has failed.
    NotReady,
    /// The cursor is none that was given for this query.
    Cursor,
    /// There is no such event, as far as one can know.
    UnknownEvent,
    /// The events go to no store that can be read.
    NotReadable,
    /// The store doesn't answer.
    StoreUnavailable,
    /// There is no such object.
    UnknownObject,
    /// The object hasn't the bytes that are asked for.
    Range,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 40] = [
        Self::Json,
        Self::Utf8,
        Self::Depth,
        Self::Surrogate,
        Self::TooLarge,
        Self::TooManyRecords,
        Self::UnknownType,
        Self::TooManyTypes,
        Self::Schema,
        Self::Transform,
        Self::Unstorable,
        Self::Time,
        Self::Key,
        Self::IdReused,
        Self::AckMemory,
        Self::DeadLetter,
        Self::ContentEncoding,
        Self::Encoding,
        Self::BodyIncomplete,
        Self::Timeout,
        Self::BadRequest,
        Self::Expectation,
        Self::TargetTooLong,
        Self::HeaderTooLarge,
        Self::Unauthorized,
        Self::Forbidden,
        Self::Page,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Overload,
        Self::BacklogFull,
        Self::DiskFull,
        Self::JournalFailed,
        Self::NotReady,
        Self::Cursor,
        Self::UnknownEvent,
        Self::NotReadable,
        Self::StoreUnavailable,
        Self::UnknownObject,
        Self::Range,
    ];

    /// The name as clients see it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Utf8 => "utf8",
            Self::Depth => "depth",
            Self::Surrogate => "surrogate",
            Self::TooLarge => "too_large",
            Self::TooManyRecords => "too_many_records",
            Self::UnknownType => "unknown_type",
            Self::TooManyTypes => "too_many_types",
            Self::Schema => "schema",
            Self::Transform => "transform",
            Self::Unstorable => "unstorable",
            Self::Time => "time",
            Self::Key => "key",
            Self::IdReused => "id_reused",
            Self::AckMemory => "ack_memory",
            Self::DeadLetter => "dead_letter",
            Self::ContentEncoding => "content_encoding",
            Self::Encoding => "encoding",
            Self::BodyIncomplete => "body_incomplete",
            Self::Timeout => "timeout",
            Self::BadRequest => "bad_request",
            Self::Expectation => "expectation",
            Self::TargetTooLong => "target_too_long",
            Self::HeaderTooLarge => "header_too_large",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Page => "page",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Overload => "overload",
            Self::BacklogFull => "backlog_full",
            Self::DiskFull => "disk_full",
            Self::JournalFailed => "journal_failed",
            Self::NotReady => "not_ready",
            Self::Cursor => "cursor",
            Self::UnknownEvent => "unknown_event",
            Self::NotReadable => "not_readable",
            Self::StoreUnavailable => "store_unavailable",
            Self::UnknownObject => "unknown_object",
            Self::Range => "range",
        }
    }

    /// The status of an answer to a request that is refused as a whole.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Json
            | Self::Utf8
            | Self::Depth
            | Self::Surrogate
            | Self::Key
            | Self::Encoding
            | Self::BodyIncomplete
            | Self::BadRequest
            | Self::Cursor => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden | Self::Page => StatusCode::FORBIDDEN,
            Self::UnknownType
            | Self::TooManyTypes
            | Self::NotFound
            | Self::UnknownEvent
            | Self::NotReadable
            | Self::UnknownObject => StatusCode::NOT_FOUND,
            Self::Range => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::IdReused => StatusCode::CONFLICT,
            Self::TooLarge | Self::TooManyRecords => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Schema | Self::Transform | Self::Unstorable | Self::Time | Self::AckMemory => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::DeadLetter => StatusCode::FAILED_DEPENDENCY,
            Self::ContentEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::HeaderTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::JournalFailed => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Overload | Self::BacklogFull | Self::NotReady | Self::StoreUnavailable => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }

    /// What is wrong, in words that are the same for every request.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Json => "The payload is no JSON",
            Self::Utf8 => "The payload is not UTF-8",
            Self::Depth => "The payload is nested too deeply",
            Self::Surrogate => "The payload has half of a surrogate pair",
            Self::TooLarge => "The payload is too large",
            Self::TooManyRecords => "The batch has too many records",
            Self::UnknownType => "The type is unknown",
            Self::TooManyTypes => "There are too many types",
            Self::Schema => "The payload doesn't follow the schema of its type",
            Self::Transform => "The payload can't be transformed",
            Self::Time => "The time of the event can't be read",
            Self::Unstorable => "The payload has what a store can't take",
            Self::Key => "The key can't be used",
            Self::IdReused => "The id was used for something else",
            Self::AckMemory => "The type is not acknowledged from memory",
            Self::DeadLetter => "A store refused the event",
            Self::ContentEncoding => "The content coding is not supported",
            Self::Encoding => "The body can't be decoded",
            Self::BodyIncomplete => "The body is incomplete",
            Self::Timeout => "The request came too slowly",
            Self::BadRequest => "The request is not sound HTTP",
            Self::Expectation => "The expectation can't be met",
            Self::TargetTooLong => "The target is too long",
            Self::HeaderTooLarge => "The headers are too large",
            Self::Unauthorized => "A token is needed",
            Self::Forbidden => "The token doesn't allow this",
            Self::Page => "A web page of another host may have sent this",
            Self::NotFound => "There is nothing here",
            Self::MethodNotAllowed => "The method is not allowed",
            Self::Overload => "The server has too much to do",
            Self::BacklogFull => "Too many events wait for a store",
            Self::DiskFull => "The disk is full",
            Self::JournalFailed => "The journal failed",
            Self::NotReady => "The server is not ready",
            Self::Cursor => "The cursor can't be used",
            Self::UnknownEvent => "There is no such event",
            Self::NotReadable => "The events can't be read back",
            Self::StoreUnavailable => "The store doesn't answer",
            Self::UnknownObject => "There is no such object",
            Self::Range => "The object hasn't these bytes",
        }
    }

    /// Whether the record that it refuses wasn't JSON at all.
    pub(crate) const fn means_no_json(self) -> bool {
        matches!(self, Self::Json | Self::Utf8)
    }

    /// Whether a repeat may succeed soon: answers to requests say so by `Retry-After`, those to records by `retry`.
    pub(crate) const fn is_transient(self) -> bool {
        matches!(self, Self::Overload | Self::BacklogFull | Self::NotReady | Self::StoreUnavailable)
    }
}

impl From<RefusalCode> for ErrorCode {
    fn from(code: RefusalCode) -> Self {
        match code {
            RefusalCode::Json => Self::Json,
            RefusalCode::Utf8 => Self::Utf8,
            RefusalCode::Depth => Self::Depth,
            RefusalCode::Surrogate => Self::Surrogate,
            RefusalCode::TooLarge => Self::TooLarge,
            RefusalCode::TooManyRecords => Self::TooManyRecords,
        }
    }
}

impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_code_with_its_status() {
        let page = include_str!("../../../docs/http.md");
        for code in ErrorCode::ALL {
            let row = format!("| {} | `{}` |", code.status().as_u16(), code.as_str());
            assert!(page.contains(&row), "docs/http.md lacks {row}");
        }
        let rows = page.lines().filter(|line| line.starts_with("| 4") || line.starts_with("| 5"));
        assert_eq!(
            rows.filter(|row| row.matches('`').count() >= 2 && row.contains(" | `")).count(),
            ErrorCode::ALL.len()
        );
    }

    #[test]
    fn codes_are_in_order_and_their_names_differ() {
        for (at, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, at);
            assert!(ErrorCode::ALL[..at].iter().all(|other| other.as_str() != code.as_str()), "{code:?}");
            assert!(!code.status().is_success());
        }
    }

    #[test]
    fn records_are_refused_by_the_same_names() {
        for code in RefusalCode::ALL {
            assert_eq!(ErrorCode::from(code).as_str(), code.as_str());
        }
    }
}
