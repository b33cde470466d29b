//! Logs: `opentelemetry/proto/logs/v1/logs.proto` and `collector/logs/v1/logs_service.proto`.

use prost::Message;

use crate::attributes::{AnyValue, InstrumentationScope, KeyValue, Resource};

/// The body of a request.
#[derive(Clone, PartialEq, Message)]
pub struct ExportLogs {
    /// The records of each resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_logs: Vec<ResourceLogs>,
}

/// The records of a resource.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceLogs {
    /// The resource.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Its records.
    #[prost(message, repeated, tag = "2")]
    pub scope_logs: Vec<ScopeLogs>,
}

/// The records of a scope.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeLogs {
    /// The scope.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// Its records.
    #[prost(message, repeated, tag = "2")]
    pub log_records: Vec<LogRecord>,
}

/// A record of a log. Times are nanoseconds since 1970.
#[derive(Clone, PartialEq, Message)]
pub struct LogRecord {
    /// When it happened; 0 if that isn't known.
    #[prost(fixed64, tag = "1")]
    pub time_unix_nano: u64,
    /// When it was collected.
    #[prost(fixed64, tag = "11")]
    pub observed_time_unix_nano: u64,
    /// 1 to 24: trace, debug, info, warn, error and fatal have four numbers each.
    #[prost(int32, tag = "2")]
    pub severity_number: i32,
    /// The severity as its source names it.
    #[prost(string, tag = "3")]
    pub severity_text: String,
    /// The message.
    #[prost(message, optional, tag = "5")]
    pub body: Option<AnyValue>,
    /// Facts about it.
    #[prost(message, repeated, tag = "6")]
    pub attributes: Vec<KeyValue>,
    /// The lowest 8 bits are the flags of W3C Trace Context.
    #[prost(fixed32, tag = "8")]
    pub flags: u32,
    /// The trace, 16 bytes; or empty.
    #[prost(bytes = "vec", tag = "9")]
    pub trace_id: Vec<u8>,
    /// The span, 8 bytes; or empty.
    #[prost(bytes = "vec", tag = "10")]
    pub span_id: Vec<u8>,
}
