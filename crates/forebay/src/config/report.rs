//! What is wrong with a configuration: every mistake with the spot where it stands, shown together.

use std::fmt;
use std::ops::Range;

use super::secrets;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

/// Mistakes that are shown one by one; the others are only counted. Nobody reads more at a time.
const SHOWN_MAX: usize = 100;

/// One of the texts that a configuration is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(usize);

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
}

/// Where a piece of configuration stands: bytes of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) source: SourceId,
    pub(crate) span: Range<usize>,
}

impl Spot {
    /// The part of this spot that begins `offset` bytes into it.
    pub(crate) fn part(&self, offset: usize, length: usize) -> Self {
        let start = (self.span.start + offset).min(self.span.end);
        Self { source: self.source, span: start..(start + length).min(self.span.end) }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Mistake,
    Warning,
}

/// One thing that is wrong: what, where, and what to do.
#[derive(Clone, Debug)]
pub(crate) struct Mistake {
    severity: Severity,
    title: String,
    at: Spot,
    label: String,
    also: Option<(Spot, String)>,
    help: Option<String>,
}

impl Mistake {
    /// Something that Forebay can't start with. `label` is written under the spot.
    pub(crate) fn new(title: impl Into<String>, at: Spot, label: impl Into<String>) -> Self {
        Self { severity: Severity::Mistake, title: title.into(), at, label: label.into(), also: None, help: None }
    }

    /// Something that is probably not meant, but harms nothing.
    pub(crate) fn warning(title: impl Into<String>, at: Spot, label: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(title, at, label) }
    }

    /// Points at a second spot, where the reason stands.
    pub(crate) fn also(self, at: Spot, label: impl Into<String>) -> Self {
        Self { also: Some((at, label.into())), ..self }
    }

    /// Says what to do.
    pub(crate) fn help(self, help: impl Into<Option<String>>) -> Self {
        Self { help: help.into(), ..self }
    }
}

/// All mistakes and warnings of one reading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    sources: Vec<Source>,
    mistakes: Vec<Mistake>,
}

impl Report {
    /// Makes a text known, so that spots can lie in it. `name` is what a person knows it by: a file's path,
    /// "environment", "command line".
    pub(crate) fn source(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.sources.push(Source { name: name.into(), text: text.into() });
        SourceId(self.sources.len() - 1)
    }

    /// The text at `spot`, as it was written.
    pub(crate) fn text(&self, spot: &Spot) -> &str {
        self.sources[spot.source.0].text.get(spot.span.clone()).unwrap_or_default()
    }

    /// Adds one finding.
    pub(crate) fn push(&mut self, mistake: Mistake) {
        self.mistakes.push(mistake);
    }

    /// How many findings stand against starting. Warnings don't.
    pub(crate) fn mistakes(&self) -> usize {
        self.count(Severity::Mistake)
    }

    /// Whether there is nothing to show.
    pub(crate) const fn is_empty(&self) -> bool {
        self.mistakes.is_empty()
    }

    fn count(&self, severity: Severity) -> usize {
        self.mistakes.iter().filter(|mistake| mistake.severity == severity).count()
    }

    /// Every finding in the order of its place, and the count at the end; with colours for a terminal.
    pub(crate) fn render(&self, coloured: bool) -> String {
        let renderer = if coloured { Renderer::styled() } else { Renderer::plain() };
        let mut order: Vec<&Mistake> = self.mistakes.iter().collect();
        order.sort_by_key(|mistake| (mistake.at.source, mistake.at.span.start));
        let mut text = String::new();
        for mistake in order.iter().take(SHOWN_MAX) {
            text.push_str(&renderer.render(&[self.group(mistake)]));
            text.push_str("\n\n");
        }
        text.push_str(&self.summary());
        text
    }

