//! How many events, and of how many bytes, a transform may split a request into.

use limits::{BATCH_RECORDS_MAX, PAGE_BYTES, RECORD_OVERHEAD_BYTES_MAX};

use crate::error_code::ErrorCode;
use crate::problem::Problem;

/// The remaining room of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestBudget {
    records: usize,
    bytes: usize,
}

impl RequestBudget {
    /// The room of a request with at most `bytes_max` bytes of records, of which it has `records` with `bytes` already.
    pub(crate) const fn remaining(records: usize, bytes: usize, bytes_max: usize) -> Self {
        Self { records: BATCH_RECORDS_MAX.saturating_sub(records), bytes: bytes_max.saturating_sub(bytes) }
    }

    /// # Errors
    /// There is no room for so many records with payloads of so many bytes.
    pub(super) fn check(self, records: usize, bytes: usize) -> Result<(), Problem> {
        if records > self.records {
            let detail = format!(
                "transform steps split the batch into more than {BATCH_RECORDS_MAX} events: send it in smaller \
                 batches"
            );
            return Err(Problem::new(ErrorCode::TooManyRecords, detail));
        }
        if bytes + records * RECORD_OVERHEAD_BYTES_MAX + PAGE_BYTES > self.bytes {
            let detail = "the events that transform steps create from the batch are too large together: send it in \
                smaller batches";
            return Err(Problem::new(ErrorCode::TooLarge, detail));
        }
        Ok(())
    }
}
