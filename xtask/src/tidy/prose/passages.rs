//! The prose of a file, wherever it is: Markdown, comments, string literals, descriptions of settings.

use std::ops::Range;

use super::super::source::Source;
use super::blocks::{Block, Shape, blocks};
use super::plain_text;

/// Where a passage is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Origin {
    /// A page of Markdown.
    Page,
    /// A doc comment, which is also the help of a command.
    Doc,
    Comment,
    Literal,
    /// A comment or a description of a TOML, YAML or shell file.
    Setting,
}

/// A text that the rules read as a whole.
#[derive(Debug)]
pub(in super::super) struct Passage {
    pub(in super::super) origin: Origin,
    pub(super) shape: Shape,
    /// The number of its first line.
    pub(in super::super) line: usize,
    /// Where it begins in the file. Only for literals and comments of Rust.
    pub(in super::super) at: usize,
    /// As it is written.
    pub(in super::super) text: String,
    /// Without code and other texts that aren't prose.
    pub(in super::super) plain: String,
}

impl Passage {
    fn of_block(origin: Origin, at: usize, block: Block) -> Self {
        let plain = plain_text::of_markdown(&block.text);
        Self { origin, shape: block.shape, line: block.line, at, text: block.text, plain }
    }

    /// The line that the byte of `plain` is in.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.line + self.plain[..at].matches('\n').count()
    }
}

/// The passages of a file.
pub(in super::super) fn passages(source: &Source) -> Vec<Passage> {
    let ending = source.path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "md" => of_lines(Origin::Page, 0, (1..).zip(source.text.lines())),
        "rs" => of_rust(source),
        "toml" | "yml" | "yaml" | "sh" => of_settings(&source.text),
        _ if source.path.starts_with(".ci/") => of_settings(&source.text),
        _ => Vec::new(),
    }
}

fn of_lines<'a>(origin: Origin, at: usize, lines: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<Passage> {
    blocks(lines).into_iter().map(|block| Passage::of_block(origin, at, block)).collect()
}

/// Comment lines without other lines between them.
#[derive(Default)]
struct Run<'a> {
    is_doc: bool,
    at: usize,
    lines: Vec<(usize, &'a str)>,
}

impl Run<'_> {
    fn into_passages(self) -> Vec<Passage> {
        of_lines(if self.is_doc { Origin::Doc } else { Origin::Comment }, self.at, self.lines)
    }
}

fn of_rust(source: &Source) -> Vec<Passage> {
    let text = source.text.as_str();
    let mut line_begins: Vec<usize> = vec![0];
    line_begins.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    let (mut found, mut run) = (Vec::new(), Run::default());
    for part in &source.opaque {
        let line = line_begins.partition_point(|begin| *begin <= part.start);
        let whole = &text[part.clone()];
        if let Some(comment) = whole.strip_prefix("//") {
            let is_doc = (comment.starts_with('/') && !comment.starts_with("//")) || comment.starts_with('!');
            let is_alone = text[line_begins[line - 1]..part.start].trim().is_empty();
            let follows = run.lines.last().is_some_and(|(last, _)| last + 1 == line);
            if !(follows && is_alone && run.is_doc == is_doc) {
                found.extend(std::mem::take(&mut run).into_passages());
                run = Run { is_doc, at: part.start, lines: Vec::new() };
            }
            run.lines.push((line, comment.trim_start_matches(['/', '!'])));
            if !is_alone {
                found.extend(std::mem::take(&mut run).into_passages());
            }
        } else if whole.starts_with("/*") {
            let lines = whole.lines().map(|line| line.trim_start_matches([' ', '/', '*', '!']).trim_end_matches("*/"));
            found.extend(of_lines(Origin::Comment, part.start, (line..).zip(lines)));
        } else if !whole.starts_with('\'') {
            found.extend(of_literal(text, part, line));
        }
    }
    found.extend(run.into_passages());
    found
}

