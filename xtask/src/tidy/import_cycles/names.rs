//! From a path as written to the module that defines what it names, through imports, re-exports and globs.

use std::collections::BTreeSet;

use super::modules::{Import, Module};

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Module(usize),
    Item {
        module: usize,
        name: String,
        /// What follows the item in the path: a variant or an associated item.
        member: Option<String>,
    },
}

/// A name in a module. None: it is of another crate.
type Found = Option<Target>;

/// Resolves paths among the modules of one target.
pub(super) struct Names<'a> {
    pub(super) modules: &'a [Module],
    /// Imports within the functions of each module.
    pub(super) local_imports: Vec<Vec<Import>>,
}

/// Lookups under way: a re-export in a circle ends here.
type Visited = BTreeSet<(usize, String)>;

impl Names<'_> {
    /// What a path written in module `from` leads to, if that is of this crate.
    pub(super) fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.walk(from, path, true, &mut Visited::new())
    }

    /// Whether a single name comes from a glob import or an ancestor's macro, and thus no `use` names it.
    pub(super) fn is_imported_by_name(&self, module: usize, name: &str) -> bool {
        let mut imports = self.modules[module].imports.iter().chain(&self.local_imports[module]);
        imports.any(|import| import.name.as_deref() == Some(name))
    }

    fn walk(&self, from: usize, path: &[String], with_locals: bool, visited: &mut Visited) -> Option<Target> {
        let mut at = from;
        let mut segments = path.iter().enumerate().peekable();
        let mut is_anchored = false;
        while let Some((_, segment)) = segments.peek() {
            match segment.as_str() {
                "crate" => at = 0,
                "self" => {}
                "super" => at = self.modules[at].parent?,
                _ => break,
            }
            is_anchored = true;
            segments.next();
        }
        for (index, segment) in segments {
            let is_last = index + 1 == path.len();
            let locals = with_locals && !is_anchored;
            is_anchored = true;
            match self.look_up(at, segment, is_last, locals, visited)?? {
                Target::Module(module) => at = module,
                Target::Item { module, name, member } => {
                    let member = path.get(index + 1).cloned().or(member);
                    return Some(Target::Item { module, name, member });
                }
            }
        }
        Some(Target::Module(at))
    }

    fn look_up(&self, at: usize, name: &str, is_last: bool, locals: bool, visited: &mut Visited) -> Option<Found> {
        if !visited.insert((at, format!("{name}/{is_last}/{locals}"))) {
            return None;
        }
        let module = &self.modules[at];
        let item =
            module.items.contains(name).then(|| Target::Item { module: at, name: name.to_owned(), member: None });
        let child = module.children.get(name).map(|child| Target::Module(*child));
        let own = if is_last { item.or(child) } else { child.or(item) };
        if own.is_some() {
            return Some(own);
        }
        let local_imports = if locals { self.local_imports[at].as_slice() } else { &[] };
        let mut named = local_imports.iter().chain(&module.imports);
        if let Some(import) = named.find(|import| import.name.as_deref() == Some(name)) {
            return Some(self.follow(at, import, visited));
        }
        let globs = local_imports.iter().chain(&module.imports).filter(|import| import.name.is_none());
        for glob in globs {
            let Some(Target::Module(source)) = self.follow(at, glob, visited) else { continue };
            if let Some(Some(found)) = self.look_up(source, name, is_last, false, visited) {
                return Some(Some(found));
            }
        }
        None
    }

    /// An import's path, whose first name is not the import itself: `use serde::serde` is of another crate.
    fn follow(&self, at: usize, import: &Import, visited: &mut Visited) -> Found {
        if import.path.len() == 1 && import.path.first() == import.name.as_ref() {
            return None;
        }
        self.walk(at, &import.path, false, visited)
    }
}
