//! The messages of OTLP, the OpenTelemetry protocol, as own structs: logs, metrics and traces as an exporter sends them over HTTP.
//!
//! Names, field numbers and types are those of the public definitions, release 1.x, at
//! <https://github.com/open-telemetry/opentelemetry-proto>; each module names its file. Only the fields that Forebay uses are here:
//! a decoder skips fields that it doesn't know. Release 1.0.0 froze the numbers.
//!
//! This crate does no I/O and reads no clock.

pub mod attributes;
pub mod logs;
pub mod metrics;
pub mod trace;

pub use prost::{DecodeError, Message};

/// The media type of a request and a response in protobuf.
pub const PROTOBUF: &str = "application/x-protobuf";
/// The path of metrics, below the URL of a collector.
pub const METRICS_PATH: &str = "/v1/metrics";
/// The path of logs.
pub const LOGS_PATH: &str = "/v1/logs";
/// The path of traces.
pub const TRACES_PATH: &str = "/v1/traces";

/// The part of a request that the collector has rejected, as it answers with status 200. All signals have the same numbers.
#[derive(Clone, PartialEq, Message)]
pub struct ExportResponse {
    /// Nothing if all was accepted.
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// What was rejected.
#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    /// Log records, data points or spans that the collector has rejected.
    #[prost(int64, tag = "1")]
    pub rejected: i64,
    /// Why.
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// Why a request is rejected: `google/rpc/status.proto`.
#[derive(Clone, PartialEq, Message)]
pub struct RpcStatus {
    /// A code of gRPC.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// A message for developers.
    #[prost(string, tag = "2")]
    pub message: String,
}

#[cfg(test)]
mod tests;
