//! The shared libraries of a program or library, as `ldd` lists them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The libraries that the program needs, and its loader. A static program needs none.
pub(crate) fn of(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("starting `ldd`")?;
    // `ldd` fails for a static program.
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(library).collect())
}

/// The path in a line such as `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)` or `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn library(line: &str) -> Option<PathBuf> {
    line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_is_named_by_its_path() {
        for (line, path) in [
            ("\tlinux-vdso.so.1 (0x00007ffd)", None),
            ("\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f11)", Some("/lib/x86_64-linux-gnu/libm.so.6")),
            ("\t/lib64/ld-linux-x86-64.so.2 (0x00007f12)", Some("/lib64/ld-linux-x86-64.so.2")),
            ("\tlibx.so => not found", None),
            ("\tstatically linked", None),
        ] {
            assert_eq!(library(line), path.map(PathBuf::from), "{line}");
        }
        assert!(!of(Path::new("/bin/sh")).unwrap().is_empty());
    }
}
