//! The chapters of the site: the lists of `docs/README.md`, and the pages that a listed index links to.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::tidy::page_links;

/// The page with the lists.
pub(super) const MAP: &str = "docs/README.md";
/// Pages of the repository's root before the lists and after them.
const FIRST: &[(&str, &str)] = &[("Forebay", "README.md"), ("Documentation", MAP)];
const LAST: &[(&str, &str)] =
    &[("Changes", "CHANGELOG.md"), ("Contributing", "CONTRIBUTING.md"), ("Security", "SECURITY.md")];

/// A line of the side bar.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Part(String),
    Chapter { depth: usize, title: String, page: String },
}

/// The side bar. `read` returns the text of a page, by its path from the root.
pub(super) fn entries(read: &dyn Fn(&str) -> Result<String>) -> Result<Vec<Entry>> {
    let mut found = Found { entries: Vec::new(), pages: BTreeSet::new() };
    let of_root = |(title, page): &(&str, &str)| (0, (*title).to_owned(), (*page).to_owned());
    FIRST.iter().for_each(|page| found.add(of_root(page)));
    let map = read(MAP)?;
    let listed: Vec<_> = map.lines().filter_map(listed).collect();
    let named: BTreeSet<_> = listed.iter().filter_map(|line| Some(line.as_ref().ok()?.2.clone())).collect();
    for line in listed {
        match line {
            Err(part) => found.entries.push(Entry::Part(part)),
            Ok((depth, title, page)) => {
                found.add((depth, title, page.clone()));
                found.add_pages_of_index(&page, depth + 1, &named, read)?;
            }
        }
    }
    found.entries.push(Entry::Part("Project".to_owned()));
    LAST.iter().for_each(|page| found.add(of_root(page)));
    let is_empty = |pair: &[Entry]| matches!(pair, [Entry::Part(_), Entry::Part(_)]);
    let empty: BTreeSet<usize> =
        found.entries.windows(2).enumerate().filter(|(_, pair)| is_empty(pair)).map(|(at, _)| at).collect();
    let kept = found.entries.into_iter().enumerate().filter(|(at, _)| !empty.contains(at));
    Ok(kept.map(|(_, entry)| entry).collect())
}

struct Found {
    entries: Vec<Entry>,
    pages: BTreeSet<String>,
}

impl Found {
    fn add(&mut self, (depth, title, page): (usize, String, String)) {
        if self.pages.insert(page.clone()) {
            self.entries.push(Entry::Chapter { depth, title, page });
        }
    }

    /// Adds the pages below the folder of an index that it links to.
    fn add_pages_of_index(
        &mut self,
        index: &str,
        depth: usize,
        named: &BTreeSet<String>,
        read: &dyn Fn(&str) -> Result<String>,
    ) -> Result<()> {
        let Some(folder) = index.strip_suffix("README.md") else { return Ok(()) };
        for page in page_links(index, &read(index)?) {
            if page.starts_with(folder) && page.ends_with(".md") && !named.contains(&page) {
                let title = title(&page, &read(&page)?)?;
                self.add((depth, title, page));
            }
        }
        Ok(())
    }
}

/// A line of the map: a part, or a page with its depth and its title. None for other lines.
fn listed(line: &str) -> Option<Result<(usize, String, String), String>> {
    if let Some(part) = line.strip_prefix("## ") {
        return Some(Err(part.trim().to_owned()));
    }
    let item = line.trim_start();
    let (title, rest) = item.strip_prefix("* [").or_else(|| item.strip_prefix("- ["))?.split_once("](")?;
    let page = page_links(MAP, &format!("[{title}]({rest}")).into_iter().next()?;
    Some(Ok(((line.len() - item.len()) / 2, title.to_owned(), page)))
}

fn title(page: &str, text: &str) -> Result<String> {
    let title =
        text.lines().next().and_then(|line| line.strip_prefix("# ")).with_context(|| format!("{page} has no title"))?;
    ensure!(!title.trim().is_empty(), "{page} has an empty title");
    Ok(title.trim().to_owned())
}

/// The side bar as mdBook reads it.
pub(super) fn summary(entries: &[Entry]) -> String {
    let mut text = "# Summary\n".to_owned();
    for entry in entries {
        text += &match entry {
            Entry::Part(part) => format!("\n# {part}\n\n"),
            Entry::Chapter { depth, title, page } => {
                let page = in_book(page);
                // A chapter before the first part has no number and no item.
                let item = if FIRST.iter().any(|(_, first)| in_book(first) == page) { "\n" } else { "- " };
                format!("{}{item}[{title}]({page})\n", "  ".repeat(*depth))
            }
        };
    }
    text
}

/// The path of a page in the book: mdBook doesn't make an index of a `README.md` that others link to.
pub(super) fn in_book(page: &str) -> String {
    match Path::new(page).file_name() {
        Some(name) if name == "README.md" => Path::new(page).with_file_name("index.md").display().to_string(),
        _ => page.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_bar_is_that_of_the_map() {
        let read = |page: &str| {
            Ok(match page {
                MAP => "# D\n## Find\n| [x](a.md) |\n## One\n* [A](start/a.md)\n  * [B](start/b.md): more\n## Two\n* [E](../e/README.md)\n* [F](../e/f.md)\n",
                "e/README.md" => "# E\n[g](g/README.md) [f](f.md) [a](../docs/start/a.md)\n",
                "e/g/README.md" => "# The g\n",
                other => anyhow::bail!("{other} isn't read"),
            }
            .to_owned())
        };
        assert_eq!(
            summary(&entries(&read).unwrap()),
            "# Summary\n\n[Forebay](index.md)\n\n[Documentation](docs/index.md)\n\n# One\n\n- [A](docs/start/a.md)\n  - [B](docs/start/b.md)\n\
             \n# Two\n\n- [E](e/index.md)\n  - [The g](e/g/index.md)\n- [F](e/f.md)\n\
             \n# Project\n\n- [Changes](CHANGELOG.md)\n- [Contributing](CONTRIBUTING.md)\n- [Security](SECURITY.md)\n"
        );
    }
}
