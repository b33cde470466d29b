//! Which lines of a block match a regular expression.
//!
//! The expression runs over the whole block and not line by line: between matches it then reads at the speed of
//! its literals. For that it is rewritten: no match can reach over a line's end.

use std::fmt;
use std::ops::Range;

use memchr::{memchr, memrchr};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look};

/// Room for the states of a large expression, as ripgrep has it.
const AUTOMATON_BYTES_MAX: usize = 1 << 30;
const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A regular expression for lines. Its time is linear in the text, for any expression.
#[derive(Clone, Debug)]
pub struct LineFilter {
    text: String,
    regex: Regex,
}

/// Why a text is no regular expression.
#[derive(Debug, thiserror::Error)]
pub enum InvalidFilter {
    /// Its syntax is wrong.
    #[error(transparent)]
    Syntax(#[from] Box<regex_syntax::Error>),
    /// It is too large.
    #[error(transparent)]
    Size(#[from] regex::Error),
}

impl std::str::FromStr for LineFilter {
    type Err = InvalidFilter;

    fn from_str(text: &str) -> Result<Self, InvalidFilter> {
        let parsed = ParserBuilder::new().utf8(false).multi_line(true).build().parse(text).map_err(Box::new)?;
        let rewritten = within_a_line(parsed).to_string();
        let mut builder = RegexBuilder::new(&rewritten);
        let regex = builder.size_limit(AUTOMATON_BYTES_MAX).dfa_size_limit(CACHE_BYTES_MAX).build()?;
        Ok(Self { text: text.to_owned(), regex })
    }
}

impl fmt::Display for LineFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl LineFilter {
    /// How many lines of `block` match. The last line may lack its end.
    #[must_use]
    pub fn count(&self, block: &[u8]) -> u64 {
        let (mut count, mut at) = (0, 0);
        while let Some(end) = self.next_match(block, at) {
            count += 1;
            at = line_end(block, end);
        }
        count
    }

    /// Gives each matching line as its place in `block`, with its line break.
    pub(crate) fn lines(&self, block: &[u8], mut take: impl FnMut(Range<usize>)) {
        let mut at = 0;
        while let Some(end) = self.next_match(block, at) {
            let start = memrchr(b'\n', &block[at..end]).map_or(at, |before| at + before + 1);
            at = line_end(block, end);
            take(start..at);
        }
    }

    /// Where the first match from `at` on may end. After the last line break no line begins.
    fn next_match(&self, block: &[u8], at: usize) -> Option<usize> {
        if at == block.len() {
            return None;
        }
        let end = self.regex.shortest_match_at(block, at)?;
        (end < block.len() || block.last() != Some(&b'\n')).then_some(end)
    }
}

fn line_end(block: &[u8], from: usize) -> usize {
    memchr(b'\n', &block[from..]).map_or(block.len(), |to| from + to + 1)
}

/// The same expression, with line breaks removed from everything that it can match, and the ends of the text being
/// those of a line.
fn within_a_line(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(mut class)) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndLF),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(mut repetition) => {
            *repetition.sub = within_a_line(*repetition.sub);
            Hir::repetition(repetition)
        }
        HirKind::Capture(capture) => within_a_line(*capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(within_a_line).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(within_a_line).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a line-by-line search.
    fn expected<'a>(pattern: &str, text: &'a [u8]) -> Vec<&'a [u8]> {
        let regex = Regex::new(pattern).unwrap();
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.filter(|line| regex.is_match(line.strip_suffix(b"\n").unwrap_or(line))).collect()
    }

    #[test]
    fn block_returns_only_matching_lines() {
        let texts: [&[u8]; 6] =
            [b"", b"\n", b"a b\nb\n\nab\n", b"a\nb", b"x\r\na\xff b\n\n\n", b"foo bar\nbar foo\nfoo\nFOO\n"];
        let patterns = [
            "",
            "a",
            "b$",
            "^b",
            "^$",
            r"a\s+b",
            r"\s",
            r"\n",
            "(?s)a.*b",
            r"\Ab\z",
            "x*",
            "[^a]",
            "^[^a]*$",
            r"a\nb",
            r"\bfoo\b",
            "(?i)foo$",
            "^foo|bar$",
            "(foo|b)(?: bar)?",
            "(?-u:\\xff)",
            r"a\W+b",
            r"\r$",
            "z",
        ];
        for text in texts {
            for pattern in patterns {
                let filter: LineFilter = pattern.parse().unwrap();
                let mut found = Vec::new();
                filter.lines(text, |line| found.push(&text[line]));
                let expected = expected(pattern, text);
                assert_eq!(found, expected, "{pattern:?} in {:?}", String::from_utf8_lossy(text));
                assert_eq!(filter.count(text), expected.len() as u64, "{pattern:?}");
            }
        }
    }

    #[test]
    fn invalid_expression_is_rejected() {
        assert!("a(".parse::<LineFilter>().is_err());
        assert!(r"a{100000}{100000}".parse::<LineFilter>().is_err());
    }
}
