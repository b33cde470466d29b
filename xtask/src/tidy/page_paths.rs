//! Paths of the admin port: each that the code has is on its page, and the reverse.

use std::collections::BTreeSet;

use super::Finding;
use super::source::Source;

const PAGE: &str = "docs/reference/admin-api.md";
/// The paths, and the crate's code that has parts after them.
const PATHS: &str = "crates/admin_api/src/paths.rs";
const SERVER: &str = "crates/forebay/src/admin/";

/// Paths that only the code or only the page has.
pub(super) fn undocumented_paths(sources: &[Source]) -> Vec<Finding> {
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    let (Some(page), Some(paths)) = (find(PAGE), find(PATHS)) else { return Vec::new() };
    let bases: BTreeSet<&str> = literals(paths).collect();
    let server = sources.iter().filter(|source| source.path.starts_with(SERVER));
    let is_part = |text: &&str| text.matches('/').count() == 1 && text.len() > 1;
    // The beginning of all paths isn't one.
    let is_beginning = |text: &str| bases.iter().any(|base| base.starts_with(text));
    let parts: BTreeSet<&str> = server.flat_map(literals).filter(is_part).filter(|text| !is_beginning(text)).collect();
    let rows: Vec<(usize, &str)> = rows(page).collect();
    let known = |path: &str| {
        let base = bases.iter().filter(|base| path.starts_with(**base)).max_by_key(|base| base.len());
        base.is_some_and(|base| fixed_parts(&path[base.len()..]).all(|part| parts.contains(part)))
    };
    let unknown = rows.iter().filter(|(_, path)| !known(path));
    let unknown = unknown.map(|(line, path)| page.finding(*line, format!("the admin port has no path `{path}`")));
    let is_shown = |path: &&str| rows.iter().any(|(_, row)| row == path || row.ends_with(*path));
    let missing = bases.iter().chain(&parts).filter(|path| !is_shown(path));
    let missing = missing.map(|path| page.finding(0, format!("no row has the path `{path}` of the admin port")));
    unknown.chain(missing).collect()
}

/// The parts of a path that aren't names to be replaced, each with its slash.
fn fixed_parts(path: &str) -> impl Iterator<Item = &str> {
    let begins = path.match_indices('/').map(|(at, _)| at);
    let parts = begins.map(|at| &path[at..path[at + 1..].find('/').map_or(path.len(), |end| at + 1 + end)]);
    parts.filter(|part| !part[1..].bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// Literals of production code that are paths in small letters.
fn literals(source: &Source) -> impl Iterator<Item = &str> {
    let production = source.production().len();
    let literals =
        source.opaque.iter().filter(move |range| range.end <= production).map(|range| &source.text[range.clone()]);
    let texts = literals.filter_map(|literal| literal.strip_prefix('"')?.strip_suffix('"'));
    texts.filter(|text| text.starts_with('/') && text.bytes().all(|byte| byte == b'/' || byte.is_ascii_lowercase()))
}

/// The paths of the first table, as `| [`GET /api/dead/ID`](…) | … |`.
fn rows(page: &Source) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(page.text.lines()).take_while(|(_, line)| !line.starts_with("## "));
    lines.filter_map(|(number, line)| {
        let (_, path) = line.strip_prefix("| [`")?.split_once('`')?.0.split_once(' ')?;
        Some((number, path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_one_side_is_found() {
        let page = "# A\n| [`GET /api/dead`](#a) | x |\n| [`GET /api/dead/ID`](#a) | x |\n| [`POST /api/dead/drop`](#a) | x |\n\
                    | [`POST /api/dead/edit`](#a) | x |\n| [`GET /other`](#a) | x |\n## B\n| [`GET /more`](#a) | x |\n";
        let sources = [
            Source::new(PAGE, page.into()),
            Source::new(PATHS, "pub const DEAD: &str = \"/api/dead\";\npub const READY: &str = \"/readyz\";\n".into()),
            Source::new(
                "crates/forebay/src/admin/dead.rs",
                "fn a() { match rest { \"/drop\" => 1, \"/replay\" => 2, \"/\" => 3 } }".into(),
            ),
        ];
        let findings: Vec<String> = undocumented_paths(&sources).iter().map(ToString::to_string).collect();
        let expected = ["5: the admin port has no path `/api/dead/edit`", "6: the admin port has no path `/other`"];
        let missing = ["no row has the path `/readyz`", "no row has the path `/replay`"];
        assert_eq!(findings.len(), 4, "{findings:?}");
        assert!(
            expected.iter().chain(&missing).all(|text| findings.iter().any(|found| found.contains(text))),
            "{findings:?}"
        );
    }
}
