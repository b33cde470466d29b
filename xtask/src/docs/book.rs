//! The site: pages, and the files that they link to, are copied below `target/`, and mdBook builds them.
//!
//! The copy has the paths of the repository, so a relative link has the same target in both.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::html_links;
use super::mdbook;
use super::summary::{Entry, entries, in_book, summary};
use super::third_party;
use crate::tidy::map_links;
use crate::workspace::{captured, copy, create_folder_of, empty_directory, root, target_directory};

/// No print page: it repeats all others.
const SETTINGS: &str = "[book]\ntitle = \"Forebay\"\nlanguage = \"en\"\n\n[output.html]\nno-section-label = true\n\n[output.html.fold]\nenable = true\n\n[output.html.print]\nenable = false\n";

/// Instead of the theme's list: the reader's fonts are enough, and the package stays small.
const NO_FONTS: &str = "/* No fonts. */\n";

/// Builds the site, and checks all its links. Returns its folder.
pub(crate) fn build() -> Result<PathBuf> {
    let tool = mdbook::fetch()?;
    third_party::fetch(&tool)?;
    let target = target_directory()?;
    let [source, book] = ["book-source", "book"].map(|name| target.join(name));
    let pages = stage(&root()?, &source)?;
    empty_directory(&book)?;
    captured(Command::new(tool.join("bin/mdbook")).arg("build").arg("--dest-dir").arg(&book).arg(&source))?;
    third_party::write(&tool, &book)?;
    let broken = html_links::broken(&book)?;
    broken.iter().for_each(|link| println!("{link}"));
    ensure!(broken.is_empty(), "{} links of the site lead nowhere", broken.len());
    println!("{}: {} pages, all links lead somewhere", book.display(), pages.len());
    Ok(book)
}

/// Copies everything that mdBook reads. Returns the paths of the pages.
pub(super) fn stage(root: &Path, source: &Path) -> Result<BTreeSet<String>> {
    empty_directory(source)?;
    let read = |page: &str| fs::read_to_string(root.join(page)).with_context(|| format!("reading {page}"));
    let entries = entries(&read)?;
    let pages: BTreeSet<&str> = entries.iter().filter_map(page).collect();
    let pages_folder = source.join("src");
    for page in &pages {
        let text = Stage { root, folder: &pages_folder, pages: &pages }.page(page, &read(page)?)?;
        write(&pages_folder.join(in_book(page)), &text)?;
    }
    write(&pages_folder.join("SUMMARY.md"), &summary(&entries))?;
    write(&source.join("theme/fonts/fonts.css"), NO_FONTS)?;
    write(&source.join("book.toml"), SETTINGS)?;
    Ok(pages.into_iter().map(str::to_owned).collect())
}

fn page(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Chapter { page, .. } => Some(page),
        Entry::Part(_) => None,
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    create_folder_of(path)?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// The copy of one page.
struct Stage<'a> {
    root: &'a Path,
    folder: &'a Path,
    pages: &'a BTreeSet<&'a str>,
}

impl Stage<'_> {
    /// A page with the links that it has in the book. Copies the files that it links to.
    fn page(&self, page: &str, text: &str) -> Result<String> {
        let mut failure = None;
        let changed = map_links(page, text, &mut |target, written| {
            self.link(page, target, written).unwrap_or_else(|error| {
                failure.get_or_insert(error);
                written.to_owned()
            })
        });
        failure.map_or(Ok(changed), Err)
    }

    /// The path of a link in the book; `target` is the linked path from the root, `written` the path in the page.
    fn link(&self, page: &str, target: &str, written: &str) -> Result<String> {
        if self.pages.contains(target) {
            return Ok(in_book(written));
        }
        let path = self.root.join(target);
        if path.is_dir() {
            let index = format!("{target}/README.md");
            if self.pages.contains(index.as_str()) {
                return Ok(format!("{}/index.md", written.trim_end_matches('/')));
            }
            self.copy_folder(target)?;
            return Ok(format!("{}/index.html", written.trim_end_matches('/')));
        }
        if target.ends_with(".md") {
            bail!("{page}: {target} isn't a page of the site: add it to a list of docs/README.md");
        }
        copy(&path, &self.folder.join(target))?;
        Ok(written.to_owned())
    }

    /// Copies the files that git knows, with an index.
    fn copy_folder(&self, folder: &str) -> Result<()> {
        let listed = captured(Command::new("git").arg("-C").arg(self.root).args(["ls-files", "--", folder]))?;
        let mut index =
            format!("<!DOCTYPE html>\n<html lang=\"en\">\n<title>{folder}</title>\n<h1>{folder}</h1>\n<ul>\n");
        for file in listed.lines() {
            copy(&self.root.join(file), &self.folder.join(file))?;
            let name = file.strip_prefix(folder).unwrap_or(file).trim_start_matches('/');
            index += &format!("<li><a href=\"{name}\">{name}</a></li>\n");
        }
        write(&self.folder.join(folder).join("index.html"), &(index + "</ul>\n</html>\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_into_the_book() {
        let root = std::env::temp_dir().join(format!("forebay-book-{}", std::process::id()));
        let folder = root.join("staged");
        write(&root.join("deploy/a.yml"), "a: 1").unwrap();
        write(&root.join("other.md"), "# Other\n").unwrap();
        let pages = BTreeSet::from(["docs/README.md", "docs/a.md", "examples/README.md"]);
        let stage = Stage { root: &root, folder: &folder, pages: &pages };
        std::fs::create_dir_all(root.join("examples")).unwrap();
        let text = "[a](README.md) [b](../deploy/a.yml) `[c](README.md)` [`d`](../examples) [e](https://f/README.md)\n";
        let expected = "[a](index.md) [b](../deploy/a.yml) `[c](README.md)` [`d`](../examples/index.md) [e](https://f/README.md)\n";
        assert_eq!(stage.page("docs/a.md", text).unwrap(), expected);
        assert_eq!(std::fs::read_to_string(folder.join("deploy/a.yml")).unwrap(), "a: 1");
        let error = stage.page("docs/a.md", "[a](../other.md)").unwrap_err().to_string();
        assert!(error.contains("docs/a.md: other.md isn't a page of the site"), "{error}");
        std::fs::remove_dir_all(root).unwrap();
    }
}
