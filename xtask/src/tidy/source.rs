//! A file as the rules see it.

use std::ops::Range;

use super::Finding;
use super::code::{opaque_parts, without_parts};

/// A text file of the repository.
pub(super) struct Source {
    /// From the workspace's root, with `/`.
    pub(super) path: String,
    /// The file as it is.
    pub(super) text: String,
    /// For Rust: the file without comments and literals, else empty.
    pub(super) code: String,
    /// For Rust: the places of comments and literals.
    pub(super) opaque: Vec<Range<usize>>,
}

impl Source {
    pub(super) fn new(path: &str, text: String) -> Self {
        if !path.ends_with(".rs") {
            return Self { path: path.to_owned(), text, code: String::new(), opaque: Vec::new() };
        }
        let opaque = opaque_parts(&text);
        let code = without_parts(&text, &opaque);
        Self { path: path.to_owned(), text, code, opaque }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The code without the tests: nothing of a test file, and of other files the part before their test module.
    pub(super) fn production(&self) -> &str {
        let path = &self.path;
        let is_test = ["/tests/", "/benches/", "/examples/"].iter().any(|part| path.contains(part));
        if is_test || path.ends_with("/tests.rs") {
            return "";
        }
        let mut markers = self.code.match_indices("#[cfg(test)]");
        let tests = markers.find(|(at, marker)| begins_inline_module(&self.code[at + marker.len()..]));
        tests.map_or(&self.code, |(at, _)| &self.code[..at])
    }

    pub(super) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

fn begins_inline_module(code: &str) -> bool {
    let line = code.trim_start().lines().next().unwrap_or_default();
    line.starts_with("mod ") && line.ends_with('{')
}

/// Whether a file is text that this project wrote: not the licence, not what tools generate, not test data.
pub(super) fn is_our_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    if path.contains("/tests/") {
        return ending == Some("rs");
    }
    let ours = ["rs", "md", "toml", "sh", "yml", "yaml", "ts", "svelte", "css", "html", "c", "py", "sql"];
    ending.is_some_and(|ending| ours.contains(&ending)) || path.starts_with(".ci/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_ends_where_the_tests_begin() {
        let text = "#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(test)]\nmod more {\n}\n";
        let source = Source::new("crates/event/src/a.rs", text.into());
        assert_eq!(source.production(), "#[cfg(test)]\nmod tests;\nfn a() {}\n");
        for path in ["crates/event/src/a/tests.rs", "crates/event/tests/a.rs"] {
            assert_eq!(Source::new(path, text.into()).production(), "");
        }
    }

    #[test]
    fn generated_files_are_not_ours() {
        assert!(is_our_text("README.md") && is_our_text(".ci/run") && is_our_text("a/tests/b.rs"));
        assert!(!is_our_text("crates/forebay/tests/bad.toml"));
        assert!(!is_our_text("Cargo.lock") && !is_our_text("LICENSE") && !is_our_text("x/fixture.bin"));
    }
}
