//! Why a request or a record is rejected, as a stable name, and the HTTP status that goes with it. This is the one place that maps the two.
//! The causes that `docs/reference/errors.md` shows are in the module `reference`, the remedies in `remedy`.

#[cfg(test)]
mod reference;
mod remedy;

use http::StatusCode;
use json::RejectionCode;

/// The stable name of a reason. Clients match on [`ErrorCode::as_str`]: a name is never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The text is not JSON.
    Json,
    /// The text is not UTF-8.
    Utf8,
    /// Arrays and objects are nested deeper than allowed.
    Depth,
    /// A `\u` escape names half of a surrogate pair.
    Surrogate,
    /// The event or the batch has more bytes than allowed.
    TooLarge,
    /// The batch has more records than allowed.
    TooManyRecords,
    /// The request or the record isn't what its sender's protocol describes.
    Record,
    /// The configuration doesn't name the type.
    UnknownType,
    /// The limit of types under `"*"` is reached.
    TooManyTypes,
    /// The payload violates the schema of its type.
    Schema,
    /// A step of its type's transform fails on the payload.
    Transform,
    /// The payload has a value that not every store can hold.
    Unstorable,
    /// The time in the payload cannot be read, and its type rejects such events.
    Time,
    /// The key, or the id in the payload, is invalid.
    Key,
    /// The key, or the id in the payload, was already used for other bytes.
    IdReused,
    /// Events of the type are not acknowledged before they are durable.
    AckMemory,
    /// A sink has rejected the event permanently; it is still durable.
    DeadLetter,
    /// The body's coding is not supported.
    ContentEncoding,
    /// The body violates the format of its coding.
    Encoding,
    /// The body is incomplete.
    BodyIncomplete,
    /// The request arrived too slowly.
    Timeout,
    /// The request is not valid HTTP.
    BadRequest,
    /// The request has an unsupported expectation.
    Expectation,
    /// The request line has more bytes than allowed.
    TargetTooLong,
    /// The request line and headers have more bytes or lines than allowed.
    HeaderTooLarge,
    /// The request needs a token, and has no valid one.
    Unauthorized,
    /// The token doesn't allow this.
    Forbidden,
    /// The request has no valid signature.
    Signature,
    /// A web page of another origin may have sent the request, which needs no token.
    CrossOrigin,
    /// There is nothing at this path.
    NotFound,
    /// The path doesn't accept this method.
    MethodNotAllowed,
    /// Too many bytes are waiting to become durable.
    Overload,
    /// A sink of the type has reached `max_backlog`.
    BacklogFull,
    /// The disk is full.
    DiskFull,
    /// The journal failed.
    JournalFailed,
    /// The server is stopping or has failed.
    NotReady,
    /// The cursor was not issued for this query.
    Cursor,
    /// No readable store has the event.
    UnknownEvent,
    /// No route of the events goes to a readable store.
    NotReadable,
    /// The store doesn't answer.
    StoreUnavailable,
    /// There is no such object.
    UnknownObject,
    /// The object doesn't have the requested bytes.
    Range,
    /// No service listens to the subject of a bridge.
    NoWorker,
    /// There is no connection to the bus.
    BusUnavailable,
    /// Too many requests of a bridge wait.
    BridgeBusy,
    /// The service gave no answer in time.
    BridgeTimeout,
    /// The connection to the bus was lost after the request was sent.
    BusLost,
    /// The service's answer can't be read.
    BadReply,
    /// The servers of the bus don't allow requests to the subject.
    BusRefused,
    /// The service has answered, and there was no memory for the answer.
    ReplyDropped,
}

