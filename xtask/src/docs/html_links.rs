//! The links of a folder with HTML: each file and each anchor is there. Links to other hosts aren't checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tidy::resolve;

/// Its links begin at the root of a server.
const NOT_FOUND_PAGE: &str = "404.html";

/// The links that lead nowhere, each with its page.
pub(super) fn broken(folder: &Path) -> Result<Vec<String>> {
    let mut files = BTreeSet::new();
    list(folder, folder, &mut files)?;
    let mut texts = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "html")) {
        let text = fs::read_to_string(folder.join(file)).with_context(|| format!("reading {}", file.display()))?;
        texts.insert(file.as_path(), text);
    }
    let ids: BTreeMap<&Path, BTreeSet<&str>> =
        texts.iter().map(|(file, text)| (*file, values(text, "id").collect())).collect();
    let mut broken = Vec::new();
    for (file, text) in texts.iter().filter(|(file, _)| **file != Path::new(NOT_FOUND_PAGE)) {
        let links: BTreeSet<&str> = values(text, "href").chain(values(text, "src")).collect();
        let dead = links.into_iter().filter(|link| !leads_somewhere(file, link, &files, &ids));
        broken.extend(dead.map(|link| format!("{}: the link `{link}` leads nowhere", file.display())));
    }
    Ok(broken)
}

fn list(root: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else {
            files.insert(path.strip_prefix(root)?.to_owned());
        }
    }
    Ok(())
}

/// The values of an attribute in all tags.
fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {attribute}=\"");
    let length = begin.len();
    let found: Vec<usize> = html.match_indices(&begin).map(|(at, _)| at + length).collect();
    found.into_iter().filter_map(move |at| html[at..].split('"').next())
}

fn leads_somewhere(page: &Path, link: &str, files: &BTreeSet<PathBuf>, ids: &BTreeMap<&Path, BTreeSet<&str>>) -> bool {
    let link = decoded(&link.replace("&amp;", "&"));
    let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
    if path.contains(':') || path.starts_with("//") {
        return true;
    }
    // The site may be in any folder of a server.
    if path.starts_with('/') {
        return false;
    }
    let folder = page.parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { Some(page.to_owned()) } else { resolve(folder, path).map(PathBuf::from) };
    let Some(target) = target else { return false };
    // A line of a file that isn't a page, as code hosts show it.
    let is_line = || anchor.strip_prefix('L').is_some_and(|number| number.parse::<u32>().is_ok());
    let has_anchor = || ids.get(target.as_path()).map_or_else(is_line, |ids| ids.contains(anchor));
    files.contains(&target) && (anchor.is_empty() || has_anchor())
}

/// A link without percent signs.
fn decoded(link: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = link.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_broken_links_are_found() {
        let folder = std::env::temp_dir().join(format!("forebay-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("b")).unwrap();
        let page = "<a href=\"b/c.html#gr%C3%B6%C3%9Fe\"><a href=\"#d\"><p id=\"d\"><img src=\"e.svg\"><a href=\"https://f/g\">\
                    <a href=\"gone.html\"><a href=\"b/c.html#gone\"><a href=\"../a.html\"><a href=\"#e\"><a href=\"b\"><a href=\"e.svg#L7\"><a href=\"e.svg#x\">";
        fs::write(folder.join("a.html"), page).unwrap();
        fs::write(folder.join("404.html"), "<a href=\"/x.html\">").unwrap();
        fs::write(folder.join("e.svg"), "").unwrap();
        fs::write(folder.join("b/c.html"), "<h2 id=\"größe\"><a href=\"../a.html#d\">").unwrap();
        let expected = ["#e", "../a.html", "b", "b/c.html#gone", "e.svg#x", "gone.html"];
        assert_eq!(broken(&folder).unwrap(), expected.map(|link| format!("a.html: the link `{link}` leads nowhere")));
        fs::remove_dir_all(folder).unwrap();
    }
}
