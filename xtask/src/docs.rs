//! `cargo xtask docs`: the documentation as a site, and its commands, run.

pub(crate) mod book;
mod expected;
mod html_links;
mod mdbook;
mod page;
mod run_page;
mod session;
mod summary;
mod third_party;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::workspace::{root, scratch_directory, tested_binary};
use run_page::run_page;
pub(crate) use run_page::run_page_in;

/// The page that `cargo xtask campaign tutorial` runs, in a machine.
pub(crate) const TUTORIAL: &str = "docs/start/tutorial.md";

/// Options of `cargo xtask docs`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Builds the site, and runs the marked blocks of all pages with a real server.
    #[arg(long)]
    all: bool,
    /// Runs only this page; can be repeated.
    #[arg(long, value_name = "FILE")]
    page: Vec<PathBuf>,
    /// The server; without it the one that the tests were built with.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Builds the site in `target/book`, or runs pages.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.page.is_empty() {
        book::build()?;
    }
    let pages = if arguments.all { all_pages()? } else { arguments.page.clone() };
    if pages.is_empty() {
        return Ok(());
    }
    let binary = tested_binary(arguments.binary.as_deref())?;
    let scratch = scratch_directory("docs")?;
    let mut failures = 0;
    for (number, page) in pages.iter().enumerate() {
        if let Err(error) = run_page(page, &binary, &scratch.join(format!("page-{number}"))) {
            println!("{error:#}");
            failures += 1;
        }
    }
    if failures > 0 {
        bail!("{failures} pages don't run as they say; the files are in {}", scratch.display());
    }
    std::fs::remove_dir_all(&scratch)?;
    Ok(())
}

/// The pages of the repository, without the tutorial.
fn all_pages() -> Result<Vec<PathBuf>> {
    let root = root()?;
    let pages = crate::tidy::our_texts()?.into_iter().filter(|path| path.ends_with(".md") && path != TUTORIAL);
    Ok(pages.map(|path| root.join(path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_all_pages_are_right() {
        for path in all_pages().unwrap() {
            let text = std::fs::read_to_string(&path).unwrap();
            page::actions(&text).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        }
    }

    #[test]
    fn site_has_every_page_of_the_documentation() {
        let folder = std::env::temp_dir().join(format!("forebay-site-{}", std::process::id()));
        let pages = book::stage(&root().unwrap(), &folder).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let of_docs = crate::tidy::our_texts().unwrap().into_iter();
        let missing: Vec<_> = of_docs
            .filter(|path| path.starts_with("docs/") && path.ends_with(".md") && !pages.contains(path))
            .collect();
        assert!(missing.is_empty(), "docs/README.md doesn't list {missing:?}");
    }
}
