//! Which lines of a block are loaded: those that match a regular expression, and of these those that meet a
//! condition.

use std::ops::Range;

use expression::Expression;
use json::RecordRejection;
use memchr::memchr;

use super::filter::LineFilter;

/// The conditions for a line. Without any, every line is selected.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub(super) filter: Option<LineFilter>,
    pub(super) condition: Option<Expression>,
}

/// Why the condition says neither yes nor no to a line.
pub(super) struct Undecided {
    /// The rejection's code if the line is no JSON, as the server would name it; else `where`.
    pub(super) code: &'static str,
    pub(super) detail: String,
}

/// The result of the condition.
enum Match {
    Taken,
    PassedOver,
    Undecided(Undecided),
}

impl Selection {
    pub(super) const fn takes_all(&self) -> bool {
        self.filter.is_none() && self.condition.is_none()
    }

    /// Returns each selected line as its place in the block, with its line break; and each undecided line.
    pub(super) fn lines<E>(
        &self,
        block: &[u8],
        mut take: impl FnMut(Range<usize>),
        mut undecided: impl FnMut(Range<usize>, &Undecided) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut failed = Ok(());
        let mut judge = |line: Range<usize>| {
            if failed.is_err() {
                return;
            }
            match self.judge(&block[line.clone()]) {
                Match::Taken => take(line),
                Match::PassedOver => {}
                Match::Undecided(why) => failed = undecided(line, &why),
            }
        };
        match &self.filter {
            Some(filter) => filter.lines(block, judge),
            None => each_line(block, &mut judge),
        }
        failed
    }

    /// How many lines are selected, if there is no condition to evaluate.
    pub(super) fn count_matching(&self, block: &[u8]) -> Option<u64> {
        match (&self.filter, &self.condition) {
            (Some(filter), None) => Some(filter.count(block)),
            _ => None,
        }
    }

    fn judge(&self, line: &[u8]) -> Match {
        let Some(condition) = &self.condition else { return Match::Taken };
        let line = line.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(line);
        if line.trim_ascii().is_empty() {
            // No event: it is ignored.
            return Match::PassedOver;
        }
        match json::check(line) {
            Ok(text) => match condition.holds(text) {
                Ok(true) => Match::Taken,
                Ok(false) => Match::PassedOver,
                Err(error) => Match::Undecided(Undecided { code: "where", detail: error.to_string() }),
            },
            Err(error) => {
                let detail = error.to_string();
                Match::Undecided(Undecided { code: RecordRejection::of_json(0, error).code.as_str(), detail })
            }
        }
    }
}

fn each_line(block: &[u8], mut take: impl FnMut(Range<usize>)) {
    let mut start = 0;
    while start < block.len() {
        let end = memchr(b'\n', &block[start..]).map_or(block.len(), |end| start + end + 1);
        take(start..end);
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn select(filter: &str, condition: &str, block: &str) -> (Vec<String>, Vec<String>) {
        let filter = (!filter.is_empty()).then(|| filter.parse().unwrap());
        let condition = (!condition.is_empty()).then(|| condition.parse().unwrap());
        let (mut taken, mut open) = (Vec::new(), Vec::new());
        let take = |line: Range<usize>| taken.push(block[line].to_owned());
        let Ok(()) = Selection { filter, condition }.lines(block.as_bytes(), take, |line, why| {
            open.push(format!("{} {}", why.code, &block[line]));
            Ok::<_, Infallible>(())
        });
        (taken, open)
    }

    #[test]
    fn condition_is_evaluated_on_matching_lines() {
        let block = "{\"a\":1}\r\n\n {\"a\":2}\n{\"a\":\"x\"}\n \t\nno\n{\"a\":3}";
        assert_eq!(select("", "", block).0.concat(), block);
        let (taken, open) = select("", "a > 1", block);
        assert_eq!(taken, [" {\"a\":2}\n", "{\"a\":3}"]);
        assert_eq!(open, ["where {\"a\":\"x\"}\n", "json no\n"]);
        let (taken, open) = select("[12]", "a > 1", block);
        assert_eq!((taken, open), (vec![" {\"a\":2}\n".to_owned()], vec![]));
    }

    #[test]
    fn callback_can_end_the_selection() {
        let condition = Some("nope > 1".parse().unwrap());
        let mut calls = 0;
        let ended = Selection { filter: None, condition }.lines(
            b"1\n2\n",
            |_| {},
            |_, _| {
                calls += 1;
                Err("enough")
            },
        );
        assert_eq!((ended, calls), (Err("enough"), 1));
    }
}
