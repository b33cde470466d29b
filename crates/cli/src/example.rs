//! `forebay example`: lists the examples of the source tree, which are within the binary, and writes one to a folder.

mod files;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Error, anyhow};

use crate::errors::at;
use crate::flags::ExampleFlags;
use crate::output::print;
use files::{EXAMPLES, Example};

/// The start of links to pages, which aren't next to a written example.
const PAGES: &str = "](../../";
const PROGRAM_MODE: u32 = 0o755;

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says what failed.
pub(crate) fn run(flags: &ExampleFlags) -> anyhow::Result<u8> {
    match &flags.name {
        None => list()?,
        Some(name) => {
            let example = find(name)?;
            let folder = flags.directory.clone().unwrap_or_else(|| PathBuf::from(name));
            write(example, &folder)?;
            print(|output| writeln!(output, "{}: read README.md there", folder.display()))?;
        }
    }
    Ok(0)
}

fn list() -> anyhow::Result<()> {
    let width = EXAMPLES.iter().map(|example| example.name.len()).max().unwrap_or(0);
    print(|output| {
        EXAMPLES.iter().try_for_each(|Example { name, about, .. }| writeln!(output, "{name:width$}  {about}"))
    })
}

fn find(name: &str) -> anyhow::Result<&'static Example> {
    EXAMPLES.iter().find(|example| example.name == name).ok_or_else(|| {
        let names: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
        anyhow!("there is no example {name:?}; the examples are {}", names.join(", "))
    })
}

/// Writes all files, or none if one of them exists.
fn write(example: &Example, folder: &Path) -> anyhow::Result<()> {
    let existing = example.files.iter().map(|(path, _)| folder.join(path)).find(|path| path.symlink_metadata().is_ok());
    if let Some(path) = existing {
        return Err(exists(&path));
    }
    example.files.iter().try_for_each(|(path, text)| write_file(&folder.join(path), text))
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    let mut output = File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => at(path)(error),
    })?;
    output.write_all(without_links_to_pages(text).as_bytes()).map_err(at(path))?;
    if path.extension().is_some_and(|extension| extension == "sh") {
        output.set_permissions(fs::Permissions::from_mode(PROGRAM_MODE)).map_err(at(path))?;
    }
    Ok(())
}

fn exists(path: &Path) -> Error {
    anyhow!("{} exists, and the command replaces no file: name another folder", path.display())
}

/// `[text](../../docs/guides/tls.md)` becomes `text (docs/guides/tls.md)`: the link leads nowhere from another folder.
fn without_links_to_pages(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, (page, after))) =
        rest.split_once(PAGES).and_then(|(before, target)| Some((before, target.split_once(')')?)))
    {
        let (start, name) = before.rsplit_once('[').unwrap_or((before, ""));
        result.extend([start, name, " (", page, ")"]);
        rest = after;
    }
    result + rest
}
