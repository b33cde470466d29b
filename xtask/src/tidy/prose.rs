//! Plain words: which phrases the project doesn't write, and how long sentences, table cells and messages may be.
//!
//! The rules read Markdown, doc comments, comments, string literals and the comments of settings. To allow a phrase in one file, add it to
//! `prose/allowed.rs` with a reason.

mod allowed;
mod blocks;
mod lengths;
pub(super) mod passages;
mod phrase_list;
mod phrases;
mod plain_text;
mod ratchet;
mod test_names;
mod wording;

use super::Finding;
use super::source::Source;
use allowed::AllowList;
pub(super) use lengths::{is_message, words};
pub(super) use ratchet::PATH as RATCHET;

/// A text that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    rule: &'static str,
    line: usize,
    /// The text, in short.
    quoted: String,
    /// What to write, after the words "write" or "name".
    instead: String,
}

/// The list has the phrases in its strings.
const LIST: &str = "xtask/src/tidy/prose/phrase_list.rs";

/// The rule of all files: what `allowed.rs` and `ratchet.txt` don't cover.
pub(super) fn breaches(sources: &[Source], ratchet: &str) -> Vec<Finding> {
    let mut allow_list = AllowList::new(allowed::ALLOWED);
    let mut counts = ratchet::Counts::parse(ratchet);
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path != LIST) {
        let mut found = breaches_of(source);
        found.retain(|breach| !allow_list.allows(&source.path, &breach.quoted));
        findings.extend(counts.apply(source, found));
    }
    findings.extend(allow_list.faults());
    findings.extend(counts.unused());
    findings
}

fn breaches_of(source: &Source) -> Vec<Breach> {
    let passages = passages::passages(source);
    let production = source.production().len();
    let mut found: Vec<Breach> = passages.iter().flat_map(wording::prose_words).collect();
    found.extend(passages.iter().flat_map(wording::heading_words));
    found.extend(passages.iter().flat_map(lengths::sentence_length));
    found.extend(passages.iter().flat_map(lengths::cell_length));
    found.extend(passages.iter().filter(|passage| passage.at < production).flat_map(lengths::message_length));
    found.extend(test_names::test_names(&source.code));
    found.sort_by_key(|breach| breach.line);
    found
}

