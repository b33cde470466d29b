//! Import cycles: at every level of a crate, sibling modules, each with all modules below it, form a graph without a cycle. A child may name
//! its ancestors' items, and a parent its children's.
//!
//! An import is a path that begins with `crate`, `self` or `super`, in a `use`, in code, in a macro or in an attribute's string. A path
//! through a named re-export counts as an import from the module that it re-exports. Tests don't count, and neither do methods: a split into crates
//! shows those.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

use super::Finding;
use super::source::Source;

/// Re-exports that one path may lead through. A longer chain is a circle.
const REEXPORTS_MAX: usize = 8;

/// The rule, for the `src` folder of each crate.
pub(super) fn import_cycles(sources: &[Source]) -> Result<Vec<Finding>> {
    let files: BTreeMap<&str, &str> =
        sources.iter().filter(|one| one.is_rust()).map(|one| (one.path.as_str(), one.text.as_str())).collect();
    let mut findings = Vec::new();
    for root in files.keys().filter(|path| is_root(path)) {
        let mut modules = Modules { files: &files, all: Vec::new() };
        modules.read(root, &folder_of(root), "crate", None)?;
        findings.extend(modules.cycles());
    }
    Ok(findings)
}

/// Whether a program or library begins with this file.
fn is_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs") || folder_of(path).ends_with("/src/bin")
}

fn folder_of(path: &str) -> String {
    Path::new(path).parent().unwrap_or(Path::new("")).display().to_string()
}

/// The modules of one program or library. The first is its root.
struct Modules<'a> {
    files: &'a BTreeMap<&'a str, &'a str>,
    all: Vec<Module>,
}

#[derive(Default)]
struct Module {
    name: String,
    file: String,
    /// The folder of its children's files.
    folder: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// The paths of the names that `use` brings.
    names: BTreeMap<String, Vec<String>>,
    /// The paths in it, each with its line.
    paths: Vec<(Vec<String>, usize)>,
}