impl ErrorCode {
    /// Each code with its name, the status of a request that is rejected as a whole, and its title.
    const ROWS: [(Self, &'static str, StatusCode, &'static str); Self::ReplyDropped as usize + 1] = [
        (Self::Json, "json", StatusCode::BAD_REQUEST, "Invalid JSON"),
        (Self::Utf8, "utf8", StatusCode::BAD_REQUEST, "Invalid UTF-8"),
        (Self::Depth, "depth", StatusCode::BAD_REQUEST, "JSON nested too deeply"),
        (Self::Surrogate, "surrogate", StatusCode::BAD_REQUEST, "Unpaired surrogate"),
        (Self::TooLarge, "too_large", StatusCode::PAYLOAD_TOO_LARGE, "Payload too large"),
        (Self::TooManyRecords, "too_many_records", StatusCode::PAYLOAD_TOO_LARGE, "Too many records"),
        (Self::Record, "record", StatusCode::BAD_REQUEST, "Invalid record"),
        (Self::UnknownType, "unknown_type", StatusCode::NOT_FOUND, "Unknown type"),
        (Self::TooManyTypes, "too_many_types", StatusCode::NOT_FOUND, "Too many types"),
        (Self::Schema, "schema", StatusCode::UNPROCESSABLE_ENTITY, "Schema validation failed"),
        (Self::Transform, "transform", StatusCode::UNPROCESSABLE_ENTITY, "Transform failed"),
        (Self::Unstorable, "unstorable", StatusCode::UNPROCESSABLE_ENTITY, "Payload cannot be stored"),
        (Self::Time, "time", StatusCode::UNPROCESSABLE_ENTITY, "Invalid event time"),
        (Self::Key, "key", StatusCode::BAD_REQUEST, "Invalid event id or key"),
        (Self::IdReused, "id_reused", StatusCode::CONFLICT, "Event id already used"),
        (Self::AckMemory, "ack_memory", StatusCode::UNPROCESSABLE_ENTITY, "Memory acknowledgement not allowed"),
        (Self::DeadLetter, "dead_letter", StatusCode::FAILED_DEPENDENCY, "Event rejected by a sink"),
        (Self::ContentEncoding, "content_encoding", StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported content encoding"),
        (Self::Encoding, "encoding", StatusCode::BAD_REQUEST, "Body decoding failed"),
        (Self::BodyIncomplete, "body_incomplete", StatusCode::BAD_REQUEST, "Incomplete body"),
        (Self::Timeout, "timeout", StatusCode::REQUEST_TIMEOUT, "Request timeout"),
        (Self::BadRequest, "bad_request", StatusCode::BAD_REQUEST, "Malformed HTTP request"),
        (Self::Expectation, "expectation", StatusCode::EXPECTATION_FAILED, "Expectation failed"),
        (Self::TargetTooLong, "target_too_long", StatusCode::URI_TOO_LONG, "URI too long"),
        (
            Self::HeaderTooLarge,
            "header_too_large",
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "Request headers too large",
        ),
        (Self::Unauthorized, "unauthorized", StatusCode::UNAUTHORIZED, "Authentication required"),
        (Self::Forbidden, "forbidden", StatusCode::FORBIDDEN, "Insufficient scope"),
        (Self::Signature, "signature", StatusCode::UNAUTHORIZED, "Invalid signature"),
        (Self::CrossOrigin, "cross_origin", StatusCode::FORBIDDEN, "Cross-origin request rejected"),
        (Self::NotFound, "not_found", StatusCode::NOT_FOUND, "Not found"),
        (Self::MethodNotAllowed, "method_not_allowed", StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
        (Self::Overload, "overload", StatusCode::SERVICE_UNAVAILABLE, "Service overloaded"),
        (Self::BacklogFull, "backlog_full", StatusCode::SERVICE_UNAVAILABLE, "Backlog full"),
        (Self::DiskFull, "disk_full", StatusCode::INSUFFICIENT_STORAGE, "Disk full"),
        (Self::JournalFailed, "journal_failed", StatusCode::INTERNAL_SERVER_ERROR, "Journal failed"),
        (Self::NotReady, "not_ready", StatusCode::SERVICE_UNAVAILABLE, "Service not ready"),
        (Self::Cursor, "cursor", StatusCode::BAD_REQUEST, "Invalid cursor"),
        (Self::UnknownEvent, "unknown_event", StatusCode::NOT_FOUND, "Event not found"),
        (Self::NotReadable, "not_readable", StatusCode::NOT_FOUND, "Events not readable"),
        (Self::StoreUnavailable, "store_unavailable", StatusCode::SERVICE_UNAVAILABLE, "Store unavailable"),
        (Self::UnknownObject, "unknown_object", StatusCode::NOT_FOUND, "Object not found"),
        (Self::Range, "range", StatusCode::RANGE_NOT_SATISFIABLE, "Range not satisfiable"),
        (Self::NoWorker, "no_worker", StatusCode::SERVICE_UNAVAILABLE, "No service"),
        (Self::BusUnavailable, "bus_unavailable", StatusCode::SERVICE_UNAVAILABLE, "Bus unavailable"),
        (Self::BridgeBusy, "bridge_busy", StatusCode::SERVICE_UNAVAILABLE, "Too many requests wait"),
        (Self::BridgeTimeout, "bridge_timeout", StatusCode::GATEWAY_TIMEOUT, "Service timeout"),
        (Self::BusLost, "bus_lost", StatusCode::BAD_GATEWAY, "Connection to the bus lost"),
        (Self::BadReply, "bad_reply", StatusCode::BAD_GATEWAY, "Unusable answer of the service"),
        (Self::BusRefused, "bus_refused", StatusCode::BAD_GATEWAY, "Request rejected by the bus"),
        (Self::ReplyDropped, "reply_dropped", StatusCode::BAD_GATEWAY, "No memory for the answer"),
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

    /// The title, which is the same for every request.
    pub(crate) const fn title(self) -> &'static str {
        Self::ROWS[self as usize].3
    }

    /// Whether there is something wrong with the event itself: such events are stored as `refused_to` says.
    #[must_use]
    pub const fn is_about_the_event(self) -> bool {
        matches!(self.status().as_u16(), 400 | 409 | 422)
    }

    /// Whether the rejected record wasn't JSON at all.
    pub(crate) const fn means_no_json(self) -> bool {
        matches!(self, Self::Json | Self::Utf8)
    }

    /// Whether a retry may succeed soon: responses to requests then have `Retry-After`, those to records `retry`.
    pub(crate) const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Overload
                | Self::BacklogFull
                | Self::NotReady
                | Self::StoreUnavailable
                | Self::NoWorker
                | Self::BusUnavailable
                | Self::BridgeBusy
        )
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
            RejectionCode::Record => Self::Record,
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
    fn codes_are_ordered_and_names_are_unique() {
        for (at, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, at);
            assert!(ErrorCode::ALL[..at].iter().all(|other| other.as_str() != code.as_str()), "{code:?}");
            assert!(!code.status().is_success());
        }
    }

    #[test]
    fn records_and_requests_share_code_names() {
        for code in RejectionCode::ALL {
            assert_eq!(ErrorCode::from(code).as_str(), code.as_str());
        }
    }
}