    fn group<'a>(&'a self, mistake: &'a Mistake) -> Group<'a> {
        let level = match mistake.severity {
            Severity::Mistake => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut here = vec![Mark { kind: AnnotationKind::Primary, at: &mistake.at.span, label: &mistake.label }];
        let mut elsewhere = None;
        if let Some((at, label)) = &mistake.also {
            let mark = Mark { kind: AnnotationKind::Context, at: &at.span, label };
            if at.source == mistake.at.source {
                here.push(mark);
            } else {
                elsewhere = Some(self.snippet(at.source, &[mark]));
            }
        }
        let mut group = level.primary_title(mistake.title.as_str()).element(self.snippet(mistake.at.source, &here));
        if let Some(snippet) = elsewhere {
            group = group.element(snippet);
        }
        match &mistake.help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        }
    }

    /// A part of a source with marks. Every mark is moved to whole characters of the text, because the renderer panics on others.
    fn snippet<'a>(&'a self, source_id: SourceId, marks: &[Mark<'a>]) -> Snippet<'a, Annotation<'a>> {
        let source = &self.sources[source_id.0];
        // The configuration comes first, then the files that it names and the variables.
        let is_configuration = source_id == SourceId(0) || source.name == "environment";
        let shown = secrets::hidden(&source.text, is_configuration);
        let annotations: Vec<_> =
            marks.iter().map(|mark| mark.kind.span(whole_characters(&shown, mark.at)).label(mark.label)).collect();
        Snippet::source(shown).path(source.name.as_str()).annotations(annotations)
    }

    fn summary(&self) -> String {
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            _ => Some(format!("{count} {what}s")),
        };
        let counts: Vec<String> =
            [counted(self.count(Severity::Mistake), "mistake"), counted(self.count(Severity::Warning), "warning")]
                .into_iter()
                .flatten()
                .collect();
        let hidden = self.mistakes.len().saturating_sub(SHOWN_MAX);
        let hidden = if hidden > 0 { format!(", {hidden} of them not shown") } else { String::new() };
        format!("{}{hidden}\n", counts.join(" and "))
    }
}

/// Bytes of a source that are underlined.
struct Mark<'a> {
    kind: AnnotationKind,
    at: &'a Range<usize>,
    label: &'a str,
}

/// The bytes of the characters that the span touches; the end of the text, if it lies beyond.
fn whole_characters(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    start..text.ceil_char_boundary(span.end.clamp(start, text.len()))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Report {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rendered(text: &str, span: Range<usize>, also: Range<usize>) -> String {
        let mut report = Report::default();
        report.source("forebay.toml", "");
        let source = report.source("a.json", text);
        let other = report.source("b.json", text);
        for coloured in [false, true] {
            for also_in in [source, other] {
                let mistake = Mistake::new("wrong", Spot { source, span: span.clone() }, "here");
                report.push(mistake.also(Spot { source: also_in, span: also.clone() }, "there"));
            }
            let _ = report.render(coloured);
        }
        report.render(false)
    }

    #[test]
    fn a_mistake_within_a_character_is_shown_at_that_character() {
        let shown = rendered("{\n  é: 1\n}", 5..6, 0..1);
        assert!(shown.contains("a.json:2:3") && shown.contains("é: 1"), "{shown}");
    }

    #[test]
    fn a_mistake_in_any_line_and_beyond_the_end_is_shown() {
        let long = format!("\u{feff}{{\"a\":\t\"{}\"\r\n", "é„x".repeat(20_000));
        for text in ["", "\r\n", "\u{feff}", "a\tb", "é", "\0", long.as_str()] {
            for start in [0, 1, 2, 3, text.len() / 2, text.len().saturating_sub(1), text.len(), text.len() + 9] {
                for end in [0, start, start + 1, start + 2, usize::MAX] {
                    assert!(rendered(text, start..end, end..start).contains("a.json"));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_text_and_every_span_is_shown(
            text in "([a-z\"{}:=é„\u{feff}\u{a0}\u{200d}\u{1f600}\t\r\n ]|\\PC|\\x00|\\x1b){0,40}",
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            (start, end, also_start, also_end) in (0_usize..90, 0_usize..90, 0_usize..90, 0_usize..90),
        ) {
            for text in [text, String::from_utf8_lossy(&bytes).into_owned()] {
                prop_assert!(rendered(&text, start..end, also_start..also_end).contains("wrong"));
            }
        }
    }
}