impl Modules<'_> {
    fn read(&mut self, file: &str, folder: &str, name: &str, parent: Option<usize>) -> Result<usize> {
        let text = self.files.get(file).with_context(|| format!("{file} does not exist"))?;
        let tokens = text.parse().map_err(|error| anyhow!("cannot parse {file}: {error}"))?;
        self.add(file, folder, name, parent, tokens)
    }

    fn add(
        &mut self,
        file: &str,
        folder: &str,
        name: &str,
        parent: Option<usize>,
        tokens: TokenStream,
    ) -> Result<usize> {
        let [name, file, folder] = [name, file, folder].map(str::to_owned);
        self.all.push(Module { name, file, folder, parent, ..Module::default() });
        let index = self.all.len() - 1;
        self.scan(index, &tokens.into_iter().collect::<Vec<_>>())?;
        Ok(index)
    }

    /// Finds the child modules, imports and paths among tokens.
    fn scan(&mut self, module: usize, tokens: &[TokenTree]) -> Result<()> {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => self.attribute(module, &tokens[at..]),
                TokenTree::Ident(word) if word == "mod" => self.child(module, &tokens[at..])?,
                // `use<'a>` is part of a type.
                TokenTree::Ident(word)
                    if word == "use" && !tokens.get(at + 1).is_some_and(|next| is_mark(next, '<')) =>
                {
                    let end = tokens[at..].iter().position(|token| is_mark(token, ';')).unwrap_or(1);
                    self.import(module, &tokens[at + 1..at + end], &[]);
                    end
                }
                // A visibility names ancestors only.
                TokenTree::Ident(word) if word == "pub" => 1 + usize::from(is_restriction(tokens.get(at + 1))),
                TokenTree::Ident(word) if ["crate", "self", "super"].iter().any(|begin| word == begin) => {
                    let (path, length) = path(&tokens[at..]);
                    self.all[module].paths.push((path, line(token)));
                    length
                }
                TokenTree::Group(group) => {
                    self.scan(module, &group.stream().into_iter().collect::<Vec<_>>())?;
                    1
                }
                _ => 1,
            };
        }
        Ok(())
    }

    /// The length of an attribute, with its item if that is for tests.
    fn attribute(&mut self, module: usize, tokens: &[TokenTree]) -> usize {
        let Some(TokenTree::Group(group)) = tokens.get(1) else { return 1 };
        let text: String = group.stream().to_string().split_whitespace().collect();
        let is_test = ["test", "cfg(test)"].contains(&&*text)
            || text.strip_prefix("cfg(all(").is_some_and(|all| all.split([',', ')']).any(|part| part == "test"));
        if is_test {
            return 2 + item_length(&tokens[2..]);
        }
        // As in `#[serde(with = "crate::seconds")]`.
        let parts = text.split('"').filter(|part| part.starts_with("crate::") || part.starts_with("super::"));
        for part in parts.filter(|_| !text.starts_with("doc=")) {
            self.all[module].paths.push((part.split("::").map(str::to_owned).collect(), line(&tokens[1])));
        }
        // The group is scanned next, as any other.
        1
    }

    /// Adds a child module. Returns the number of its tokens.
    fn child(&mut self, parent: usize, tokens: &[TokenTree]) -> Result<usize> {
        let Some(TokenTree::Ident(name)) = tokens.get(1) else { return Ok(1) };
        let name = name.to_string();
        let (file, folder) = (self.all[parent].file.clone(), format!("{}/{name}", self.all[parent].folder));
        let child = match tokens.get(2) {
            Some(TokenTree::Group(group)) => self.add(&file, &folder, &name, Some(parent), group.stream())?,
            _ => {
                let flat = format!("{folder}.rs");
                let file = if self.files.contains_key(&*flat) { flat } else { format!("{folder}/mod.rs") };
                self.read(&file, &folder, &name, Some(parent))?
            }
        };
        self.all[parent].children.insert(name, child);
        Ok(3)
    }

    /// Adds what a tree of `use` imports. `before` is the path to it.
    fn import(&mut self, module: usize, tree: &[TokenTree], before: &[String]) {
        for tree in tree.split(|token| is_mark(token, ',')) {
            let (mut path, length) = path(tree);
            path.splice(0..0, before.iter().cloned());
            if let Some(TokenTree::Group(group)) = tree.get(length) {
                self.import(module, &group.stream().into_iter().collect::<Vec<_>>(), &path);
                continue;
            }
            let Some(first) = tree.first() else { continue };
            path.pop_if(|last| last == "self" && !before.is_empty());
            let rename = tree.last().filter(|_| tree.len() > length);
            let Some(name) = rename.map(ToString::to_string).or_else(|| path.last().cloned()) else { continue };
            self.all[module].paths.push((path.clone(), line(first)));
            self.all[module].names.insert(name, path);
        }
    }

    /// The module that a path names, unless that is of another crate.
    fn resolve(&self, from: usize, path: &[String], reexports: usize) -> Option<usize> {
        let mut at = from;
        for (index, part) in path.iter().enumerate() {
            let module = &self.all[at];
            at = match (part.as_str(), module.children.get(part), module.names.get(part)) {
                ("crate", ..) => 0,
                ("self", ..) => at,
                ("super", ..) => module.parent?,
                (_, Some(child), _) => *child,
                (_, None, Some(named)) if reexports < REEXPORTS_MAX => {
                    return self.resolve(at, &[named, &path[index + 1..]].concat(), reexports + 1);
                }
                _ if index == 0 => return None,
                _ => return Some(at),
            };
        }
        Some(at)
    }

    /// The siblings below the closest common ancestor, with that; none if one module is the other's ancestor.
    fn siblings(&self, one: usize, other: usize) -> Option<(usize, [usize; 2])> {
        let line = |module: usize| {
            let mut line: Vec<usize> = std::iter::successors(Some(module), |one| self.all[*one].parent).collect();
            line.reverse();
            line
        };
        let (one, other) = (line(one), line(other));
        let split = one.iter().zip(&other).position(|(one, other)| one != other)?;
        Some((one[split - 1], [one[split], other[split]]))
    }

    /// One finding for each cycle, with all imports that tie it.
    fn cycles(&self) -> Vec<Finding> {
        // For each level: which sibling imports from which, and the imports as they are shown.
        let mut levels: BTreeMap<usize, BTreeMap<[usize; 2], BTreeSet<String>>> = BTreeMap::new();
        for (from, module) in self.all.iter().enumerate() {
            for (path, line) in &module.paths {
                let Some(to) = self.resolve(from, path, 0) else { continue };
                let Some((parent, edge)) = self.siblings(from, to) else { continue };
                let shown = format!("{}:{line} imports {}", module.file, path.join("::"));
                levels.entry(parent).or_default().entry(edge).or_default().insert(shown);
            }
        }
        let mut findings = Vec::new();
        for (parent, edges) in levels {
            let mut left: BTreeSet<usize> = edges.keys().flatten().copied().collect();
            while let Some(first) = left.pop_first() {
                let back = reachable(first, edges.keys().map(|[from, to]| [*to, *from]));
                let members: BTreeSet<usize> =
                    reachable(first, edges.keys().copied()).intersection(&back).copied().collect();
                left.retain(|module| !members.contains(module));
                if members.len() > 1 {
                    let ties = edges.iter().filter(|(edge, _)| edge.iter().all(|end| members.contains(end)));
                    let ties: Vec<&str> = ties.flat_map(|(_, shown)| shown).map(String::as_str).collect();
                    let names: Vec<&str> = members.iter().map(|member| self.all[*member].name.as_str()).collect();
                    let message = format!("import cycle of {}:\n  {}", names.join(", "), ties.join("\n  "));
                    findings.push(Finding { path: self.all[parent].file.clone(), line: 0, message });
                }
            }
        }
        findings
    }
}

/// What can be reached from `first` along edges, itself included.
fn reachable(first: usize, edges: impl Iterator<Item = [usize; 2]> + Clone) -> BTreeSet<usize> {
    let (mut reached, mut open) = (BTreeSet::from([first]), vec![first]);
    while let Some(module) = open.pop() {
        open.extend(edges.clone().filter(|[from, to]| *from == module && reached.insert(*to)).map(|[_, to]| to));
    }
    reached
}

/// The path that the tokens begin with, and the number of its tokens.
fn path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let (mut path, mut at) = (Vec::new(), 0);
    while let Some(TokenTree::Ident(part)) = tokens.get(at) {
        path.push(part.to_string());
        at += 1;
        if !tokens.get(at..at + 2).is_some_and(|marks| marks.iter().all(|mark| is_mark(mark, ':'))) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// The number of tokens of an item, or of a field, variant or arm, with its attributes.
fn item_length(tokens: &[TokenTree]) -> usize {
    let begin = tokens.iter().position(|token| matches!(token, TokenTree::Ident(_))).unwrap_or(0);
    let item = "async const enum extern fn impl let mod pub static struct trait type unsafe use";
    let is_item = tokens.get(begin).is_some_and(|word| item.split(' ').any(|item| word.to_string() == item));
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => is_item && group.delimiter() == proc_macro2::Delimiter::Brace,
        token => is_mark(token, ';') || !is_item && is_mark(token, ','),
    };
    tokens[begin..].iter().position(is_end).map_or(tokens.len(), |end| begin + end + 1)
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == mark)
}

/// The part in parentheses of `pub(crate)`.
fn is_restriction(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == proc_macro2::Delimiter::Parenthesis)
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}
