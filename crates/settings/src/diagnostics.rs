//! Errors and warnings of one reading, each with the span of text that causes it, rendered together.

mod mistake;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

pub use mistake::Mistake;

/// Diagnostics that are shown one by one. Further ones are only counted.
const SHOWN_MAX: usize = 100;

/// Masks the secrets of a text before it is shown. `is_configuration` is false for a file that the configuration names. Every byte
/// keeps its place.
pub type Mask = fn(text: &str, is_configuration: bool) -> Cow<'_, str>;

/// One of the texts that settings are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceId(usize);

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
}

/// Bytes of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpan {
    /// The text.
    pub source: SourceId,
    /// The bytes within it.
    pub range: Range<usize>,
}

impl SourceSpan {
    /// The part of this span that begins `offset` bytes into it.
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Self {
        let start = (self.range.start + offset).min(self.range.end);
        Self { source: self.source, range: start..(start + length).min(self.range.end) }
    }
}

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

/// An error or a warning: the problem, its place, and the remedy.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    severity: Severity,
    title: String,
    at: SourceSpan,
    label: String,
    also: Option<(SourceSpan, String)>,
    help: Option<String>,
}

impl Diagnostic {
    /// An error: the settings can't be used. `label` is written under the span.
    pub fn new(title: impl Into<String>, at: SourceSpan, label: impl Into<String>) -> Self {
        Self { severity: Severity::Error, title: title.into(), at, label: label.into(), also: None, help: None }
    }

    /// A warning: the settings can be used.
    pub fn warning(title: impl Into<String>, at: SourceSpan, label: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(title, at, label) }
    }

    /// Points at a second span, the reason.
    #[must_use]
    pub fn also(self, at: SourceSpan, label: impl Into<String>) -> Self {
        Self { also: Some((at, label.into())), ..self }
    }

    /// Adds the remedy.
    #[must_use]
    pub fn help(self, help: impl Into<Option<String>>) -> Self {
        Self { help: help.into(), ..self }
    }
}

/// All errors and warnings of one reading.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    sources: Vec<Source>,
    all: Vec<Diagnostic>,
    mask: Mask,
}

impl Diagnostics {
    /// None so far. `mask` hides the secrets of the texts that are shown. The first source is the configuration's file.
    #[must_use]
    pub const fn new(mask: Mask) -> Self {
        Self { sources: Vec::new(), all: Vec::new(), mask }
    }

    /// Adds a text that spans refer to. `name` is shown: a file's path, "environment", "command line".
    pub fn source(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.sources.push(Source { name: name.into(), text: text.into() });
        SourceId(self.sources.len() - 1)
    }

    /// The text at `span`.
    #[must_use]
    pub fn text(&self, span: &SourceSpan) -> &str {
        self.sources[span.source.0].text.get(span.range.clone()).unwrap_or_default()
    }

    /// Adds one. Its texts may quote a name or a value.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let masked = |text: String| (self.mask)(&text, false).into_owned();
        let Diagnostic { severity, title, at, label, also, help } = diagnostic;
        let also = also.map(|(at, label)| (at, masked(label)));
        let (title, label, help) = (masked(title), masked(label), help.map(masked));
        self.all.push(Diagnostic { severity, title, at, label, also, help });
    }

    /// How many errors there are; warnings don't count.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.count(Severity::Error)
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn count(&self, severity: Severity) -> usize {
        self.all.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }

    /// All of them in the order of their spans, and the count at the end; with colours for a terminal.
    #[must_use]
    pub fn render(&self, coloured: bool) -> String {
        let renderer = if coloured { Renderer::styled() } else { Renderer::plain() };
        let mut order: Vec<&Diagnostic> = self.all.iter().collect();
        order.sort_by_key(|diagnostic| (diagnostic.at.source, diagnostic.at.range.start));
        let mut text = String::new();
        for diagnostic in order.iter().take(SHOWN_MAX) {
            text.push_str(&renderer.render(&[self.group(diagnostic)]));
            text.push_str("\n\n");
        }
        text.push_str(&self.summary());
        text
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut here = vec![Mark { kind: AnnotationKind::Primary, at: &diagnostic.at.range, label: &diagnostic.label }];
        let mut elsewhere = None;
        if let Some((at, label)) = &diagnostic.also {
            let mark = Mark { kind: AnnotationKind::Context, at: &at.range, label };
            if at.source == diagnostic.at.source {
                here.push(mark);
            } else {
                elsewhere = Some(self.snippet(at.source, &[mark]));
            }
        }
        let mut group =
            level.primary_title(diagnostic.title.as_str()).element(self.snippet(diagnostic.at.source, &here));
        if let Some(snippet) = elsewhere {
            group = group.element(snippet);
        }
        match &diagnostic.help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        }
    }

    /// A part of a source with marks. Every mark is moved to whole characters of the text, because the renderer panics on others.
    fn snippet<'a>(&'a self, source_id: SourceId, marks: &[Mark<'a>]) -> Snippet<'a, Annotation<'a>> {
        let source = &self.sources[source_id.0];
        let is_configuration = source_id == SourceId(0) || source.name == "environment";
        let shown = (self.mask)(&source.text, is_configuration);
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
            [counted(self.count(Severity::Error), "mistake"), counted(self.count(Severity::Warning), "warning")]
                .into_iter()
                .flatten()
                .collect();
        let hidden = self.all.len().saturating_sub(SHOWN_MAX);
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

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rendered(text: &str, span: Range<usize>, also: Range<usize>) -> String {
        let mut report = Diagnostics::new(|text, _| text.into());
        report.source("forebay.toml", "");
        let source = report.source("a.json", text);
        let other = report.source("b.json", text);
        for coloured in [false, true] {
            for also_in in [source, other] {
                let mistake = Diagnostic::new("wrong", SourceSpan { source, range: span.clone() }, "here");
                report.push(mistake.also(SourceSpan { source: also_in, range: also.clone() }, "there"));
            }
            let _ = report.render(coloured);
        }
        report.render(false)
    }

    #[test]
    fn mistake_within_a_character_marks_that_character() {
        let shown = rendered("{\n  é: 1\n}", 5..6, 0..1);
        assert!(shown.contains("a.json:2:3") && shown.contains("é: 1"), "{shown}");
    }

    #[test]
    fn mistake_in_any_line_is_shown() {
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
