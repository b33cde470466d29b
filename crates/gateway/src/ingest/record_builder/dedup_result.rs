//! The duplicates that the log has found in a batch.

use eventlog::{LineRejection, Original};
use limits::REFUSALS_LISTED_MAX;

use super::RecordBuilder;
use crate::error_code::ErrorCode;
use crate::ingest::rejected_record::{RejectedRecord, Retry};
use crate::problem::Problem;

/// The detail of a line that a transform has dropped as a duplicate of a line that isn't stored.
const FILTERED_FOR_REJECTED: &str = "`dedupe` filtered this record as a duplicate of an earlier record, but that record was \
                     rejected; resend this record in its own request";

impl RecordBuilder {
    /// The batch is a duplicate as a whole.
    pub(crate) fn count_all_as_duplicates(&mut self) {
        self.duplicates = std::mem::take(&mut self.accepted);
        self.filtered = 0;
    }

    /// Applies the dedup result: returns the originals of duplicates, and rejects the lines that weren't appended.
    pub(crate) fn take_originals(&mut self) -> Vec<Original> {
        let eventlog::DedupResult { duplicates, rejected, conflicts } = std::mem::take(&mut self.batch.result);
        let repeated = self.repeated_lines(&duplicates);
        self.duplicates += repeated;
        self.accepted -= repeated + rejected.len() as u64;
        rejected.into_iter().for_each(|(number, cause)| {
            self.reject_line(number, cause, conflicts.get(&number).map(|payload| &**payload))
        });
        // They belong among those that were rejected before the append.
        self.refused.sort_by_key(RejectedRecord::place);
        self.shorten_list();
        duplicates.into_iter().map(|(_, original)| original).collect()
    }

    /// How many lines are duplicates as a whole. `duplicates` has the duplicate records, in their order.
    fn repeated_lines(&self, duplicates: &[(u32, Original)]) -> u64 {
        if duplicates.is_empty() {
            return 0;
        }
        let mut duplicates = duplicates.iter().map(|(number, _)| *number as usize).peekable();
        let (mut repeated, mut end) = (0, 0);
        for line in self.batch.lines().chunk_by(|one, next| one.number == next.number) {
            end += line.len();
            let records = std::iter::from_fn(|| duplicates.next_if(|number| *number < end)).count();
            repeated += u64::from(records == line.len());
        }
        repeated
    }

    /// Rejects the record with this number, by [`SourceNumbers`](super::source_numbers::SourceNumbers).
    fn reject_line(&mut self, number: u32, cause: LineRejection, payload: Option<&[u8]>) {
        self.forget_filtered(number);
        let problem = match cause {
            LineRejection::IdConflict => Problem::id_reused(),
            LineRejection::DependsOnRejected => Problem::new(ErrorCode::Overload, FILTERED_FOR_REJECTED),
        };
        let problem = self.tally_numbered(number, problem, payload);
        self.refused_by_code[problem.code as usize] += 1;
        self.note_verdict(self.sources.place(number).0, &problem);
        let (line, value) = self.sources.place(number);
        let mut refusal = RejectedRecord::of_problem(line, value, problem);
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
