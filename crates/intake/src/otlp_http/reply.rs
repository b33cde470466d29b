//! Responses: `ExportLogsServiceResponse` and its siblings, and `google.rpc.Status`.

use otlp::{ExportResponse, Message, PartialSuccess, RpcStatus};

use super::envelope::Signal;
use crate::{Problem, ProblemKind, Reply, Verdicts};

/// The response to a request whose records have verdicts, in the encoding of the request.
pub(super) fn of_verdicts(signal: Signal, verdicts: &Verdicts, is_json: bool) -> Reply {
    let rejected = verdicts.rejected();
    if rejected == 0 {
        // Clients warn of a partial success, even if it rejects nothing.
        return if is_json { Reply::json(200, "{}") } else { in_protobuf(200, &ExportResponse::default()) };
    }
    let error_message = message(verdicts, rejected);
    if is_json {
        let name = match signal {
            Signal::Logs => "rejectedLogRecords",
            Signal::Traces => "rejectedSpans",
            Signal::Metrics => "rejectedDataPoints",
        };
        // JSON of protocol buffers has 64-bit numbers as text.
        let partial =
            serde_json::json!({ "partialSuccess": { name: rejected.to_string(), "errorMessage": error_message } });
        return Reply::json(200, partial.to_string());
    }
    let rejected = i64::try_from(rejected).unwrap_or(i64::MAX);
    in_protobuf(200, &ExportResponse { partial_success: Some(PartialSuccess { rejected, error_message }) })
}

fn message(verdicts: &Verdicts, rejected: usize) -> String {
    let all = verdicts.all().len();
    match verdicts.first_rejected() {
        Some((index, Some(detail))) => {
            format!(
                "{rejected} of {all} records were rejected. IntakeRecord {index}: {}: {}",
                detail.code, detail.detail
            )
        }
        _ => format!("{rejected} of {all} records were rejected"),
    }
}

/// The response to a request that is rejected as a whole.
pub(super) fn of_problem(problem: &Problem, is_json: bool) -> Reply {
    let (code, status) = (rpc_code(problem.kind), problem.status());
    let reply = if is_json {
        Reply::json(status, serde_json::json!({ "code": code, "message": problem.detail }).to_string())
    } else {
        in_protobuf(status, &RpcStatus { code, message: problem.detail.clone().into_owned() })
    };
    reply.of_problem(problem)
}

fn in_protobuf(status: u16, message: &impl Message) -> Reply {
    Reply { content_type: Some(otlp::PROTOBUF), body: message.encode_to_vec(), ..Reply::empty(status) }
}

/// The code of gRPC, which `google.rpc.Status` has: `google/rpc/code.proto`.
const fn rpc_code(kind: ProblemKind) -> i32 {
    match kind {
        ProblemKind::Invalid | ProblemKind::Empty => 3,
        ProblemKind::Timeout => 4,
        ProblemKind::NotFound => 5,
        ProblemKind::Forbidden => 7,
        ProblemKind::TooLarge => 8,
        ProblemKind::Method | ProblemKind::Unsupported => 12,
        ProblemKind::Unavailable => 14,
        ProblemKind::Unauthorized | ProblemKind::Signature => 16,
    }
}
