//! The server's answer about a batch.

use json::batch::{Form, Splitter};
use serde::Deserialize;

/// The answer to a batch that was accepted, at least as a whole.
#[derive(Debug, Deserialize)]
pub(super) struct BatchResult {
    pub(super) accepted: u64,
    #[serde(default)]
    pub(super) duplicates: u64,
    /// How many of those that were accepted are left out by a step of their type.
    #[serde(default)]
    filtered: u64,
    /// The listed rejected lines, ascending.
    pub(super) refused: Vec<RefusedLine>,
    /// The number of all of them, if there are more than listed.
    refused_count: Option<u64>,
    /// How many of them may be accepted when the batch is sent again.
    #[serde(default)]
    retry_later: u64,
    /// How many may be accepted when each is sent alone.
    #[serde(default)]
    retry_alone: u64,
}

/// How to resend a rejected line that may be accepted unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Retry {
    Later,
    Alone,
}

/// Lines of a batch that have to be sent alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AloneLines {
    /// In the body, from 1, ascending.
    pub(super) lines: Vec<usize>,
    /// There are more that aren't listed.
    pub(super) has_more: bool,
}

/// A rejected line.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct RefusedLine {
    /// In the body, from 1.
    pub(super) line: usize,
    pub(super) code: String,
    #[serde(default)]
    pub(super) detail: String,
    #[serde(default)]
    retry: Option<Retry>,
}

impl BatchResult {
    /// From an answer with status 200, 207, 400 or 422; none if it is about the request and not about its lines.
    pub(super) fn parse(answer: &[u8], body: &[u8]) -> Option<Self> {
        let mut result: Self = serde_json::from_slice(answer).ok()?;
        if result.refused_count() > result.refused.len() as u64 {
            result.complete(body);
        }
        Some(result)
    }

    /// How many lines were rejected.
    pub(super) fn refused_count(&self) -> u64 {
        self.refused_count.unwrap_or(self.refused.len() as u64)
    }

    /// Why the batch is to be sent again unchanged, if some of its lines are for later: the accepted ones are duplicates then.
    pub(super) fn wants_again(&self) -> Option<String> {
        let first = || self.refused.iter().find(|refused| refused.retry == Some(Retry::Later));
        let why = || first().map_or_else(String::new, |first| format!(" ({}: {})", first.code, first.detail));
        let lines = text::counted(self.retry_later, "line");
        (self.retry_later > 0).then(|| format!("{lines} of a batch rejected for now{}", why()))
    }

    /// How many events a repetition of the batch will find to be duplicates.
    pub(super) const fn newly_stored(&self) -> u64 {
        self.accepted.saturating_sub(self.filtered)
    }

    /// Counts as accepted so many lines that this same load had sent before.
    pub(super) fn with_accepted_before(mut self, accepted: u64) -> Self {
        let accepted = accepted.min(self.duplicates);
        self.duplicates -= accepted;
        self.accepted += accepted;
        self
    }

    /// A line of several values can't be sent alone, as some of them may be accepted already: its rejected values stay rejected.
    pub(super) fn refuse_in_lines_of_several(&mut self, is_one_value: impl Fn(usize) -> bool) {
        for refused in self.refused.iter_mut().filter(|refused| refused.retry == Some(Retry::Alone)) {
            if !is_one_value(refused.line) {
                refused.retry = None;
                self.retry_alone = self.retry_alone.saturating_sub(1);
            }
        }
    }

    /// Takes those out that are to be sent alone: their rejection isn't permanent.
    pub(super) fn take_alone(&mut self) -> AloneLines {
        let is_alone = |refused: &RefusedLine| refused.retry == Some(Retry::Alone);
        let lines: Vec<_> =
            self.refused.iter().filter(|refused| is_alone(refused)).map(|refused| refused.line).collect();
        self.refused.retain(|refused| !is_alone(refused));
        self.refused_count = self.refused_count.map(|count| count.saturating_sub(self.retry_alone));
        let has_more = self.retry_alone > lines.len() as u64;
        self.retry_alone = 0;
        AloneLines { lines, has_more }
    }

