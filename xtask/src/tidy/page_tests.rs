//! `cargo test` commands that pages name: their packages, features, targets and tests exist.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;
use super::source::Source;

/// Commands of pages that test nothing. `metadata` is the JSON of `cargo metadata`, `root` the folder of the workspace.
pub(super) fn dead_test_commands(sources: &[Source], metadata: &Value, root: &Path) -> Result<Vec<Finding>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let pages = sources.iter().filter(|source| source.path.ends_with(".md"));
    let mut findings = Vec::new();
    for page in pages {
        for (line, text) in (1..).zip(page.text.lines()) {
            let commands = text.match_indices("cargo test ").map(|(at, _)| TestCommand::parse(&text[at..]));
            let faults = commands.filter_map(|command| command.fault(packages, sources, root));
            findings.extend(faults.map(|fault| page.finding(line, fault)));
        }
    }
    Ok(findings)
}

#[derive(Default)]
struct TestCommand<'a> {
    packages: Vec<&'a str>,
    features: Vec<&'a str>,
    /// A target of the kind `test`.
    test: Option<&'a str>,
    filters: Vec<&'a str>,
}

impl<'a> TestCommand<'a> {
    /// The command at the beginning of `text`, which ends with the code span, the line or the comment.
    fn parse(text: &'a str) -> Self {
        let mut command = Self::default();
        let end = text.find(['`', '#', '|', '&', ';']).unwrap_or(text.len());
        let mut words = text[..end].split_whitespace().skip(2);
        while let Some(word) = words.next() {
            match word {
                "-p" | "--package" => command.packages.extend(words.next()),
                "--test" => command.test = words.next(),
                "--features" => command.features.extend(words.next().into_iter().flat_map(|names| names.split(','))),
                _ if !word.starts_with('-') => command.filters.push(word),
                _ => {}
            }
        }
        // A placeholder, as in `sink-NAME`.
        command.packages.retain(|name| !name.contains(|letter: char| letter.is_ascii_uppercase()));
        command
    }

    fn fault(&self, packages: &[Value], sources: &[Source], root: &Path) -> Option<String> {
        let mut tested = Vec::new();
        for name in &self.packages {
            let Some(package) = packages.iter().find(|package| package["name"] == **name) else {
                return Some(format!("there is no package `{name}`"));
            };
            if let Some(feature) = self.features.iter().find(|feature| package["features"].get(**feature).is_none()) {
                return Some(format!("package {name} has no feature `{feature}`"));
            }
            let target = self.test.map(|test| test_folder(package, test));
            match target {
                Some(None) => {
                    return Some(format!("package {name} has no test target `{}`", self.test.unwrap_or_default()));
                }
                Some(Some(folder)) => tested.push(folder),
                None => tested.push(folder_of(package["manifest_path"].as_str()?)),
            }
        }
        let folders: Vec<_> =
            tested.iter().filter_map(|folder| Path::new(folder).strip_prefix(root).ok()?.to_str()).collect();
        let is_tested = |source: &&Source| folders.iter().any(|folder| Path::new(&source.path).starts_with(folder));
        let tested: Vec<_> = sources.iter().filter(|source| source.is_rust()).filter(is_tested).collect();
        let dead = self.filters.iter().find(|filter| !tested.iter().any(|source| has_test(source, filter)));
        dead.filter(|_| !folders.is_empty()).map(|filter| format!("no test of the command matches `{filter}`"))
    }
}

/// The folder with the sources of a test target.
fn test_folder(package: &Value, name: &str) -> Option<String> {
    let targets = package["targets"].as_array()?;
    let is_it = |target: &&Value| target["name"] == name && target["kind"][0] == "test";
    let source = targets.iter().find(is_it)?["src_path"].as_str()?;
    // `tests/NAME.rs` has its modules next to it.
    Some(folder_of(source))
}

fn folder_of(path: &str) -> String {
    Path::new(path).parent().unwrap_or(Path::new("")).display().to_string()
}

/// Whether a test of the file has a path that contains the filter: the names of its modules and of its function.
fn has_test(source: &Source, filter: &str) -> bool {
    let parts: Vec<_> = filter.split("::").collect();
    let lines: Vec<_> = source.code.lines().map(str::trim_start).collect();
    if !lines.iter().any(|line| is_test_attribute(line)) {
        return false;
    }
    let path = source.path.trim_end_matches(".rs");
    let modules = path.split('/').chain(lines.iter().filter_map(|line| defined(line, "mod ")));
    let functions = (0..lines.len()).filter(|at| is_test(&lines, *at)).filter_map(|at| defined(lines[at], "fn "));
    let names: Vec<_> = modules.chain(functions).collect();
    parts.iter().all(|part| names.iter().any(|name| name.contains(part)))
}

/// Whether an attribute above the line marks a test.
fn is_test(lines: &[&str], at: usize) -> bool {
    let attributes = lines[..at].iter().rev().take_while(|line| line.is_empty() || line.starts_with('#'));
    attributes.into_iter().any(|line| is_test_attribute(line))
}

fn is_test_attribute(line: &str) -> bool {
    line.starts_with("#[") && (line.contains("test]") || line.contains("test("))
}

/// The name that a line defines with `word`.
fn defined<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let at = line.find(word)?;
    let name = &line[at + word.len()..];
    Some(&name[..name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dead_test_command_is_found() {
        let metadata = json!({"packages": [{
            "name": "a", "manifest_path": "/w/crates/a/Cargo.toml", "features": {"extra": []},
            "targets": [{"name": "a", "kind": ["lib"]}, {"name": "it", "kind": ["test"], "src_path": "/w/crates/a/tests/it/main.rs"}],
        }]});
        let text = "`cargo test --package a --test it -- kills`\n`cargo test -p a --lib -- folds sums`\n`cargo test -p a --features extra`\n\
                    `cargo test -p a --test it reads::kills_by_signal`\n`cargo test -p sink-NAME`\n\
                    `cargo test --package b`\n`cargo test -p a --test objects`\n`cargo test -p a --features remote --test it`\n\
                    `cargo test -p a --test it -- recalls`\n`cargo test -p a --lib -- folds helper`\n";
        let sources = [
            Source::new("docs/a.md", text.into()),
            Source::new(
                "crates/a/src/sums.rs",
                "#[cfg(test)]\nmod tests {\n#[test]\n/// Why.\nfn it_folds() {}\nfn helper() {}\n}".into(),
            ),
            Source::new("crates/a/tests/it/reads.rs", "#[tokio::test]\nasync fn kills_by_signal() {}".into()),
        ];
        let findings = dead_test_commands(&sources, &metadata, Path::new("/w")).unwrap();
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [6, 7, 8, 9, 10], "{findings:?}");
    }
}
