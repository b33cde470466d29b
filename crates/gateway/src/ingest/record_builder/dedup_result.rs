//! The duplicates that the log has found in a batch.

use eventlog::{LineRejection, Original};
use limits::REFUSALS_LISTED_MAX;

use super::RecordBuilder;
use crate::error_code::ErrorCode;
use crate::ingest::rejected_record::{RejectedRecord, Retry};
use crate::problem::Problem;

/// The detail of a line that a transform has dropped as a duplicate of a line that isn't stored.
const LEANT: &str = "a step left it out because a line before it has the same value, and that line is refused; send this one again, without that line";

impl RecordBuilder {
    /// The batch is a duplicate as a whole.
    pub(crate) fn all_came_before(&mut self) {
        self.duplicates = std::mem::take(&mut self.accepted);
        self.filtered = 0;
    }

    /// Takes over what the log has found: returns the originals of duplicates, and rejects the lines that weren't appended.
    pub(crate) fn take_met(&mut self) -> Vec<Original> {
        let eventlog::DedupResult { duplicates: again, rejected: refused, conflicts } =
            std::mem::take(&mut self.batch.result);
        let repeated = self.repeated_lines(&again);
        self.duplicates += repeated;
        self.accepted -= repeated + refused.len() as u64;
        refused.into_iter().for_each(|(number, cause)| {
            self.refuse_met(number, cause, conflicts.get(&number).map(|payload| &**payload))
        });
        // They belong among those that were rejected before the append.
        self.refused.sort_by_key(RejectedRecord::place);
        self.shorten_list();
        again.into_iter().map(|(_, earlier)| earlier).collect()
    }

    /// How many lines are duplicates as a whole. `again` has the duplicate records, in their order.
    fn repeated_lines(&self, again: &[(u32, Original)]) -> u64 {
        if again.is_empty() {
            return 0;
        }
        let mut again = again.iter().map(|(number, _)| *number as usize).peekable();
        let (mut repeated, mut end) = (0, 0);
        for line in self.batch.lines().chunk_by(|one, next| one.number == next.number) {
            end += line.len();
            let records = std::iter::from_fn(|| again.next_if(|number| *number < end)).count();
            repeated += u64::from(records == line.len());
        }
        repeated
    }

    /// Rejects the record with this number, by [`SourceNumbers`](super::source_numbers::SourceNumbers).
    fn refuse_met(&mut self, number: u32, cause: LineRejection, payload: Option<&[u8]>) {
        self.forget_filtered(number);
        let problem = match cause {
            LineRejection::IdConflict => Problem::id_reused(),
            LineRejection::DependsOnRejected => Problem::new(ErrorCode::Overload, LEANT),
        };
        let problem = self.tally_numbered(number, problem, payload);
        self.refused_by_code[problem.code as usize] += 1;
        let mut refusal = RejectedRecord::of_problem(self.sources.place(number), problem);
        let mut is_listed = self.refused.len() < 2 * REFUSALS_LISTED_MAX;
        if cause == LineRejection::DependsOnRejected {
            refusal.retry = Some(Retry::Alone);
            is_listed = self.refused_for_others < REFUSALS_LISTED_MAX as u64;
            self.refused_for_others += 1;
        }
        if is_listed {
            self.list(refusal);
        }
    }

    /// Keeps as many rejected lines as a response lists. Lines that must be sent alone come first: without the list a client couldn't send
    /// them.
    fn shorten_list(&mut self) {
        let mut others = (REFUSALS_LISTED_MAX as u64).saturating_sub(self.refused_for_others);
        self.refused.retain(|refusal| {
            let is_kept = refusal.retry == Some(Retry::Alone) || others > 0;
            others -= u64::from(is_kept && refusal.retry != Some(Retry::Alone));
            is_kept
        });
    }
}
