//! `cargo xtask lines`: production lines of each crate, alone or against another commit. A line counts unless it is blank or of a test.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result};

use super::source::Source;
use crate::workspace;

/// Options of `cargo xtask lines`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A commit to compare with.
    #[arg(long, value_name = "COMMIT")]
    against: Option<String>,
}

/// Crates of test tooling. They have a separate sum.
const OF_TESTS: &[&str] = &["crates/generator", "crates/sink-testing", "crates/testkit"];

/// Lines by crate folder.
type Lines = BTreeMap<String, usize>;

/// Counts, and prints a table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = workspace::root()?;
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"));
    let now = count(super::files()?.iter().map(String::as_str), read)?;
    let before = arguments.against.as_deref().map(of_commit).transpose()?;
    println!("{:<24} {:>8}{}", "crate", "lines", before.as_ref().map_or("", |_| "   before  ratio"));
    let crates: BTreeSet<&String> = now.keys().chain(before.iter().flatten().map(|(name, _)| name)).collect();
    for name in crates {
        let of = |lines: &Lines| lines.get(name).copied().unwrap_or(0);
        println!("{}", row(name, of(&now), before.as_ref().map(of)));
    }
    for (name, is_of_tests) in [("production", false), ("test tooling", true)] {
        let sum = |lines: &Lines| -> usize {
            lines
                .iter()
                .filter(|(name, _)| OF_TESTS.contains(&name.as_str()) == is_of_tests)
                .map(|(_, lines)| lines)
                .sum()
        };
        println!("{}", row(name, sum(&now), before.as_ref().map(sum)));
    }
    Ok(())
}

fn row(name: &str, lines: usize, before: Option<usize>) -> String {
    let compared = match before {
        None => String::new(),
        Some(0) => "        –    new".to_owned(),
        Some(before) => format!(" {before:>8} {:>6.3}", lines as f64 / before as f64),
    };
    format!("{name:<24} {lines:>8}{compared}")
}

fn of_commit(commit: &str) -> Result<Lines> {
    let git = |arguments: &[&str]| workspace::output(Command::new("git").args(arguments));
    let listed = git(&["ls-tree", "-r", "--name-only", "-z", commit])?;
    count(listed.split_terminator('\0'), |path| git(&["show", &format!("{commit}:{path}")]))
}

/// Counts the lines of the Rust files below `src` of each crate.
fn count<'a>(paths: impl Iterator<Item = &'a str>, read: impl Fn(&str) -> Result<String>) -> Result<Lines> {
    let of_crates = paths.filter(|path| path.ends_with(".rs") && path.contains("/src/"));
    let sources: Vec<Source> = of_crates.map(|path| Ok(Source::new(path, read(path)?))).collect::<Result<_>>()?;
    let tests: Vec<String> = sources.iter().flat_map(test_modules).collect();
    let mut lines = Lines::new();
    for source in sources {
        let Some((folder, _)) = source.path.split_once("/src/") else { continue };
        let is_test = tests.iter().any(|module| {
            source.path.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
        let production = source.text.lines().take(source.production().lines().count());
        let counted = production.filter(|line| !line.trim().is_empty()).count();
        *lines.entry(folder.to_owned()).or_default() += if is_test { 0 } else { counted };
    }
    Ok(lines)
}

/// The modules in other files that exist only in tests, as their paths without the ending.
fn test_modules(source: &Source) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or_default();
    let folder = match file.strip_suffix(".rs") {
        Some("lib" | "main" | "mod") | None => folder.to_owned(),
        Some(name) => format!("{folder}/{name}"),
    };
    let parts = source.code.split("#[cfg(test)]").skip(1);
    let modules = parts.filter_map(|part| {
        part.split_once(';')?.0.trim().rsplit_once("mod ").filter(|(before, _)| !before.contains(['{', '(', ' ']))
    });
    modules.map(|(_, name)| format!("{folder}/{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_blank_lines_do_not_count() {
        let files = BTreeMap::from([
            (
                "crates/a/src/lib.rs",
                "//! A.\n\nmod b;\n#[cfg(test)]\nmod cases;\n#[cfg(test)]\nmod tests {\n    x\n}\n",
            ),
            ("crates/a/src/b.rs", "/// Doc.\nfn b() {\n}\n#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/b/tests.rs", "x\n"),
            ("crates/a/src/cases.rs", "x\n"),
            ("crates/a/src/cases/more.rs", "x\n"),
            ("crates/a/tests/it.rs", "x\n"),
            ("crates/testkit/src/lib.rs", "//! B.\n"),
        ]);
        let lines = count(files.keys().copied(), |path| Ok(files[path].to_owned())).unwrap();
        assert_eq!(lines, Lines::from([("crates/a".to_owned(), 4 + 5), ("crates/testkit".to_owned(), 1)]));
        assert_eq!(row("a", 97, Some(100)), "a                              97      100  0.970");
        assert!(row("a", 97, Some(0)).ends_with("new"));
    }
}
