//! Questions whether requests are on disk. Every success says so, so each answer is yes.

use std::fmt::Write;

use json::parts;
use limits::BATCH_RECORDS_MAX;

use super::replies;
use crate::{IntakeCall, Problem, Records, Reply, Stop, Verdicts};

/// A request with such questions.
#[derive(Debug, Default)]
pub(super) struct Acks {
    /// The members of the answer.
    answers: String,
}

impl IntakeCall for Acks {
    fn decode(&mut self, body: &[u8], _: &mut Records<'_>) -> Result<(), Stop> {
        let body = json::check(body).map_err(|error| Problem::invalid(error.to_string()))?;
        let numbers = parts::member(body, "acks").filter(|numbers| numbers.starts_with('['));
        let numbers = numbers.ok_or_else(|| Problem::invalid("`acks` is no array: send the numbers of requests"))?;
        self.answers.clear();
        for (at, number) in parts::elements(numbers).enumerate() {
            let number: u64 =
                number.parse().map_err(|_| Problem::invalid("`acks` has an element that is no number"))?;
            if at == BATCH_RECORDS_MAX {
                let detail = format!("`acks` has more than {BATCH_RECORDS_MAX} numbers: send fewer");
                return Err(Problem::too_large(detail).into());
            }
            let comma = if at == 0 { "" } else { "," };
            // Writing to a string can't fail.
            let _ = write!(self.answers, r#"{comma}"{number}":true"#);
        }
        Ok(())
    }

    fn kept_bytes(&self) -> usize {
        // The answer is another copy.
        2 * self.answers.len()
    }

    fn response(&self, _: &Verdicts) -> Reply {
        Reply::json(200, format!(r#"{{"acks":{{{}}}}}"#, self.answers))
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        replies::refusal(problem, None)
    }
}
