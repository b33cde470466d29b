//! What of a batch the log has met before.

use event::limits::REFUSALS_LISTED_MAX;
use eventlog::{Cause, Earlier};

use super::Encoder;
use crate::answer::Refusal;
use crate::code::Code;
use crate::event_request::other_bytes;
use crate::problem::Problem;

/// What is said of a line that was left out for the sake of one that isn't stored.
const LEANT: &str =
    "a step left it out because a line before it has the same value, and that line is refused; send this one again";

impl Encoder {
    /// The batch came before, as a whole.
    pub(crate) fn all_came_before(&mut self) {
        self.duplicates = std::mem::take(&mut self.accepted);
        self.filtered = 0;
    }

    /// Sorts out what the log has met before: the first copies of duplicates are given, the lines that weren't taken refused.
    pub(crate) fn take_met(&mut self) -> Vec<Earlier> {
        let (again, refused) = (std::mem::take(&mut self.batch.again), std::mem::take(&mut self.batch.refused));
        let mut repeated: Vec<u32> = again.iter().map(|(number, _)| self.batch.line_of(*number)).collect();
        repeated.dedup();
        self.duplicates += repeated.len() as u64;
        self.accepted -= (repeated.len() + refused.len()) as u64;
        refused.into_iter().for_each(|(line, cause)| self.refuse_met(line, cause));
        // They stand among those that were refused before the log was asked.
        self.refused.sort_by_key(Refusal::line);
        self.refused.truncate(REFUSALS_LISTED_MAX);
        again.into_iter().map(|(_, earlier)| earlier).collect()
    }

    fn refuse_met(&mut self, line: u32, cause: Cause) {
        self.forget_filtered(line);
        let problem = match cause {
            Cause::OtherBytes => *other_bytes(),
            Cause::Leaning => Problem::new(Code::Overload, LEANT),
        };
        self.refused_by_code[problem.code as usize] += 1;
        if self.refused.len() < 2 * REFUSALS_LISTED_MAX {
            self.list(Refusal::of_problem(line, problem));
        }
    }
}
