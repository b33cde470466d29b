//! What a site contains of others, with the texts of their licences. They come from the sources that cargo has unpacked for the build.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::mdbook;
use crate::workspace::copy;

/// The file in the site.
const FILE: &str = "THIRD-PARTY.txt";
/// A licence: its name, a package whose file has its text, that file, and where the text begins after the package's own copyright.
const LICENCES: &[(&str, &str, &str, &str)] = &[
    ("MPL-2.0", "mdbook-html-", "LICENSE", ""),
    ("Font Awesome Free", "font-awesome-as-a-crate-", "fontawesome-free-6.2.0-desktop/LICENSE.txt", ""),
    ("MIT", "pulldown-cmark-", "LICENSE", "Permission is hereby granted"),
    ("BSD-3-Clause", "subtle-", "LICENSE", "Redistribution and use"),
];

/// Copies the licences into mdBook's folder, unless they are there.
pub(super) fn fetch(tool: &Path) -> Result<()> {
    for (name, package, file, _) in LICENCES {
        let kept = kept(tool, name);
        if !kept.is_file() {
            copy(&source_of(package)?.join(file), &kept)?;
        }
    }
    Ok(())
}

/// Writes the list into a site.
pub(super) fn write(tool: &Path, site: &Path) -> Result<()> {
    let mut text = format!(
        "This site was built with mdBook {0}. It contains mdBook's theme under the Mozilla Public License 2.0, whose source is at\n\
         https://crates.io/crates/mdbook-html/{0}; icons of Font Awesome Free, by Fonticons, Inc. (CC BY 4.0), unchanged; and:\n",
        mdbook::VERSION
    );
    for (name, header) in headers(site)? {
        write!(text, "\n{name}\n{header}\n")?;
    }
    for (name, _, _, begin) in LICENCES {
        let path = kept(tool, name);
        let licence = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let at = licence.find(begin).with_context(|| format!("{} has no `{begin}`", path.display()))?;
        write!(text, "\n{}\n{name}\n\n{}\n", "=".repeat(80), licence[at..].trim())?;
    }
    fs::write(site.join(FILE), text).context("writing the licences of the site")
}

fn kept(tool: &Path, name: &str) -> PathBuf {
    tool.join("licences").join(name)
}

/// The scripts of others: the name of each, and the comment with its copyright.
fn headers(site: &Path) -> Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    for path in list(site)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".js") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let Some((header, _)) = text.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) else { continue };
        let has_licence = |name: &str| header.contains(name);
        if header.to_lowercase().contains("licen") {
            if !LICENCES.iter().any(|(name, ..)| has_licence(name)) {
                bail!("{name} has a licence that isn't listed: add it to xtask/src/docs/third_party.rs");
            }
            let lines = header.lines().map(|line| line.trim_matches([' ', '*', '!'])).filter(|line| !line.is_empty());
            headers.push((name, lines.map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")));
        }
    }
    headers.sort();
    Ok(headers)
}

/// The sources of a package that cargo has unpacked; the newest of several.
fn source_of(package: &str) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"))).context("HOME isn't set")?;
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(package).is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    let mut found = Vec::new();
    for registry in list(&home.join("registry").join("src"))? {
        found.extend(list(&registry)?.into_iter().filter(is_it));
    }
    found.sort();
    found.pop().with_context(|| format!("{package}* isn't in cargo's registry below {}", home.display()))
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_licences_are_listed() {
        let folder = std::env::temp_dir().join(format!("forebay-licences-{}", std::process::id()));
        let site = folder.join("site");
        fs::create_dir_all(folder.join("licences")).unwrap();
        fs::create_dir_all(&site).unwrap();
        for (name, _, _, begin) in LICENCES {
            fs::write(kept(&folder, name), format!("Copyright of a package\n{begin} text of {name}\n")).unwrap();
        }
        fs::write(site.join("own.js"), "// ours\n").unwrap();
        fs::write(site.join("mark.js"), "/*!***\n * mark 1\n * Released under the MIT license, © B\n */\nx()").unwrap();
        write(&folder, &site).unwrap();
        let text = fs::read_to_string(site.join(FILE)).unwrap();
        assert!(text.contains("\nmark.js\n  mark 1\n  Released under the MIT license, © B\n"), "{text}");
        assert!(text.contains("\nMIT\n\nPermission is hereby granted text of MIT\n"), "{text}");
        assert!(!text.contains("own.js"), "{text}");
        fs::write(site.join("new.js"), "/* License: GPL */").unwrap();
        let error = write(&folder, &site).unwrap_err().to_string();
        assert!(error.contains("new.js has a licence that isn't listed"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
