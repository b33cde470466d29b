//! Errors as single values, for programs that show them next to their lines.

use super::{Diagnostic, Diagnostics, Severity, SourceId};

/// An error of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line in the configuration's file, from 1; none if it is elsewhere.
    pub line: Option<usize>,
    /// The column in this line, in characters from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub title: String,
    /// Why, and the remedy. An error outside of the file begins with the name of its source.
    pub text: String,
}

impl Diagnostics {
    /// The errors, in the order of their spans. Secrets are masked, as in [`Diagnostics::render`].
    #[must_use]
    pub fn mistakes(&self) -> Vec<Mistake> {
        let mut errors: Vec<&Diagnostic> = self.all.iter().filter(|one| one.severity == Severity::Error).collect();
        errors.sort_by_key(|error| (error.at.source, error.at.range.start));
        errors.into_iter().map(|error| self.mistake(error)).collect()
    }

    fn mistake(&self, error: &Diagnostic) -> Mistake {
        let source = &self.sources[error.at.source.0];
        let is_in_file = error.at.source == SourceId(0);
        let before = &source.text[..source.text.floor_char_boundary(error.at.range.start)];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        let place = (!is_in_file).then(|| source.name.clone());
        let parts = [place, Some(error.label.clone()), error.help.clone()].into_iter().flatten();
        Mistake {
            line: is_in_file.then_some(line),
            column: is_in_file.then_some(column),
            title: error.title.clone(),
            text: parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SourceSpan;
    use super::*;

    #[test]
    fn mistake_has_the_place_in_the_file_only() {
        let mut report = Diagnostics::new(|text, _| text.into());
        let file = report.source("forebay.toml", "a = 1\né = 2\n");
        let environment = report.source("environment", "A=1");
        let at = |source, range| SourceSpan { source, range };
        report.push(Diagnostic::new("wrong variable", at(environment, 0..1), "here").help("set it".to_owned()));
        report.push(Diagnostic::warning("old", at(file, 0..1), "there"));
        report.push(Diagnostic::new("wrong value", at(file, 11..12), "no number"));
        let mistake = |place: Option<(usize, usize)>, title: &str, text: &str| Mistake {
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            title: title.into(),
            text: text.into(),
        };
        let expected = [
            mistake(Some((2, 5)), "wrong value", "no number"),
            mistake(None, "wrong variable", "environment: here: set it"),
        ];
        assert_eq!(report.mistakes(), expected);
    }
}
