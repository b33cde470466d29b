//! Links between the pages of the repository: each leads somewhere, and each page is led to.

use std::path::{Component, Path, PathBuf};

use super::Finding;
use super::source::Source;

/// Links to files that aren't there. `exists` answers for a path from the root.
pub(super) fn broken_links(sources: &[Source], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let links = sources.iter().flat_map(|source| links(source).into_iter().map(move |link| (source, link)));
    let broken = links.filter(|(_, link)| link.target.as_deref().is_none_or(|target| !exists(target)));
    broken.map(|(source, link)| source.finding(link.line, format!("the link `{}` leads nowhere", link.text))).collect()
}

/// Pages under `docs/` that no other page links to.
pub(super) fn unlinked_pages(sources: &[Source]) -> Vec<Finding> {
    let pages = sources.iter().filter(|source| source.path.starts_with("docs/") && source.path.ends_with(".md"));
    let linked = |page: &Source| {
        let others = sources.iter().filter(|source| source.path != page.path);
        others.flat_map(links).any(|link| link.target.as_deref() == Some(&page.path))
    };
    pages
        .filter(|page| !linked(page))
        .map(|page| page.finding(0, "no page links here: add it where it belongs"))
        .collect()
}

/// The paths from the root to which a page links, without anchors, in their order.
pub(crate) fn page_links(page: &str, text: &str) -> Vec<String> {
    links(&Source::new(page, text.to_owned())).into_iter().filter_map(|link| link.target).collect()
}

/// The page with other paths in its links. `change` gets the linked path from the root, and the path as written.
pub(crate) fn map_links(page: &str, text: &str, change: &mut dyn FnMut(&str, &str) -> String) -> String {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut in_code = false;
    let mut changed = String::new();
    for line in text.split_inclusive('\n') {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            changed.push_str(line);
            continue;
        }
        // Code spans are the odd parts.
        let parts = line.split('`').enumerate().map(|(number, part)| match number % 2 {
            0 => with_links(part, folder, change),
            _ => part.to_owned(),
        });
        changed += &parts.collect::<Vec<_>>().join("`");
    }
    changed
}

fn with_links(part: &str, folder: &Path, change: &mut dyn FnMut(&str, &str) -> String) -> String {
    let mut pieces = part.split("](");
    let mut changed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        changed += "](";
        let end = piece.find([')', '#', ' ']).unwrap_or(0);
        let (path, rest) = piece.split_at(end);
        let target = resolve(folder, path).filter(|_| !path.is_empty() && !path.contains(':'));
        changed += &target.map_or_else(|| path.to_owned(), |target| change(&target, path));
        changed += rest;
    }
    changed
}

struct Link {
    line: usize,
    text: String,
    /// From the root; none where the link leaves the repository.
    target: Option<String>,
}

/// The links of a Markdown page to files; none of other files, none within code.
fn links(source: &Source) -> Vec<Link> {
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let folder = Path::new(&source.path).parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in source.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for text in link_texts(&without_code_spans(line)) {
            let path = text.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains(':') {
                found.push(Link { line: number + 1, text: text.clone(), target: resolve(folder, path) });
            }
        }
    }
    found
}

pub(super) fn link_texts(line: &str) -> Vec<String> {
    let inline = line.match_indices("](").filter_map(|(at, opening)| {
        let inside = &line[at + opening.len()..];
        inside.find(')').map(|end| inside[..end].split(' ').next().unwrap_or_default().to_owned())
    });
    let definition = line.starts_with('[').then(|| line.split_once("]: ")).flatten();
    inline.chain(definition.map(|(_, target)| target.trim().to_owned())).collect()
}

pub(super) fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("` `")
}

/// The path from the root of a path that is relative to a folder; none if it leaves the root.
pub(crate) fn resolve(folder: &Path, path: &str) -> Option<String> {
    let mut resolved = PathBuf::new();
    for component in folder.join(path).components() {
        match component {
            Component::ParentDir if !resolved.pop() => return None,
            Component::Normal(part) => resolved.push(part),
            _ => {}
        }
    }
    Some(resolved.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Source {
        Source::new(path, text.into())
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let text = "[a](gone.md) [b](there.md#part)\n[c](https://x.y/z) [d](#here)\n`[e](code.md)`\n```\n[f](code.md)\n```\n\
                    [g](../README.md)\n[h](../../README.md)\n[i]: gone.md\n";
        let broken = broken_links(&[page("docs/a.md", text)], &|path| ["docs/there.md", "README.md"].contains(&path));
        assert_eq!(broken.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 8, 9]);
    }

    #[test]
    fn page_without_links_to_it_is_found() {
        let lonely = [page("README.md", "[a](docs/a.md)"), page("docs/a.md", ""), page("docs/b.md", "[b](b.md)")];
        let findings = unlinked_pages(&lonely);
        assert_eq!(findings.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(), ["docs/b.md"]);
    }
}
