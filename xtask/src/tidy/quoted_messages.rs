//! Messages that a page quotes, so readers find the page by their words: the program has a message with these words.

use super::Finding;
use super::messages;
use super::source::Source;

/// Pages whose tables with a first column `message` quote the program.
const PAGES: &[&str] = &["docs/guides/troubleshooting.md"];
/// A value in a message, as pages write it.
const VALUE: &str = "…";
/// Characters with their escape in a literal or a format.
const ESCAPED: [&str; 4] = ["{{", "}}", "\\\"", "\\\\"];

/// Quoted messages that the program doesn't have.
pub(super) fn unknown_messages(sources: &[Source]) -> Vec<Finding> {
    let pages: Vec<_> = sources.iter().filter(|source| PAGES.contains(&source.path.as_str())).collect();
    if pages.is_empty() {
        return Vec::new();
    }
    let shipped = messages::shipped(sources).flat_map(messages::texts);
    let known: Vec<String> = shipped.map(|text| without_values(&text)).collect();
    pages.into_iter().flat_map(|page| unknown_of(page, &known)).collect()
}

fn unknown_of(page: &Source, known: &[String]) -> Vec<Finding> {
    let unknown = quotes(&page.text).filter(|(_, quote)| !known.iter().any(|message| message.contains(quote)));
    let message = "no message of the program has these words: quote the current one, with … for each value";
    unknown.map(|(line, quote)| page.finding(line, format!("`{quote}`: {message}"))).collect()
}

/// The line and the text of each code span in a column `message`.
fn quotes(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_column = false;
    let rows = (1..).zip(page.lines()).filter_map(move |(number, line)| {
        let cell = line.strip_prefix('|').and_then(|row| row.split('|').next()).map(str::trim);
        in_column = cell == Some("message") || in_column && cell.is_some();
        cell.filter(|_| in_column).map(|cell| (number, cell))
    });
    rows.flat_map(|(number, cell)| cell.split('`').skip(1).step_by(2).map(move |quote| (number, quote)))
}

/// A literal as users see it, with `…` for each value.
fn without_values(literal: &str) -> String {
    let mut shown = String::new();
    let mut rest = literal;
    while let Some(at) = rest.find(['{', '}', '\\']) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(escaped) = ESCAPED.iter().find(|escaped| rest.starts_with(**escaped)) {
            shown.push_str(&escaped[1..]);
            rest = &rest[escaped.len()..];
        } else if rest.starts_with('{') {
            shown.push_str(VALUE);
            rest = rest.split_once('}').map_or("", |(_, after)| after);
        } else {
            rest = &rest[1..];
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quote_without_message_is_found() {
        let code = "fn a() {\n    warn!(\"cannot read the file {path:?}: {error}. \\\n        Check \\\"{{disk}}\\\" now\");\n}\n\
                    #[cfg(test)]\nmod tests {\n    f(\"only a test says this\");\n}\n";
        let page = "| message | cause |\n|---|---|\n| `the file …: …. Check \"{disk}\"` | `no quote` |\n| `read the disk`, `Check` | |\n\n\
                    | state | `no quote` |\n|---|---|\n| `no quote` | |\n\n`no quote`\n\n| message |\n|---|\n| `only a test` |\n";
        let code = Source::new("crates/event/src/a.rs", code.into());
        let findings = unknown_messages(&[Source::new(PAGES[0], page.into()), code]);
        let found: Vec<_> = findings.iter().map(|f| (f.line, f.message.split(':').next().unwrap_or(""))).collect();
        assert_eq!(found, [(4, "`read the disk`"), (14, "`only a test`")]);
    }
}
