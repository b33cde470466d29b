//! What the server says of a batch.

use pipeline::batch::{Form, Splitter};
use serde::Deserialize;

/// The answer to a batch that was taken, at least as a whole.
#[derive(Debug, Deserialize)]
pub(super) struct Verdict {
    pub(super) accepted: u64,
    #[serde(default)]
    pub(super) duplicates: u64,
    /// The first of the refused lines, ascending.
    pub(super) refused: Vec<RefusedLine>,
    /// All of them, where there are more.
    refused_count: Option<u64>,
}

/// A line that was refused.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct RefusedLine {
    /// In the body, from 1.
    pub(super) line: usize,
    pub(super) code: String,
    #[serde(default)]
    pub(super) detail: String,
}

impl Verdict {
    /// From an answer with status 200, 207, 400 or 422; none where it is about the request and not about its lines.
    pub(super) fn parse(answer: &[u8], body: &[u8]) -> Option<Self> {
        let mut verdict: Self = serde_json::from_slice(answer).ok()?;
        if verdict.refused_count() > verdict.refused.len() as u64 {
            verdict.complete(body);
        }
        Some(verdict)
    }

    /// How many lines were refused.
    pub(super) fn refused_count(&self) -> u64 {
        self.refused_count.unwrap_or(self.refused.len() as u64)
    }

    /// The answer lists a thousand refusals. Where JSON is what is wrong with all, the others can be found here, with
    /// the server's own check.
    fn complete(&mut self, body: &[u8]) {
        let mut found = Vec::new();
        let mut note = |item: pipeline::batch::Item<'_>| {
            if let Err(refusal) = item.record {
                let (code, detail) = (refusal.code.as_str().to_owned(), refusal.detail.into_owned());
                found.push(RefusedLine { line: refusal.line as usize, code, detail });
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
    fn an_answer_about_lines_is_told_from_one_about_the_request() {
        let text = r#"{"accepted":2,"duplicates":1,"refused":[{"line":3,"code":"json","detail":"no","offset":1}]}"#;
        let verdict = Verdict::parse(text.as_bytes(), b"").unwrap();
        assert_eq!((verdict.accepted, verdict.duplicates, verdict.refused_count()), (2, 1, 1));
        assert_eq!(verdict.refused, [RefusedLine { line: 3, code: "json".into(), detail: "no".into() }]);
        for text in [r#"{"status":400,"code":"bad_request","detail":"x"}"#, "", "<html>"] {
            assert!(Verdict::parse(text.as_bytes(), b"").is_none(), "{text}");
        }
    }

    #[test]
    fn refusals_beyond_the_list_are_found() {
        let answer = r#"{"accepted":2,"refused":[{"line":2,"code":"json"}],"refused_count":2}"#;
        let verdict = Verdict::parse(answer.as_bytes(), b"1\nno\n\n2\n{\n").unwrap();
        let lines: Vec<_> = verdict.refused.iter().map(|refused| refused.line).collect();
        assert_eq!((lines, verdict.refused_count()), (vec![2, 5], 2));
        // They were refused for something else: the list is all that is known.
        let verdict = Verdict::parse(answer.as_bytes(), b"1\n2\n").unwrap();
        assert_eq!((verdict.refused.len(), verdict.refused_count()), (1, 2));
    }
}
