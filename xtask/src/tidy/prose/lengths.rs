//! How long sentences, cells of tables and messages may be, in words.

use super::blocks::Shape;
use super::passages::{Origin, Passage};
use super::{Breach, beginning};

const SENTENCE_MAX: usize = 40;
const CELL_MAX: usize = 40;
const MESSAGE_MAX: usize = 35;

/// Sentences of pages and comments.
pub(super) fn sentence_length(passage: &Passage) -> Vec<Breach> {
    if passage.shape != Shape::Paragraph || matches!(passage.origin, Origin::Literal | Origin::Setting) {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    let mut at = 0;
    for sentence in sentences(&passage.plain) {
        let begin = at + sentence.len() - sentence.trim_start().len();
        breaches.extend(too_long("sentence_length", passage, begin, sentence, SENTENCE_MAX));
        at += sentence.len();
    }
    breaches
}

/// Cells of tables.
pub(super) fn cell_length(passage: &Passage) -> Vec<Breach> {
    if passage.shape != Shape::Row {
        return Vec::new();
    }
    let cells = passage.plain.replace("\\|", " ");
    cells.split('|').filter_map(|cell| too_long("cell_length", passage, 0, cell, CELL_MAX)).collect()
}

/// Literals that are messages.
pub(super) fn message_length(passage: &Passage) -> Option<Breach> {
    let is_message = passage.origin == Origin::Literal && is_message(passage);
    is_message.then(|| too_long("message_length", passage, 0, &passage.plain, MESSAGE_MAX))?
}

fn too_long(rule: &'static str, passage: &Passage, at: usize, text: &str, max: usize) -> Option<Breach> {
    let words = words(text);
    (words > max).then(|| Breach {
        rule,
        line: passage.line_of(at),
        quoted: beginning(text),
        instead: format!("at most {max} words: it has {words}"),
    })
}

/// A code span and a word with an apostrophe are one word.
pub(in super::super) fn words(text: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || ['_', '\'', '’', '`'].contains(&c);
    text.split(|c| !is_part(c)).filter(|word| !word.is_empty()).count()
}

/// The sentences of a text, each with the space before it. A colon or a semicolon before a capital divides them too.
fn sentences(text: &str) -> Vec<&str> {
    let (mut sentences, mut begin) = (Vec::new(), 0);
    for (at, _) in text.match_indices(char::is_whitespace) {
        let ends = text[begin..at].trim_end_matches([')', '"', '*', '`']).ends_with(['.', '!', '?', ':', ';']);
        let next = text[at..].trim_start().chars().next();
        let begins = next.is_some_and(|c| c.is_uppercase() || ['`', '"', '(', '*', '['].contains(&c));
        if ends && begins {
            sentences.push(&text[begin..at]);
            begin = at;
        }
    }
    sentences.push(&text[begin..]);
    sentences
}

/// Whether a literal is a message: one line of prose. SQL, JSON, HTML, requests, scripts and long help are not.
pub(in super::super) fn is_message(passage: &Passage) -> bool {
    let text = passage.text.trim_end_matches("\\n").replace("\\\n", " ");
    if ["\n", "\\n", "\\r", "</"].iter().any(|sign| text.contains(sign)) {
        return false;
    }
    let begins_query = QUERIES.iter().any(|verb| text.trim_start().starts_with(verb));
    let is_query =
        begins_query || (text.contains("select ") && text.contains("from ")) || text.contains("order by rowid");
    !is_query && signs_of_code(&passage.plain) * CODE_SHARE < words(&passage.plain)
}

/// Prose has fewer than one sign of code in so many words.
const CODE_SHARE: usize = 4;
/// How queries begin: the project writes SQL in small letters.
const QUERIES: &[&str] =
    &["insert into", "delete from", "create table", "create function", "alter table", "lock table", "begin;"];

fn signs_of_code(text: &str) -> usize {
    let signs = text.chars().filter(|c| "=;$<>[]{}|@\\".contains(*c)).count();
    let is_inside =
        |at: usize| text[..at].ends_with(char::is_alphanumeric) && text[at + 1..].starts_with(char::is_alphabetic);
    signs + text.match_indices(['.', ':', '(']).filter(|(at, _)| is_inside(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::prose::passages::passages;
    use crate::tidy::source::Source;

    #[test]
    fn sentence_ends_before_a_capital() {
        for (text, count) in [
            ("One, e.g. two. Three", 2),
            ("One: `two`", 2),
            ("One: Two; (three) four", 3),
            ("One.)\nTwo", 2),
            ("One? `two` three", 2),
            ("One! Two", 2),
            ("\"One.\" **Two.** `Three.` Four", 4),
            ("One. \"Two.\" *Three.* [Four.] Five", 4),
            ("1.5 is not. an end, nor Is This", 1),
        ] {
            assert_eq!(sentences(text).len(), count, "{text}");
            assert_eq!(sentences(text).concat(), text);
        }
    }

    #[test]
    fn word_is_counted_once() {
        assert_eq!(words("it isn't `` a_b 4.5, don’t — ` x"), 9);
    }

    #[test]
    fn code_is_no_message() {
        let is_message = |literal: &str| {
            let source = Source::new("crates/event/src/a.rs", format!("const A: &str = {literal};"));
            passages(&source).iter().any(is_message)
        };
        for literal in [
            "\"select id, type, source from events where id = 1\"",
            "\"with n as (select {columns} from {rows}), u as (update {to} t set {} from n where t.id = n.id)\"",
            "r#\"{\"type\": \"object\", \"required\": [\"id\"], \"properties\": {}}\"#",
            "\"<b>two</b> and <i>three</i> words\"",
            "\"GET / HTTP/1.1\\r\\nHost: one two three four\"",
            "\"one two three\\r four five\"",
            "\"insert into a b c d\"",
            "\"delete from a b c d\"",
            "\"create table a b c d\"",
            "\"create function a b c d\"",
            "\"alter table a b c d\"",
            "\"lock table a b c d\"",
            "\"begin; a b c d e f\"",
            "\"a b c d order by rowid\"",
            "\"one two a.b\"",
            "\"one two a:b\"",
            "\"one two a(b\"",
            "\"one line\\nanother line of a long help\"",
            "\"one line\n another line of a long help\"",
        ] {
            assert!(!is_message(literal), "{literal}");
        }
        for message in [
            "\"sink {sink} has reached max_backlog: {count} events wait (set `limit`) \\\n   for room\\n\"",
            "\"select one or two sinks\"",
            "\"one event from a sink\"",
            "\"One: 4.5 two.\"",
        ] {
            assert!(is_message(message), "{message}");
        }
    }

    #[test]
    fn sign_of_code_takes_four_words() {
        for sign in "=;$<>[]{}|@\\".chars() {
            for (words, is_prose) in [("one two three four", false), ("one two three four five", true)] {
                let source = Source::new("crates/event/src/a.rs", format!("const A: &str = r\"{words}{sign}\";"));
                assert_eq!(passages(&source).iter().any(is_message), is_prose, "{words}{sign}");
            }
        }
    }
}
