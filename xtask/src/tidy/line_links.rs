//! Links of pages to a line of the code, such as ``[`run`](crates/x/src/y.rs#L12)``: the line defines what the link names.

use super::Finding;
use super::source::Source;

/// The words before a name that a definition has.
const DEFINITIONS: &[&str] = &["fn ", "struct ", "enum ", "trait ", "const ", "type "];

/// Links from the root's pages to lines that don't define the name of the link.
pub(super) fn misplaced_lines(sources: &[Source]) -> Vec<Finding> {
    let pages = sources.iter().filter(|source| source.path.ends_with(".md") && !source.path.contains('/'));
    pages.flat_map(|page| misplaced_of(page, sources)).collect()
}

fn misplaced_of(page: &Source, sources: &[Source]) -> Vec<Finding> {
    let lines = (1..).zip(page.text.lines());
    let links = lines.flat_map(|(number, line)| line_links(line).map(move |link| (number, link)));
    let misplaced = links.filter_map(|(number, (name, path, line))| {
        let source = sources.iter().find(|source| source.path == path)?;
        let name = name.rsplit("::").next().unwrap_or(name);
        let defines = |text: &str| defines(text, name);
        if source.code.lines().nth(line.saturating_sub(1)).is_some_and(defines) {
            return None;
        }
        let found = source.code.lines().position(defines).map(|at| format!("it is line {}", at + 1));
        let advice = found.unwrap_or_else(|| "the file doesn't define it".to_owned());
        Some(page.finding(number, format!("line {line} of {path} doesn't define `{name}`: {advice}")))
    });
    misplaced.collect()
}

/// The name, the path and the line number of each link to a line.
fn line_links(line: &str) -> impl Iterator<Item = (&str, &str, usize)> {
    line.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        let (path, rest) = rest.split_once("#L")?;
        let number = rest.split_once(')')?.0.parse().ok()?;
        (!path.contains(')')).then_some((name, path, number))
    })
}

fn defines(line: &str, name: &str) -> bool {
    DEFINITIONS.iter().any(|word| {
        let mut places = line.match_indices(word);
        places.any(|(at, _)| {
            let rest = line[at + word.len()..].strip_prefix(name);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_another_line_is_found() {
        let code = Source::new("crates/a/src/b.rs", "struct Run;\nfn runs() {}\npub(crate) async fn run() {}\n".into());
        let link = |name: &str, line: usize| format!("text [`{name}`](crates/a/src/b.rs#L{line}) text");
        let lines =
            [link("run", 3), link("Run", 1), link("A::run", 3), link("run", 2), link("gone", 1), link("run", 9)];
        let page = Source::new("PAGE.md", lines.join("\n"));
        let findings = misplaced_lines(&[page, code]);
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [4, 5, 6]);
        assert!(findings[0].message.ends_with("it is line 3"), "{}", findings[0]);
    }
}
