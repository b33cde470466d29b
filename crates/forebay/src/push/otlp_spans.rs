//! Spans as messages of OTLP.

use otlp::Message;
use otlp::attributes::KeyValue;
use otlp::trace::{CLIENT, ERROR, ExportTraces, INTERNAL, ResourceSpans, SERVER, ScopeSpans, SpanMessage, Status};
use spans::{Span, SpanKind, SpanValue};

use super::Instance;
use super::otlp_metrics::{resource, scope};

/// Spans of one request.
pub(super) const SPANS_MAX: usize = 512;

/// The body of a request with these spans.
pub(super) fn request(instance: &Instance, spans: &[Span]) -> Vec<u8> {
    let spans = spans.iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans }];
    let resource_spans = ResourceSpans { resource: Some(resource(instance)), scope_spans };
    ExportTraces { resource_spans: vec![resource_spans] }.encode_to_vec()
}

fn span(span: &Span) -> SpanMessage {
    let attribute = |(name, value): &(&str, SpanValue)| match value {
        SpanValue::Text(text) => KeyValue::text(name, text),
        SpanValue::Number(number) => KeyValue::int(name, *number),
    };
    SpanMessage {
        trace_id: span.context.trace_id.to_vec(),
        span_id: span.context.span_id.to_vec(),
        parent_span_id: span.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
        // All of them are sampled.
        flags: 1,
        name: span.name.clone(),
        kind: match span.kind {
            SpanKind::Server => SERVER,
            SpanKind::Client => CLIENT,
            SpanKind::Internal => INTERNAL,
        },
        start_time_unix_nano: nanoseconds(span.began),
        end_time_unix_nano: nanoseconds(span.ended.max(span.began)),
        attributes: span.attributes.iter().map(attribute).collect(),
        links: Vec::new(),
        status: span.has_failed.then(|| Status { message: String::new(), code: ERROR }),
    }
}

fn nanoseconds(microseconds: i64) -> u64 {
    u64::try_from(microseconds).unwrap_or(0).saturating_mul(1_000)
}
