//! Traces: `opentelemetry/proto/trace/v1/trace.proto` and `collector/trace/v1/trace_service.proto`.

use prost::Message;

use crate::attributes::{InstrumentationScope, KeyValue, Resource};

/// The kind of a span within a process.
pub const INTERNAL: i32 = 1;
/// The kind of a span that serves a request.
pub const SERVER: i32 = 2;
/// The kind of a span that calls another server.
pub const CLIENT: i32 = 3;
/// The code of a status: the work failed.
pub const ERROR: i32 = 2;

/// The body of a request.
#[derive(Clone, PartialEq, Message)]
pub struct ExportTraces {
    /// The spans of each resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// The spans of a resource.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceSpans {
    /// The resource.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Its spans.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// The spans of a scope.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeSpans {
    /// The scope.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    /// Its spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<SpanMessage>,
}

/// A piece of work. Times are nanoseconds since 1970.
#[derive(Clone, PartialEq, Message)]
pub struct SpanMessage {
    /// The trace, 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// The span, 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    /// The span of which it is a part, 8 bytes; empty if there is none.
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    /// The lowest 8 bits are the flags of W3C Trace Context.
    #[prost(fixed32, tag = "16")]
    pub flags: u32,
    /// What was done.
    #[prost(string, tag = "5")]
    pub name: String,
    /// [`INTERNAL`], [`SERVER`] or [`CLIENT`].
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// When it began.
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    /// When it ended.
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    /// Facts about it.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// Other spans that it is about.
    #[prost(message, repeated, tag = "13")]
    pub links: Vec<Link>,
    /// Whether it failed.
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
}

/// A span of this trace or another one.
#[derive(Clone, PartialEq, Message)]
pub struct Link {
    /// The trace, 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// The span, 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
}

/// The result of a span.
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    /// A message for developers.
    #[prost(string, tag = "2")]
    pub message: String,
    /// 0 unset, 1 succeeded, 2 failed ([`ERROR`]).
    #[prost(int32, tag = "3")]
    pub code: i32,
}