fn of_literal(text: &str, part: &Range<usize>, line: usize) -> Option<Passage> {
    let whole = &text[part.clone()];
    let (prefix, inside) = whole.split_once('"')?;
    let is_raw = prefix.contains('r');
    let inside = inside.trim_end_matches('#');
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    let plain = if is_raw { plain_text::of_raw_literal(inside) } else { plain_text::of_literal(inside) };
    Some(Passage {
        origin: Origin::Literal,
        shape: Shape::Paragraph,
        line,
        at: part.start,
        text: inside.to_owned(),
        plain,
    })
}

/// Members of TOML and YAML files that readers see.
const DESCRIPTIONS: [&str; 4] = ["description", "help", "message", "summary"];

fn of_settings(text: &str) -> Vec<Passage> {
    let (mut found, mut run) = (Vec::new(), Vec::new());
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let content = line.trim_start();
        if let Some(comment) = content.strip_prefix('#') {
            run.push((number, comment));
            continue;
        }
        found.extend(of_lines(Origin::Setting, 0, std::mem::take(&mut run)));
        let before_comment =
            line.match_indices(" # ").find(|(at, _)| line[..*at].matches(['"', '\'']).count() % 2 == 0);
        if let Some((at, _)) = before_comment {
            found.extend(of_lines(Origin::Setting, 0, [(number, &line[at + 3..])]));
        }
        let Some((name, value)) = content.split_once([':', '=']) else { continue };
        if !DESCRIPTIONS.contains(&name.trim().trim_start_matches("- ")) {
            continue;
        }
        let mut described = vec![(number, value)];
        if [">", "|"].iter().any(|fold| value.trim_start().starts_with(fold)) {
            described.clear();
            let depth = line.len() - content.len();
            let is_inside = |line: &str| line.trim().is_empty() || line.len() - line.trim_start().len() > depth;
            while let Some(inner) = lines.next_if(|(_, line)| is_inside(line)) {
                described.push(inner);
            }
        }
        found.extend(of_lines(Origin::Setting, 0, described));
    }
    found.extend(of_lines(Origin::Setting, 0, run));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> Vec<(Origin, usize, String)> {
        let found = passages(&Source::new(path, text.into()));
        found.into_iter().map(|passage| (passage.origin, passage.line, passage.text)).collect()
    }

    #[test]
    fn rust_has_comments_and_literals() {
        let text = "//! One\n//! two.\n\n// Three\n// four.\nlet a = b\"five \\\n    six\"; // seven\n// eight\n/* nine\n ten */\n\
                    fn c<'d>() { e('\"', r#\"g\"h\"#) }\n/// ```\n/// code\n/// ```\n///\n/// Eleven\n// twelve\n\
                    i(); // thirteen\n//// fourteen\n/// fifteen\n";
        let mut found = shown("crates/event/src/a.rs", text);
        found.sort_by_key(|(_, line, _)| *line);
        let expected = [
            (Origin::Doc, 1, " One\n two."),
            (Origin::Comment, 4, " Three\n four."),
            (Origin::Literal, 6, "five \\\n    six"),
            (Origin::Comment, 7, " seven"),
            (Origin::Comment, 8, " eight"),
            (Origin::Comment, 9, "nine\nten "),
            (Origin::Literal, 11, "g\"h"),
            (Origin::Doc, 16, " Eleven"),
            (Origin::Comment, 17, " twelve"),
            (Origin::Comment, 18, " thirteen"),
            (Origin::Comment, 19, " fourteen"),
            (Origin::Doc, 20, " fifteen"),
        ];
        assert_eq!(found, expected.map(|(origin, line, text)| (origin, line, text.to_owned())));
    }

    #[test]
    fn settings_have_comments_and_descriptions() {
        let text = "# One\n# two\na = \"b # c\" # three\nrules:\n  - summary: four\n    description: >-\n      five\n      six\n    d: e\n";
        let expected = [
            (Origin::Setting, 1, " One\n two"),
            (Origin::Setting, 3, "three"),
            (Origin::Setting, 5, " four"),
            (Origin::Setting, 7, "      five\n      six"),
        ];
        assert_eq!(shown("deploy/a.yaml", text), expected.map(|(origin, line, text)| (origin, line, text.to_owned())));
        assert!(shown("docs/a.txt", text).is_empty());
    }
}
