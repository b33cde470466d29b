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

pub(super) fn resolve(folder: &Path, path: &str) -> Option<String> {
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
