//! What of a batch the log has met before.

use event::limits::REFUSALS_LISTED_MAX;
use eventlog::{LineRejection, Original};

use super::Encoder;
use crate::answer::{Refusal, Retry};
use crate::code::Code;
use crate::event_request::other_bytes;
use crate::problem::Problem;

/// What is said of a line that was left out for the sake of one that isn't stored.
const LEANT: &str = "a step left it out because a line before it has the same value, and that line is refused; send this one again, without that line";

impl Encoder {
    /// The batch came before, as a whole.
    pub(crate) fn all_came_before(&mut self) {
        self.duplicates = std::mem::take(&mut self.accepted);
        self.filtered = 0;
    }

    /// Sorts out what the log has met before: the first copies of duplicates are given, the lines that weren't taken refused.
    pub(crate) fn take_met(&mut self) -> Vec<Original> {
        let eventlog::DedupResult { duplicates: again, rejected: refused } = std::mem::take(&mut self.batch.result);
        let repeated = self.repeated_lines(&again);
        self.duplicates += repeated;
        self.accepted -= repeated + refused.len() as u64;
        refused.into_iter().for_each(|(line, cause)| self.refuse_met(line, cause));
        // They stand among those that were refused before the log was asked.
        self.refused.sort_by_key(Refusal::line);
        self.shorten_list();
        again.into_iter().map(|(_, earlier)| earlier).collect()
    }

    /// How many lines came before as a whole. `again` has the records that did, in their order.
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

    fn refuse_met(&mut self, line: u32, cause: LineRejection) {
        self.forget_filtered(line);
        let problem = match cause {
            LineRejection::IdConflict => *other_bytes(),
            LineRejection::DependsOnRejected => Problem::new(Code::Overload, LEANT),
        };
        self.refused_by_code[problem.code as usize] += 1;
        let mut refusal = Refusal::of_problem(line, problem);
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

    /// Keeps as many refusals as are listed. Before all those of lines that are to be sent alone: a client that isn't told
    /// which these are can't send them.
    fn shorten_list(&mut self) {
        let mut others = (REFUSALS_LISTED_MAX as u64).saturating_sub(self.refused_for_others);
        self.refused.retain(|refusal| {
            let is_kept = refusal.retry == Some(Retry::Alone) || others > 0;
            others -= u64::from(is_kept && refusal.retry != Some(Retry::Alone));
            is_kept
        });
    }
}
