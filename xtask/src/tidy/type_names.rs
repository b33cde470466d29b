//! One name, one meaning: the name of a public type is defined once in the whole tree, that of a type within a crate once in its crate.

use std::collections::BTreeMap;

use super::Finding;
use super::code::is_word;
use super::source::Source;

/// Names that are defined several times, each with its reason.
const REPEATED: &[(&str, &str)] = &[
    (
        "Arguments",
        "the arguments of one command, as clap reads them; code names it with its module, as in `dist::Arguments`",
    ),
    (
        "Options",
        "the options of one campaign or benchmark, as clap reads them; code names it with its module, as in `kills::Options`",
    ),
    (
        "SinkName",
        "one meaning: `config` checks the name, and `ledger`, which knows no configuration, has the checked text",
    ),
];

/// The rule.
pub(super) fn repeated_types(sources: &[Source]) -> Vec<Finding> {
    let mut first: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (number, line) in source.code.lines().enumerate() {
            let Some((name, is_public)) = defined_type(line) else { continue };
            if REPEATED.iter().any(|(repeated, _)| *repeated == name) {
                continue;
            }
            // A public name counts in its crate too: another type there may not share it.
            let scopes = [Some(crate_of(&source.path)), is_public.then_some("")];
            let before = scopes.into_iter().flatten().map(|scope| first.insert((scope, name), &source.path));
            if let Some(other) = before.fold(None, Option::or) {
                let message = format!("{other} defines a type `{name}` too: name one of them after what it is");
                findings.push(source.finding(number + 1, message));
            }
        }
    }
    findings
}

/// The name of the type that the line defines for other modules, and whether it is public beyond its crate.
fn defined_type(line: &str) -> Option<(&str, bool)> {
    let line = line.trim_start();
    let (rest, is_public) = match line.strip_prefix("pub(crate) ") {
        Some(rest) => (rest, false),
        None => (line.strip_prefix("pub ")?, true),
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let rest =
        ["struct ", "enum ", "union ", "trait ", "type "].iter().find_map(|keyword| rest.strip_prefix(keyword))?;
    Some((rest.split(|character| !is_word(character)).next()?, is_public))
}

/// The folder or file of the crate that a file belongs to: each test program is a separate crate.
fn crate_of(path: &str) -> &str {
    let parts: Vec<_> = path.split_inclusive('/').collect();
    let package = if ["crates/", "examples/"].contains(&parts[0]) { 2 } else { 1 };
    let is_program = parts.get(package).is_some_and(|part| ["tests/", "examples/", "benches/"].contains(part));
    let depth = if is_program { package + 2 } else { package };
    &path[..parts.iter().take(depth).map(|part| part.len()).sum()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(files: &[(&str, &str)]) -> usize {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::new(path, (*text).to_owned())).collect();
        repeated_types(&sources).len()
    }

    #[test]
    fn a_public_name_is_defined_once() {
        let (one, other) = ("crates/sink/src/a.rs", "crates/net/src/http/b.rs");
        assert_eq!(count(&[(one, "pub struct Body;"), (other, "    pub enum Body<'a> {")]), 1);
        assert_eq!(count(&[(one, "pub unsafe trait Body {}"), (other, "pub type Body = u8;")]), 1);
        assert_eq!(count(&[(one, "pub struct Body;"), (other, "pub(crate) struct Body;\n// pub struct Body;")]), 0);
        assert_eq!(count(&[(one, "pub struct Body;"), (other, "pub use sink::Body;\npub struct BodyError;")]), 0);
        assert_eq!(count(&[(one, "pub struct Options;"), (other, "pub struct Options;")]), 0, "listed");
    }

    #[test]
    fn a_crate_defines_a_name_once() {
        let one = ("crates/sink/src/a.rs", "pub(crate) struct Body;");
        assert_eq!(count(&[one, ("crates/sink/src/b/c.rs", "pub(crate) enum Body {}")]), 1);
        assert_eq!(count(&[one, ("crates/sink/src/b/c.rs", "pub enum Body {}")]), 1);
        assert_eq!(count(&[one, ("crates/sink/src/b/c.rs", "pub(super) enum Body {}")]), 0);
        assert_eq!(count(&[one, ("crates/sink/tests/it/c.rs", "pub(crate) enum Body {}")]), 0);
        assert_eq!(crate_of("crates/sink/tests/it/c.rs"), "crates/sink/tests/it/");
        assert_eq!(crate_of("crates/sink/tests/it.rs"), "crates/sink/tests/it.rs");
        assert_eq!(crate_of("xtask/src/tidy/words.rs"), "xtask/");
        assert_eq!(crate_of("examples/sink-lines/src/lib.rs"), "examples/sink-lines/");
    }
}
