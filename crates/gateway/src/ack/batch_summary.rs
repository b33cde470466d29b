//! The response to a batch.

use access::PartialStatus;
use http::StatusCode;
use serde::Serialize;

use crate::error_code::ErrorCode;
use crate::ingest::{RecordBuilder, RejectedRecord};
use crate::responses;
use http1::Response;

/// The outcome of a batch.
#[derive(Serialize)]
pub(crate) struct BatchSummary<'a> {
    accepted: u64,
    duplicates: u64,
    /// How many of the accepted records a transform has dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    filtered: Option<u64>,
    refused: &'a [RejectedRecord],
    /// How many were rejected, if the list has only the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_count: Option<u64>,
    /// How many of the rejected records may be accepted when the batch is sent again, in the list or not.
    #[serde(skip_serializing_if = "is_zero")]
    retry_later: u64,
    /// How many may be accepted alone.
    #[serde(skip_serializing_if = "is_zero")]
    retry_alone: u64,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The response to a batch whose good records are durable.
pub(crate) fn of_batch(batch: &RecordBuilder) -> Response {
    let (summary, status) = of(batch);
    responses::json(status, &summary)
}

/// The outcome of a batch whose good records are durable, and its status.
pub(crate) fn of(batch: &RecordBuilder) -> (BatchSummary<'_>, StatusCode) {
    let refused_count = batch.refused_count();
    let is_cut = refused_count > batch.refused.len() as u64;
    let summary = BatchSummary {
        accepted: batch.accepted,
        duplicates: batch.duplicates,
        filtered: (batch.filtered > 0).then_some(batch.filtered),
        refused: &batch.refused,
        refused_count: is_cut.then_some(refused_count),
        retry_later: batch.refused_for_now() - batch.refused_for_others,
        retry_alone: batch.refused_for_others,
    };
    (summary, status(batch, refused_count))
}

fn status(batch: &RecordBuilder, refused: u64) -> StatusCode {
    let no_json: u64 = ErrorCode::ALL
        .iter()
        .filter(|code| code.means_no_json())
        .map(|code| batch.refused_by_code[*code as usize])
        .sum();
    match (batch.accepted + batch.duplicates, refused) {
        (_, 0) => StatusCode::OK,
        _ if batch.is_refused_for_some => StatusCode::UNPROCESSABLE_ENTITY,
        (0, refused) if refused == no_json => StatusCode::BAD_REQUEST,
        (0, _) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => match batch.partial_status() {
            PartialStatus::MultiStatus => StatusCode::MULTI_STATUS,
            PartialStatus::Ok => StatusCode::OK,
        },
    }
}