/// The beginning of a text, on one line.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 60;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that a file breaks.
    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        breaches_of(&Source::new(path, text.into())).into_iter().map(|breach| breach.rule).collect()
    }

    /// A text of this many words.
    fn text_of(words: usize) -> String {
        format!("Word{}", " word".repeat(words - 1))
    }

    /// Ways to write a text, with the path of such a file. `@` is where the text goes.
    const PLACES: &[(&str, &str)] = &[
        ("docs/a.md", "# Title\n\n@"),
        ("docs/a.md", "* item\n* @\n"),
        ("docs/a.md", "| a | @ |\n"),
        ("docs/a.md", "## @\n"),
        ("crates/event/src/a.rs", "//! Doc.\n//! @\n"),
        ("crates/cli/src/a.rs", "#[derive(Args)]\nstruct A {\n    /// @\n    #[arg(long)]\n    a: bool,\n}\n"),
        ("crates/event/src/a.rs", "fn a() {\n    // @\n    b(); // @\n}\n"),
        ("crates/event/src/a.rs", "/* @ */"),
        ("crates/event/src/a.rs", "fn a() { warn!(\"Five words are a message: @\") }"),
        ("crates/event/src/a.rs", "const A: &str = r#\"Five words are a message: @\"#;"),
        ("crates/event/src/a.rs", "#[cfg(test)]\nmod tests {\n    fn a() { b(\"Five words are a message: @\") }\n}\n"),
        ("crates/forebay/src/metrics/a.rs", "text.counter(\"forebay_a\", \"Events with a long help, @.\", b);"),
        ("deploy/a.toml", "# @\na = 1 # @\n"),
        ("deploy/a.toml", "description = \"@\"\n"),
        ("deploy/a.yaml", "a:\n  description: >-\n    One\n    @\n  summary: @\n"),
        ("deploy/a.yml", "help: |\n  One\n\n  @\nmessage: @\n"),
        (".ci/run", "# @\n"),
        ("packaging/a.sh", "# @\n"),
    ];

    #[test]
    fn listed_phrase_is_found_in_each_place() {
        for (path, place) in PLACES {
            let planted = place.replace('@', concat!("an event was bur", "ied there"));
            let places = place.matches('@').count();
            assert_eq!(rules(path, &planted), vec!["prose_words"; places], "{path}: {planted}");
            for allowed in ["a `buried` one", "dead letters", "connection refused", "[a](buried.md)", "dead-letter"] {
                let planted = place.replace('@', allowed);
                assert_eq!(rules(path, &planted), [""; 0], "{path}: {planted}");
            }
        }
    }

    #[test]
    fn texts_that_are_no_prose_are_not_read() {
        for (path, text) in [
            ("docs/a.md", "```\nit is buried\n```\n"),
            ("crates/event/src/a.rs", "/// ```\n/// buried(now);\n/// ```\n"),
            ("crates/event/src/a.rs", "let a = f(\"{buried} words\", \"{buried} and three words\");"),
            ("crates/event/src/a.rs", "\"a_b c d buried\""),
            ("crates/event/src/a.rs", "let a = f(r\"what a raw literal is\\nburied {buried}\");"),
            ("deploy/a.toml", "buried = \"buried here\"\n"),
            ("deploy/a.yaml", "a: 'b # buried'\n"),
            ("crates/event/src/a.txt", "it is buried"),
        ] {
            assert_eq!(rules(path, text), [""; 0], "{path}: {text}");
        }
    }

    #[test]
    fn literal_of_five_words_is_read() {
        let literal = concat!("\"a b c d bur", "ied\"");
        assert_eq!(rules("crates/event/src/a.rs", literal), ["prose_words"]);
    }

    #[test]
    fn long_sentence_is_found_in_pages_and_docs() {
        for (path, place) in [
            ("docs/a.md", "One. @. Two."),
            ("docs/a.md", "* @\n"),
            ("crates/event/src/a.rs", "/// One: two.\n/// @\n"),
            ("crates/cli/src/a.rs", "#[derive(Args)]\nstruct A {\n    /// @\n    #[arg(long)]\n    a: bool,\n}\n"),
            ("crates/event/src/a.rs", "// @\n"),
            ("crates/event/src/a.rs", "/* @ */"),
        ] {
            assert_eq!(rules(path, &place.replace('@', &text_of(41))), ["sentence_length"], "{place}");
            let halves = format!("{}.\nAnd {}", text_of(38), text_of(39));
            assert_eq!(rules("docs/a.md", &halves), [""; 0]);
            assert_eq!(rules(path, &place.replace('@', &text_of(40))), [""; 0], "{place}");
        }
    }

    #[test]
    fn long_sentence_has_its_line() {
        let page = Source::new("docs/a.md", format!("One.\nTwo.\n{}\n", text_of(41)));
        let found = breaches_of(&page);
        assert_eq!((found[0].line, found[0].instead.as_str()), (3, "at most 40 words: it has 41"));
    }

    #[test]
    fn long_cell_is_found() {
        let row = |words: usize| format!("| a | {} | b |\n", text_of(words));
        assert_eq!(rules("docs/a.md", &row(41)), ["cell_length"]);
        assert_eq!(rules("docs/a.md", &row(40)), [""; 0]);
        assert_eq!(rules("docs/a.md", &format!("| {} \\| {} |\n", text_of(20), text_of(21))), ["cell_length"]);
        assert_eq!(rules("crates/event/src/a.rs", &format!("//! {}", row(41))), ["cell_length"]);
    }

    #[test]
    fn long_message_is_found() {
        let path = "crates/event/src/a.rs";
        let message = |words: usize| format!("fn a() {{ warn!(\"{}\") }}\n", text_of(words));
        assert_eq!(rules(path, &message(36)), ["message_length"]);
        assert_eq!(rules(path, &message(35)), [""; 0]);
        assert_eq!(rules(path, &message(41)), ["message_length"], "a message has no sentence_length");
        let help = format!("text.counter(\"forebay_a\", \"{}.\", b);", text_of(36));
        assert_eq!(rules("crates/forebay/src/metrics/a.rs", &help), ["message_length"]);
        assert_eq!(rules(path, &format!("f(\"insert into {}\")", text_of(36))), [""; 0]);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", message(36));
        assert_eq!(rules(path, &tests), [""; 0], "tests show no messages");
    }

    #[test]
    fn heading_that_is_no_search_term_is_found() {
        for heading in [
            "Who pays",
            "What to do",
            "Where to go",
            "Does it",
            "Events that wait",
            "Order is kept",
            "Events are kept",
            "Order isn't kept",
            "Events aren't kept",
        ] {
            assert_eq!(rules("docs/a.md", &format!("# {heading}\n")), ["heading_words"], "{heading}");
            assert_eq!(rules("docs/a.md", &format!("# {heading}?\n")), [""; 0], "{heading}");
        }
        assert_eq!(rules("docs/a.md", "# Order of `what` and `is`\nWhat it is\n"), [""; 0]);
        assert_eq!(rules("crates/event/src/a.rs", "//! # What it is\n"), [""; 0]);
        let found = breaches_of(&Source::new("docs/a.md", "\n## Who pays\n".into()));
        assert_eq!((found[0].line, found[0].quoted.as_str()), (2, "Who pays"));
    }

    #[test]
    fn bad_test_name_is_found() {
        let test = |attribute: &str, name: &str| format!("#[{attribute}]\n#[ignore]\nasync fn {name}() {{}}\n");
        let long = vec!["word"; 13].join("_");
        for attribute in ["test", "tokio::test"] {
            for name in ["who_sends", "what_it_does", "event_is_buried", "it_goes_on", &long] {
                assert_eq!(rules("crates/event/src/a.rs", &test(attribute, name)), ["test_names"], "{name}");
            }
            for name in ["dead_letter_is_sent", "connection_refused_is_retried", &long[5..]] {
                assert_eq!(rules("crates/event/src/a.rs", &test(attribute, name)), [""; 0], "{name}");
            }
        }
        let found = breaches_of(&Source::new("crates/event/src/a.rs", test("test", "who_sends")));
        assert_eq!((found[0].line, found[0].instead.as_str()), (3, "the subject, in `who_sends`"));
    }

    #[test]
    fn finding_names_the_rule_and_the_replacement() {
        let page = Source::new("docs/a.md", "# A\n\nOne\ngoes\non.\n".into());
        let findings = breaches(&[page], "");
        let shown: Vec<_> =
            findings.iter().filter(|finding| finding.path == "docs/a.md").map(|f| f.to_string()).collect();
        let expected = format!("docs/a.md:4: prose_words: \"{}\" → write continues, resumes", "goes on");
        assert_eq!(shown, [expected]);
    }

    #[test]
    fn findings_are_those_not_accepted() {
        let used = allowed::ALLOWED.iter().skip(1);
        let mut sources: Vec<_> = used.map(|(path, phrase, _)| Source::new(path, format!("// {phrase}\n"))).collect();
        sources.push(Source::new(LIST, concat!("// bur", "ied\n").into()));
        sources.push(Source::new("docs/a.md", concat!("bur", "ied\n").into()));
        let findings = breaches(&sources, "1 docs/a.md\n1 docs/b.md\n");
        let paths: Vec<_> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["xtask/src/tidy/prose/allowed.rs", "docs/b.md"]);
    }

    #[test]
    fn breaches_are_in_the_order_of_lines() {
        let page = format!("{}.\n\n# Who pays\n\nburied\n", text_of(41));
        assert_eq!(rules("docs/a.md", &page), ["sentence_length", "heading_words", "prose_words"]);
    }

    #[test]
    fn quoted_text_is_short() {
        assert_eq!(beginning(&"a\n".repeat(30)), "a ".repeat(30).trim_end());
        assert_eq!(beginning(&"a\n".repeat(31)), format!("{}…", "a ".repeat(30)));
    }
}
