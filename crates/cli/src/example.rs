//! `forebay example`: lists the examples of the source tree, which are within the binary, and writes one to a folder.

mod files;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Error, anyhow};
use text::escape_control;

use crate::errors::at;
use crate::flags::ExampleFlags;
use crate::output::print;
use files::{EXAMPLES, Example};

/// The start of links to pages, which aren't next to a written example.
const PAGES: &str = "](../../";
/// The modes of files, before the umask.
const FILE_MODE: u32 = 0o666;
const PROGRAM_MODE: u32 = 0o777;

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
            print(|output| writeln!(output, "{}", written_to(&folder)))?;
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

fn written_to(folder: &Path) -> String {
    format!("{}: read README.md there", escape_control(&folder.to_string_lossy()))
}

/// Writes all files. After an error it removes those that it has written, and their folders.
fn write(example: &Example, folder: &Path) -> anyhow::Result<()> {
    if folder.symlink_metadata().is_ok() && !folder.is_dir() {
        return Err(not_a_folder(folder));
    }
    example.files.iter().try_for_each(|(path, _)| check_free(&folder.join(path)))?;
    let mut created = Vec::new();
    let mut files = example.files.iter();
    let result = files.try_for_each(|(path, text)| write_file(&folder.join(path), text, &mut created));
    if result.is_err() {
        for path in created.iter().rev() {
            // The message is about the first error: what can't be removed stays.
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }
    result
}

fn check_free(path: &Path) -> anyhow::Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(exists(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(at(path)(error)),
    }
}

/// Adds the file and its new folders to `created`.
fn write_file(path: &Path, text: &str, created: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        create_folder(parent, created)?;
    }
    let is_program = path.extension().is_some_and(|extension| extension == "sh");
    let mode = if is_program { PROGRAM_MODE } else { FILE_MODE };
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut output = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => at(path)(error),
    })?;
    created.push(path.to_owned());
    output.write_all(without_links_to_pages(text).as_bytes()).map_err(at(path))
}

/// Creates a folder and those around it, unless they exist.
fn create_folder(path: &Path, created: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_folder(parent, created)?;
    }
    match fs::create_dir(path) {
        Ok(()) => created.push(path.to_owned()),
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(not_a_folder(path)),
        Err(error) => return Err(at(path)(error)),
    }
    Ok(())
}

fn not_a_folder(path: &Path) -> Error {
    anyhow!("{} is not a folder: name another", path.display())
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use std::env;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    const EXAMPLE: Example =
        Example { name: "a", about: "", files: &[("README.md", "a"), ("post.sh", "b"), ("cases/one/case.toml", "c")] };

    fn error(example: &Example, folder: &Path) -> String {
        write(example, folder).unwrap_err().to_string()
    }

    #[test]
    fn failed_command_leaves_nothing() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("new/a");
        // The second file can't be written: the first is no folder.
        let example = Example { files: &[("cases/one", "a"), ("cases/one/case.toml", "b")], ..EXAMPLE };
        assert!(error(&example, &folder).ends_with("cases/one is not a folder: name another"));
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
        write(&EXAMPLE, &folder).unwrap();
        assert_eq!(fs::read_to_string(folder.join("cases/one/case.toml")).unwrap(), "c");
    }

    #[test]
    fn existing_files_stay_alone() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path();
        fs::write(folder.join("cases"), "mine").unwrap();
        let shown = error(&EXAMPLE, folder);
        assert!(shown.starts_with(&format!("{}/cases/one/case.toml: Not a directory", folder.display())), "{shown}");
        fs::remove_file(folder.join("cases")).unwrap();
        symlink("nowhere", folder.join("cases")).unwrap();
        assert!(error(&EXAMPLE, folder).ends_with("/cases is not a folder: name another"));
        fs::rename(folder.join("cases"), folder.join("post.sh")).unwrap();
        assert!(
            error(&EXAMPLE, folder).ends_with("/post.sh exists, and the command replaces no file: name another folder")
        );
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }

    #[test]
    fn folder_that_is_none_is_named() {
        let outer = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| outer.path().join(name));
        fs::write(&file, "mine").unwrap();
        symlink("nowhere", &link).unwrap();
        for path in [file, link] {
            assert_eq!(error(&EXAMPLE, &path), format!("{} is not a folder: name another", path.display()));
        }
    }

    #[test]
    fn umask_limits_modes() {
        const NAMED: &str = "UMASK_OF_TEST";
        // All threads have the same umask: another process tests it.
        if env::var_os(NAMED).is_none() {
            let script = "umask 077; exec \"$0\" --exact example::tests::umask_limits_modes";
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).arg(env::current_exe().unwrap()).env(NAMED, "077");
            let output = shell.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            return;
        }
        let outer = tempfile::tempdir().unwrap();
        write(&EXAMPLE, outer.path()).unwrap();
        let mode = |name| outer.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!([mode("post.sh"), mode("README.md")], [0o700, 0o600]);
    }

    #[test]
    fn folder_is_shown_without_control_characters() {
        assert_eq!(written_to(Path::new("a\u{1b}[31m")), "a\\u001b[31m: read README.md there");
    }
}
