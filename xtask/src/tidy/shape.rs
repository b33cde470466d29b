//! How a file looks: its first line, its length, its name.

use super::Finding;
use super::source::Source;

/// Production lines that a file may have. A file with one job stays far below.
const LINES_MAX: usize = 500;
/// Files that were longer when the rule came, with their lines: the figure may only go down.
const RATCHET: &[(&str, usize)] = &[];
/// Names that say nothing: such modules collect everything.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "misc", "types", "util", "utils"];

/// Every Rust file begins with what it is for.
pub(super) fn module_doc(source: &Source) -> Vec<Finding> {
    if !source.is_rust() || source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![source.finding(1, "begin the file with `//!`: what it is for, and what it doesn't do")]
}

/// Production code stays in files that can be read in one sitting.
pub(super) fn file_length(source: &Source) -> Vec<Finding> {
    length_above(source, RATCHET)
}

fn length_above(source: &Source, ratchet: &[(&str, usize)]) -> Vec<Finding> {
    let lines = source.production().lines().count();
    let listed = ratchet.iter().find(|(path, _)| *path == source.path).map(|(_, lines)| *lines);
    let message = match listed {
        None if lines > LINES_MAX => format!("{lines} production lines, at most {LINES_MAX}: split it by its jobs"),
        Some(before) if lines > before => {
            format!("{lines} production lines, {before} before: this file may only shrink")
        }
        Some(before) if lines < before => format!("{lines} production lines: lower its figure in tidy from {before}"),
        _ => return Vec::new(),
    };
    vec![source.finding(0, message)]
}

/// The build scripts: one gives the linker its arguments for a profile, one compresses the files of the console's page.
const BUILD_SCRIPTS: [&str; 2] = ["crates/forebay/build.rs", "crates/console/build.rs"];

/// No crate and no module has a name that says nothing; no other crate has a build script.
pub(super) fn module_names(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for part in source.path.split('/') {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        if EMPTY_NAMES.contains(&name) {
            findings.push(source.finding(0, format!("`{name}` says nothing: name the module after its job")));
        }
        if part == "build.rs" && !BUILD_SCRIPTS.contains(&source.path.as_str()) {
            findings.push(source.finding(0, "a build script: write a function, or generate the file with xtask"));
        }
    }
    for (number, line) in source.code.lines().enumerate() {
        let name = line.split_once("mod ").map(|(_, rest)| rest.trim_end_matches([';', '{', ' ']));
        if let Some(name) = name.filter(|name| EMPTY_NAMES.contains(name)) {
            findings.push(source.finding(number + 1, format!("`{name}` says nothing: name the module after its job")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::new(path, text.into())
    }

    #[test]
    fn file_begins_with_its_purpose() {
        assert_eq!(module_doc(&source("a.rs", "use x;")).len(), 1);
        assert_eq!(module_doc(&source("a.rs", "// no doc")).len(), 1);
        assert!(module_doc(&source("a.rs", "//! Doc.")).is_empty());
        assert!(module_doc(&source("a.md", "text")).is_empty());
    }

    #[test]
    fn long_files_are_found_and_may_only_shrink() {
        let long = "x\n".repeat(LINES_MAX + 1);
        assert_eq!(file_length(&source("a.rs", &long)).len(), 1);
        assert!(file_length(&source("a.rs", &"x\n".repeat(LINES_MAX))).is_empty());
        assert!(file_length(&source("a/tests.rs", &long)).is_empty());
        assert!(length_above(&source("a.rs", &long), &[("a.rs", LINES_MAX + 1)]).is_empty());
        assert_eq!(length_above(&source("a.rs", &long), &[("a.rs", LINES_MAX)]).len(), 1);
        assert_eq!(length_above(&source("a.rs", "x"), &[("a.rs", LINES_MAX)]).len(), 1);
    }

    #[test]
    fn empty_names_are_found() {
        for path in ["crates/common/src/a.rs", "crates/event/src/types.rs", "crates/event/src/utils/a.rs"] {
            assert_eq!(module_names(&source(path, "")).len(), 1, "{path}");
        }
        assert_eq!(module_names(&source("a.rs", "pub mod helpers {\n}\n")).len(), 1);
        assert_eq!(module_names(&source("crates/event/build.rs", "")).len(), 1);
        assert!(module_names(&source("crates/event/src/typed.rs", "mod commons;")).is_empty());
    }
}
