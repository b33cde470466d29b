//! mdBook, installed once below `target/tools` with the licences of what it adds to a site. No crate of the workspace depends on it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::{cargo, copy, empty_directory, run, target_directory};

/// Raising it changes the theme, and may change the list of licences.
pub(crate) const VERSION: &str = "0.5.4";
/// What a site contains of others, and the file with its licence, in the sources of the build.
pub(crate) const LICENCES: &[(&str, &str, &str)] = &[
    ("mdBook's theme", "mdbook-html-", "LICENSE"),
    ("the icons of Font Awesome Free", "font-awesome-as-a-crate-", "fontawesome-free-6.2.0-desktop/LICENSE.txt"),
];

/// The folder of the program and of the licences.
pub(crate) fn folder() -> Result<PathBuf> {
    Ok(target_directory()?.join("tools").join(format!("mdbook-{VERSION}")))
}

/// The program, which is built first if it isn't there.
pub(super) fn fetch() -> Result<PathBuf> {
    let folder = folder()?;
    if !folder.is_dir() {
        let making = folder.with_extension("making");
        empty_directory(&making)?;
        println!("building mdBook {VERSION}, which takes some minutes once");
        let mut install = cargo();
        install.args(["install", "mdbook", "--version", VERSION, "--locked", "--quiet"]);
        install.args(["--no-default-features", "--features", "search", "--root"]).arg(&making);
        run(&mut install).context("mdBook is fetched from crates.io")?;
        for (number, (_, package, file)) in LICENCES.iter().enumerate() {
            copy(&source_of(package)?.join(file), &making.join(format!("licence-{number}")))?;
        }
        // The rename is last, because the folder's existence means that it is complete.
        fs::rename(&making, &folder).with_context(|| format!("moving {}", making.display()))?;
    }
    Ok(folder.join("bin").join("mdbook"))
}

/// The sources of a package that cargo has unpacked; the newest of several.
fn source_of(package: &str) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"))).context("HOME isn't set")?;
    let mut found = Vec::new();
    for registry in list(&home.join("registry").join("src"))? {
        found.extend(
            list(&registry)?
                .into_iter()
                .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(package))),
        );
    }
    found.sort();
    found.pop().with_context(|| format!("{package}* isn't in cargo's registry below {}", home.display()))
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}
