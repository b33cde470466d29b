//! Why a request or a record is rejected, as a stable name, and the HTTP status that goes with it. This is the one place that maps the two.

use http::StatusCode;
use json::RejectionCode;

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
    /// A web page of another origin may have sent the request, which needs no token.
    CrossOrigin,
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
    /// Each code with its name, the status of a request that is rejected as a whole, and what is wrong in words that are the same for every
    /// request.
    const ROWS: [(Self, &'static str, StatusCode, &'static str); Self::Range as usize + 1] = [
        (Self::Json, "json", StatusCode::BAD_REQUEST, "The payload is no JSON"),
        (Self::Utf8, "utf8", StatusCode::BAD_REQUEST, "The payload is not UTF-8"),
        (Self::Depth, "depth", StatusCode::BAD_REQUEST, "The payload is nested too deeply"),
        (Self::Surrogate, "surrogate", StatusCode::BAD_REQUEST, "The payload has half of a surrogate pair"),
        (Self::TooLarge, "too_large", StatusCode::PAYLOAD_TOO_LARGE, "The payload is too large"),
        (Self::TooManyRecords, "too_many_records", StatusCode::PAYLOAD_TOO_LARGE, "The batch has too many records"),
        (Self::UnknownType, "unknown_type", StatusCode::NOT_FOUND, "The type is unknown"),
        (Self::TooManyTypes, "too_many_types", StatusCode::NOT_FOUND, "There are too many types"),
        (Self::Schema, "schema", StatusCode::UNPROCESSABLE_ENTITY, "The payload doesn't follow the schema of its type"),
        (Self::Transform, "transform", StatusCode::UNPROCESSABLE_ENTITY, "The payload can't be transformed"),
        (Self::Unstorable, "unstorable", StatusCode::UNPROCESSABLE_ENTITY, "The payload has what a store can't take"),
        (Self::Time, "time", StatusCode::UNPROCESSABLE_ENTITY, "The time of the event can't be read"),
        (Self::Key, "key", StatusCode::BAD_REQUEST, "The key can't be used"),
        (Self::IdReused, "id_reused", StatusCode::CONFLICT, "The id was used for something else"),
        (Self::AckMemory, "ack_memory", StatusCode::UNPROCESSABLE_ENTITY, "The type is not acknowledged from memory"),
        (Self::DeadLetter, "dead_letter", StatusCode::FAILED_DEPENDENCY, "A store refused the event"),
        (
            Self::ContentEncoding,
            "content_encoding",
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The content coding is not supported",
        ),
        (Self::Encoding, "encoding", StatusCode::BAD_REQUEST, "The body can't be decoded"),
        (Self::BodyIncomplete, "body_incomplete", StatusCode::BAD_REQUEST, "The body is incomplete"),
        (Self::Timeout, "timeout", StatusCode::REQUEST_TIMEOUT, "The request came too slowly"),
        (Self::BadRequest, "bad_request", StatusCode::BAD_REQUEST, "The request is not sound HTTP"),
        (Self::Expectation, "expectation", StatusCode::EXPECTATION_FAILED, "The expectation can't be met"),
        (Self::TargetTooLong, "target_too_long", StatusCode::URI_TOO_LONG, "The target is too long"),
        (
            Self::HeaderTooLarge,
            "header_too_large",
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "The headers are too large",
        ),
        (Self::Unauthorized, "unauthorized", StatusCode::UNAUTHORIZED, "A token is needed"),
        (Self::Forbidden, "forbidden", StatusCode::FORBIDDEN, "The token doesn't allow this"),
        (Self::CrossOrigin, "cross_origin", StatusCode::FORBIDDEN, "A web page of another host may have sent this"),
        (Self::NotFound, "not_found", StatusCode::NOT_FOUND, "There is nothing here"),
        (Self::MethodNotAllowed, "method_not_allowed", StatusCode::METHOD_NOT_ALLOWED, "The method is not allowed"),
        (Self::Overload, "overload", StatusCode::SERVICE_UNAVAILABLE, "The server has too much to do"),
        (Self::BacklogFull, "backlog_full", StatusCode::SERVICE_UNAVAILABLE, "Too many events wait for a store"),
        (Self::DiskFull, "disk_full", StatusCode::INSUFFICIENT_STORAGE, "The disk is full"),
        (Self::JournalFailed, "journal_failed", StatusCode::INTERNAL_SERVER_ERROR, "The journal failed"),
        (Self::NotReady, "not_ready", StatusCode::SERVICE_UNAVAILABLE, "The server is not ready"),
        (Self::Cursor, "cursor", StatusCode::BAD_REQUEST, "The cursor can't be used"),
        (Self::UnknownEvent, "unknown_event", StatusCode::NOT_FOUND, "There is no such event"),
        (Self::NotReadable, "not_readable", StatusCode::NOT_FOUND, "The events can't be read back"),
        (Self::StoreUnavailable, "store_unavailable", StatusCode::SERVICE_UNAVAILABLE, "The store doesn't answer"),
        (Self::UnknownObject, "unknown_object", StatusCode::NOT_FOUND, "There is no such object"),
        (Self::Range, "range", StatusCode::RANGE_NOT_SATISFIABLE, "The object hasn't these bytes"),
    ];

    /// Every code.
    pub const ALL: [Self; Self::ROWS.len()] = {
        let (mut all, mut at) = ([Self::Json; Self::ROWS.len()], 0);
        while at < all.len() {
            all[at] = Self::ROWS[at].0;
            assert!(all[at] as usize == at, "rows are in the order of the codes");
            at += 1;
        }
        all
    };

    /// The name as clients see it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        Self::ROWS[self as usize].1
    }

    /// The status of the response to a request that is rejected as a whole.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        Self::ROWS[self as usize].2
    }

    /// What is wrong, in words that are the same for every request.
    pub(crate) const fn title(self) -> &'static str {
        Self::ROWS[self as usize].3
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

impl From<RejectionCode> for ErrorCode {
    fn from(code: RejectionCode) -> Self {
        match code {
            RejectionCode::Json => Self::Json,
            RejectionCode::Utf8 => Self::Utf8,
            RejectionCode::Depth => Self::Depth,
            RejectionCode::Surrogate => Self::Surrogate,
            RejectionCode::TooLarge => Self::TooLarge,
            RejectionCode::TooManyRecords => Self::TooManyRecords,
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
        for code in RejectionCode::ALL {
            assert_eq!(ErrorCode::from(code).as_str(), code.as_str());
        }
    }
}