    /// The result on a line that was sent alone, as one on that line of its batch.
    pub(super) fn of_line(mut self, line: usize) -> Self {
        self.refused.iter_mut().for_each(|refused| refused.line = line);
        self
    }

    /// The answer lists a thousand rejections. If the reason of all is invalid JSON, the others can be found here, with
    /// the server's own check.
    fn complete(&mut self, body: &[u8]) {
        let mut found = Vec::new();
        let mut note = |item: json::batch::Item<'_>| {
            if let Err(refusal) = item.record {
                let (code, detail) = (refusal.code.as_str().to_owned(), refusal.detail.into_owned());
                found.push(RefusedLine { line: refusal.line as usize, code, detail, retry: None });
            }
        };
        let mut splitter = Splitter::new(Form::Lines);
        let is_split = splitter.push(body, &mut note).and_then(|()| splitter.finish(&mut note)).is_ok();
        if is_split && found.len() as u64 == self.refused_count() {
            self.refused = found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_result_differs_from_a_problem() {
        let text = r#"{"accepted":2,"duplicates":1,"refused":[{"line":3,"code":"json","detail":"no","offset":1}]}"#;
        let result = BatchResult::parse(text.as_bytes(), b"").unwrap();
        assert_eq!((result.accepted, result.duplicates, result.refused_count()), (2, 1, 1));
        assert_eq!(result.refused, [RefusedLine { line: 3, code: "json".into(), detail: "no".into(), retry: None }]);
        for text in [r#"{"status":400,"code":"bad_request","detail":"x"}"#, "", "<html>"] {
            assert!(BatchResult::parse(text.as_bytes(), b"").is_none(), "{text}");
        }
    }

    #[test]
    fn retryable_lines_are_not_rejected() {
        let text = r#"{"accepted":5,"filtered":2,"duplicates":1,"refused_count":9,"retry_later":3,"retry_alone":4,"refused":[
            {"line":2,"code":"overload","retry":"alone"},{"line":4,"code":"key"},
            {"line":7,"code":"backlog_full","retry":"later","detail":"full"}]}"#;
        let mut result = BatchResult::parse(text.as_bytes(), b"").unwrap();
        assert_eq!(result.wants_again().unwrap(), "3 lines of a batch rejected for now (backlog_full: full)");
        assert_eq!(result.newly_stored(), 3);
        assert_eq!(result.take_alone(), AloneLines { lines: vec![2], has_more: true });
        assert_eq!((result.refused_count(), result.refused.len()), (5, 2));

        let text = r#"{"accepted":1,"refused":[{"line":1,"code":"overload","retry":"alone"},
            {"line":2,"value":2,"code":"overload","retry":"alone"}],"retry_alone":2}"#;
        let mut result = BatchResult::parse(text.as_bytes(), b"").unwrap();
        result.refuse_in_lines_of_several(|line| line == 1);
        assert_eq!(result.take_alone(), AloneLines { lines: vec![1], has_more: false });
        assert_eq!((result.refused_count(), result.refused[0].line), (1, 2));

        let text = r#"{"accepted":1,"duplicates":4,"refused":[{"line":1,"code":"key"}]}"#;
        let mut result = BatchResult::parse(text.as_bytes(), b"").unwrap().with_accepted_before(3).of_line(8);
        assert_eq!((result.accepted, result.duplicates, result.wants_again()), (4, 1, None));
        assert_eq!(result.take_alone(), AloneLines { lines: Vec::new(), has_more: false });
        assert_eq!((result.refused_count(), result.refused[0].line), (1, 8));
    }

    #[test]
    fn refusals_beyond_the_list_are_found() {
        let answer = r#"{"accepted":2,"refused":[{"line":2,"code":"json"}],"refused_count":2}"#;
        let result = BatchResult::parse(answer.as_bytes(), b"1\nno\n\n2\n{\n").unwrap();
        let lines: Vec<_> = result.refused.iter().map(|refused| refused.line).collect();
        assert_eq!((lines, result.refused_count()), (vec![2, 5], 2));
        // They were rejected for another reason: only the list is known.
        let result = BatchResult::parse(answer.as_bytes(), b"1\n2\n").unwrap();
        assert_eq!((result.refused.len(), result.refused_count()), (1, 2));
    }
}
