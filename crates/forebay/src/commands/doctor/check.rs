//! One line of the diagnosis: what was seen, and what to do.

use serde::Serialize;
use text::escape_control;

/// The state of what was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// Nothing to do.
    Ok,
    /// It works, and may lose data or fail later.
    Warning,
    /// Events are rejected, aren't stored, or may be lost.
    Problem,
    /// It couldn't be checked.
    Skipped,
}

/// A line of the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// What was checked, as a word for programs.
    pub(super) check: &'static str,
    /// The sink, the token, the file or the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    pub(super) state: State,
    /// What was seen; why nothing could be seen.
    pub(super) seen: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Check {
    fn new(check: &'static str, state: State, seen: impl Into<String>, remedy: Option<String>) -> Self {
        Self { check, subject: None, state, seen: seen.into(), remedy }
    }

    pub(super) fn ok(check: &'static str, seen: impl Into<String>) -> Self {
        Self::new(check, State::Ok, seen, None)
    }

    pub(super) fn warning(check: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(check, State::Warning, seen, Some(remedy.into()))
    }

    pub(super) fn problem(check: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(check, State::Problem, seen, Some(remedy.into()))
    }

    pub(super) fn skipped(check: &'static str, why: impl Into<String>) -> Self {
        Self::new(check, State::Skipped, why, None)
    }

    /// The same about this sink, token, file or directory.
    pub(super) fn about(self, subject: impl ToString) -> Self {
        Self { subject: Some(subject.to_string()), ..self }
    }

    /// A text whose last sentence is the remedy.
    pub(super) fn of_sentences(check: &'static str, state: State, text: &str, otherwise: &str) -> Self {
        let (seen, remedy) = text.rsplit_once(". ").unwrap_or((text, otherwise));
        Self::new(check, state, seen, Some(remedy.to_owned()))
    }

    /// The line for a terminal or a log.
    pub(super) fn line(&self) -> String {
        let Self { check, subject, state, seen, remedy } = self;
        let state = match state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Problem => "PROBLEM",
            State::Skipped => "skipped",
        };
        let subject = subject.as_ref().map_or_else(String::new, |subject| format!(" {subject}"));
        let remedy = remedy.as_ref().map_or_else(String::new, |remedy| format!(". {remedy}"));
        let line = format!("{state:<8} {check}{subject}: {seen}{remedy}");
        format!("{}\n", escape_control(&line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_fact_and_remedy() {
        let check = Check::warning("token", "it expires\ntomorrow", "Create another").about("shop");
        assert_eq!(check.line(), "warning  token shop: it expires\\ntomorrow. Create another\n");
        assert_eq!(Check::ok("memory", "no limit").line(), "ok       memory: no limit\n");
        let check = Check::of_sentences("x", State::Problem, "a. b is 0.5. Raise it", "-");
        assert_eq!((check.seen.as_str(), check.remedy.as_deref()), ("a. b is 0.5", Some("Raise it")));
        assert_eq!(Check::of_sentences("x", State::Problem, "a", "-").remedy.as_deref(), Some("-"));
    }
}
