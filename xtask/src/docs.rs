//! `cargo xtask docs`: the documentation, run.

mod expected;
mod page;
pub(crate) mod run_page;
mod session;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::workspace::{root, scratch_directory, tested_binary};
use run_page::run_page;

/// Options of `cargo xtask docs`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Runs the marked blocks of all pages with a real server.
    #[arg(long)]
    all: bool,
    /// Runs only this page; can be repeated.
    #[arg(long, value_name = "FILE")]
    page: Vec<PathBuf>,
    /// The server; without it the one that the tests were built with.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Runs pages.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let pages = if arguments.all { all_pages()? } else { arguments.page.clone() };
    if pages.is_empty() {
        bail!("nothing to do: name pages with --page, or run all with --all");
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

/// The pages of the repository, without those that the tests of packages have.
fn all_pages() -> Result<Vec<PathBuf>> {
    let root = root()?;
    let pages = crate::tidy::our_texts()?.into_iter().filter(|path| path.ends_with(".md"));
    Ok(pages.map(|path| root.join(path)).collect())
}
