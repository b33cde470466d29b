//! Links to a heading: `page.md#anchor` and `#anchor` in pages, and `docs/page.md#anchor` in texts of the code. Each heading is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Finding;
use super::links::{link_texts, resolve, without_code_spans};
use super::source::Source;

/// Its tests have links to pages that aren't there.
const OWN: &str = "xtask/src/tidy/anchors.rs";

/// Anchors by page.
type Anchors<'a> = BTreeMap<&'a str, BTreeSet<String>>;

/// Anchors that no heading has.
pub(super) fn broken_anchors(sources: &[Source]) -> Vec<Finding> {
    let pages = sources.iter().filter(|source| source.path.ends_with(".md"));
    let anchors: Anchors<'_> = pages.map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    sources.iter().filter(|source| source.path != OWN).flat_map(|source| broken_of(source, &anchors)).collect()
}

fn broken_of(source: &Source, anchors: &Anchors<'_>) -> Vec<Finding> {
    let links = if source.path.ends_with(".md") { links_of_page(source) } else { links_of_code(&source.text, anchors) };
    let broken = links.into_iter().filter(|(_, page, anchor)| match anchors.get(page.as_str()) {
        Some(known) => !known.contains(anchor),
        // A page that isn't there breaks another rule, in pages; a link into a file of code has a rule of its lines.
        None => !source.path.ends_with(".md"),
    });
    let message = |page: &str, anchor: &str| {
        let known = anchors.get(page).into_iter().flatten();
        let near =
            known.filter(|known| shared_words(known, anchor) > 0).max_by_key(|known| shared_words(known, anchor));
        let advice = near.map_or("link to a heading that is there".to_owned(), |near| format!("write #{near}"));
        format!("anchors: \"{page}#{anchor}\" → {advice}")
    };
    broken.map(|(line, page, anchor)| source.finding(line, message(&page, &anchor))).collect()
}

fn shared_words(one: &str, other: &str) -> usize {
    one.split('-').filter(|word| word.len() > 3 && other.split('-').any(|other| other == *word)).count()
}

/// The line, the page and the anchor of each link in a page, without those in code.
fn links_of_page(source: &Source) -> Vec<(usize, String, String)> {
    let folder = Path::new(&source.path).parent().unwrap_or(Path::new(""));
    let mut links = Vec::new();
    for (number, line) in outside_code(&source.text) {
        for text in link_texts(&without_code_spans(line)) {
            let Some((path, anchor)) = text.split_once('#').filter(|(path, _)| !path.contains(':')) else { continue };
            let page = if path.is_empty() { Some(source.path.clone()) } else { resolve(folder, path) };
            links.extend(page.map(|page| (number, page, anchor.to_owned())));
        }
    }
    links
}

/// The same in code and settings, where a path begins at the root or is in an address.
fn links_of_code(text: &str, anchors: &Anchors<'_>) -> Vec<(usize, String, String)> {
    const MARK: &str = ".md#";
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_anchor = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let found = text.match_indices(MARK).filter_map(|(at, _)| {
        let begin = text[..at].char_indices().rev().take_while(|(_, c)| is_path(*c)).last()?.0;
        let path = &text[begin..at + MARK.len() - 1];
        let anchor = text[at + MARK.len()..].split(|c| !is_anchor(c)).next().unwrap_or_default();
        let is_root = |path: &&str| path.starts_with("docs/") || anchors.contains_key(*path);
        let from_docs = path.find("/docs/").map_or(path, |docs| &path[docs + 1..]);
        let page = Some(from_docs).filter(is_root)?;
        Some((text[..at].matches('\n').count() + 1, page.to_owned(), anchor.to_owned()))
    });
    found.filter(|(_, _, anchor)| !anchor.is_empty()).collect()
}

/// The numbered lines of a page that aren't in a block of code.
fn outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The anchors that GitHub gives the headings of a page, and those of its tags.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in outside_code(page) {
        let tags = ["<a id=\"", "<a name=\""].into_iter().flat_map(|tag| line.split(tag).skip(1));
        found.extend(tags.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title);
        let repeated = (1..).map(|count| format!("{slug}-{count}"));
        let free = std::iter::once(slug.clone()).chain(repeated).find(|slug| !found.contains(slug));
        found.extend(free);
    }
    found
}

/// Small letters, digits, `_` and `-` of what a reader sees; spaces are `-`.
fn slug(title: &str) -> String {
    let mut shown = String::new();
    let mut rest = title.trim();
    while let Some((text, after)) = rest.split_once("](") {
        shown.push_str(text);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    shown.push_str(rest);
    let kept = shown.chars().filter(|c| c.is_alphanumeric() || ['_', '-', ' '].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_is_that_of_github() {
        for (title, expected) in [
            (" What's *in* a `name`?", "whats-in-a-name"),
            (" `on_error` and [steps](a.md#b): more", "on_error-and-steps-more"),
            (" A – b & c, d/e", "a--b--c-de"),
            (" Größe 1.2, opt-in", "größe-12-opt-in"),
        ] {
            assert_eq!(slug(title), expected);
        }
        assert_eq!(
            anchors("# A\n## A\n```\n# b\n```\n#c\n<a id=\"d\"></a>\n<a name=\"e\"></a>\n  ```\n# f\n  ```\n g\n"),
            BTreeSet::from(["a", "a-1", "d", "e"].map(str::to_owned))
        );
    }

    #[test]
    fn anchor_without_heading_is_found() {
        let page = "# Dead letters\n[b](#dead-letters)\n[b](#all-dead-letters)\n`[b](#c)`\n[b](a.md#gone)\n# Notes to dead ends\n";
        let page = Source::new("docs/a.md", page.into());
        let other = "[b](docs/a.md#dead-letters)\n\n[b](docs/a.md#gone-to) [c](d.rs#L1) [e](https://f/docs/a.md#g)\n";
        let other = Source::new("README.md", other.into());
        let own = Source::new(OWN, "// docs/a.md#gone\n".into());
        let code = "// docs/a.md#dead-letters\nf(\"see https://b.c/docs/a.md#letters-that-are-dead.\");\n\"docs/b.md#c\" \"x.md#d\"\n// README.md#e docs/a.md#{f}\n";
        let code = Source::new("crates/event/src/a.rs", code.into());
        let findings: Vec<String> = broken_anchors(&[page, other, own, code]).iter().map(Finding::to_string).collect();
        assert_eq!(
            findings,
            [
                "docs/a.md:3: anchors: \"docs/a.md#all-dead-letters\" → write #dead-letters",
                "docs/a.md:5: anchors: \"docs/a.md#gone\" → link to a heading that is there",
                "README.md:3: anchors: \"docs/a.md#gone-to\" → link to a heading that is there",
                "crates/event/src/a.rs:2: anchors: \"docs/a.md#letters-that-are-dead\" → write #dead-letters",
                "crates/event/src/a.rs:3: anchors: \"docs/b.md#c\" → link to a heading that is there",
                "crates/event/src/a.rs:4: anchors: \"README.md#e\" → link to a heading that is there",
            ]
        );
    }
}
