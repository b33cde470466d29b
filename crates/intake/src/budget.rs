//! Bounds what one request can become.

use limits::BATCH_BYTES_MAX;

use crate::Problem;

/// Some protocols send a part once that belongs to each of their records, such as labels. A small body of many records would become
/// terabytes, so the payloads of a request may have four times the bytes of the largest body.
const MADE_BYTES_MAX: usize = 4 * BATCH_BYTES_MAX;

/// What the payloads of a request may still have.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self { left: MADE_BYTES_MAX }
    }

    /// Counts a payload.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), Problem> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let detail = format!(
                "the records of the request have more than {MADE_BYTES_MAX} bytes with the parts they share: send fewer at a time"
            );
            Problem::too_large(detail)
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_spent_once() {
        let mut budget = Budget::new();
        assert_eq!(budget.spend(MADE_BYTES_MAX - 1), Ok(()));
        assert_eq!(budget.spend(1), Ok(()));
        assert_eq!(budget.spend(1).map_err(|problem| problem.status()), Err(413));
    }
}
