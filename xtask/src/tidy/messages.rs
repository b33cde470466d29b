//! `cargo xtask messages`: what the program says to its users, each text with its file and line, to read through.

use std::ops::Range;

use anyhow::Result;

use super::code::is_word;
use super::prose::passages::{Origin, Passage, passages};
use super::prose::{is_message, words};
use super::source::Source;
use crate::workspace;

/// Crates that no user runs.
const OF_TESTS: &[&str] = &["crates/generator/", "crates/harness/", "crates/sink-testing/", "crates/testkit/"];
/// A shorter text is a name or a part of a message.
const WORDS_MIN: usize = 3;
/// What derives the help of a command from doc comments.
const HELP_DERIVES: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];
/// Attributes and macros whose texts only developers read.
const FOR_DEVELOPERS: [&str; 6] = ["allow", "assert!", "assert_eq!", "cfg", "debug_assert!", "expect"];

/// Prints a line for each message: the place, the macro or function that gets it, and the text.
pub(crate) fn print() -> Result<()> {
    let sources = super::read_sources(&workspace::root()?, &super::files()?)?;
    for source in shipped(&sources) {
        for (line, kind, text) in messages(source) {
            println!("{}:{line}: {kind}: {text}", source.path);
        }
    }
    Ok(())
}

/// The files of the program.
pub(super) fn shipped(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| {
        source.path.starts_with("crates/") && !OF_TESTS.iter().any(|path| source.path.starts_with(path))
    })
}

/// The texts of the messages of a file, without help.
pub(super) fn texts(source: &Source) -> impl Iterator<Item = String> {
    messages(source).into_iter().filter(|(_, kind, _)| *kind != "help").map(|(_, _, text)| text)
}

/// The line, the kind and the text of each message of a file.
fn messages(source: &Source) -> Vec<(usize, &str, String)> {
    let production = source.production().len();
    let helps = help_ranges(source.production());
    let is_help = |passage: &Passage| {
        let before_item = |help: &Range<usize>| {
            passage.at < help.start && source.code[passage.at..help.start].trim().trim_start_matches("#[").is_empty()
        };
        helps.iter().any(|help| help.contains(&passage.at) || before_item(help))
    };
    let mut found: Vec<_> = passages(source)
        .into_iter()
        .filter(|passage| passage.at < production)
        .filter_map(|passage| {
            let kind = match passage.origin {
                Origin::Doc if is_help(&passage) => "help",
                Origin::Literal if is_message(&passage) && words(&passage.plain) >= WORDS_MIN => {
                    receiver(&source.code[..passage.at])
                }
                _ => return None,
            };
            let text = passage.text.replace("\\\n", " ");
            let text: Vec<_> = text.split_whitespace().collect();
            (!FOR_DEVELOPERS.contains(&kind)).then(|| (passage.line, kind, text.join(" ")))
        })
        .collect();
    found.sort_by_key(|(line, _, _)| *line);
    found
}

/// The types whose doc comments are help, from `derive` to their closing brace.
fn help_ranges(code: &str) -> Vec<Range<usize>> {
    let derives = code.match_indices("derive(").filter(|(at, _)| {
        let names = code[*at..].split(')').next().unwrap_or_default();
        names.split(|c| !is_word(c)).any(|name| HELP_DERIVES.contains(&name))
    });
    derives.map(|(at, _)| at..at + item_length(&code[at..])).collect()
}

fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at,
            _ => {}
        }
    }
    code.len()
}

/// The macro or function that a literal after this code is given to.
fn receiver(code: &str) -> &str {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().rev() {
        match byte {
            b')' | b']' | b'}' => depth += 1,
            b'(' if depth == 0 => {
                let before = code[..at].trim_end_matches('!');
                let begin = before.char_indices().rev().take_while(|(_, c)| is_word(*c)).last();
                return begin.map_or("text", |(begin, _)| &code[begin..at]);
            }
            b'{' | b'[' | b';' if depth == 0 => return "text",
            b'(' | b'[' | b'{' => depth -= 1,
            _ => {}
        }
    }
    "text"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_their_receiver() {
        let text = "/// Starts the server.\n#[derive(Clone, Args)]\nstruct Flags {\n    /// The address to bind.\n    #[arg(long)]\n    a: u8,\n}\n\
                    /// No help.\nfn a(b: &[u8]) {\n    warn!(sink, count = b.len(), \"sink {sink} is \\\n      slow\");\n    \
                    c(\"short\", \"select a from b where c\");\n    let d = \"one two three\";\n}\n\
                    #[allow(dead_code, reason = \"one two three\")]\nfn e() {}\n#[cfg(test)]\nmod tests {\n    f(\"one two three\");\n}\n";
        let source = Source::new("crates/a/src/b.rs", text.into());
        let expected = [
            (1, "help", "Starts the server."),
            (4, "help", "The address to bind."),
            (10, "warn!", "sink {sink} is slow"),
            (13, "text", "one two three"),
        ];
        assert_eq!(messages(&source), expected.map(|(line, kind, text)| (line, kind, text.to_owned())));
    }

    /// The lines and kinds of the messages of a file.
    fn kinds(text: &str) -> Vec<(usize, String)> {
        let source = Source::new("crates/a/src/b.rs", text.into());
        messages(&source).into_iter().map(|(line, kind, _)| (line, kind.to_owned())).collect()
    }

    #[test]
    fn help_is_in_the_type_that_derives_it() {
        let lines = |numbers: &[usize]| numbers.iter().map(|line| (*line, "help".to_owned())).collect::<Vec<_>>();
        for derive in ["Args", "Parser", "Subcommand", "ValueEnum"] {
            let text = format!(
                "#[derive({derive})]\nenum A {{\n    /// Help.\n    B {{ c: [u8; 4] }},\n    /// Help.\n    D,\n}}\n"
            );
            assert_eq!(kinds(&text), lines(&[3, 5]), "{derive}");
        }
        let text = "/// None.\nfn a() {}\n/// Help.\n#[derive(Args)]\nstruct B(u8);\n/// None.\nfn c() {}\n";
        assert_eq!(kinds(text), lines(&[3]));
    }

    #[test]
    fn text_of_developers_is_no_message() {
        for receiver in ["#[allow", "assert!", "assert_eq!", "#[cfg", "debug_assert!", "a.expect"] {
            assert_eq!(kinds(&format!("{receiver}(b, \"one two three\")")), [], "{receiver}");
        }
        for text in ["f(A { b: \"one two three\" })", "f(&[\"one two three\"], \"one two\")"] {
            assert_eq!(kinds(text), [(1, "text".to_owned())], "{text}");
        }
        let text = "#[derive(Args)]\nstruct A {\n    /// Help.\n    #[arg(help = \"one two three\")]\n    b: u8,\n}\n";
        assert_eq!(kinds(text), [(3, "help".to_owned()), (4, "arg".to_owned())], "in the order of lines");
    }
}
