//! The edges between the modules of a crate: who takes what from whom.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::Edges;
use super::modules::Module;
use super::names::{Names, Target};
use super::references::{MethodCall, References};
use super::std_methods::STD_METHODS;

/// A type, by the module that defines it and its name.
type Type = (usize, String);

/// Inherent methods and the modules of the `impl` blocks that define them.
#[derive(Default)]
struct Methods {
    of_type: BTreeMap<(Type, String), BTreeSet<usize>>,
    by_name: BTreeMap<String, BTreeSet<usize>>,
    /// Names that traits have too: a call says nothing about its module.
    of_traits: BTreeSet<String>,
}

/// All edges of the modules. `elsewhere` holds names of methods that other crates define.
pub(super) fn edges(modules: &[Module], elsewhere: &BTreeSet<String>) -> Edges {
    let references: Vec<References> = modules.iter().map(|module| References::of(&module.contents)).collect();
    let local_imports = references.iter().map(|references| references.imports.clone()).collect();
    let names = Names { modules, local_imports };
    let methods = Methods::of(&names, &references);
    let mut edges = Edges::new();
    for (from, references) in references.iter().enumerate() {
        let mut add = |to: usize, name: String, line: usize| {
            if to != from {
                edges.entry((from, to)).or_default().entry(name).or_insert(line);
            }
        };
        let mut add_target = |target: Target, line: usize| match target {
            Target::Module(module) => add(module, modules[module].name.clone(), line),
            Target::Item { module, name, member } => {
                if let Some(member) = member {
                    for to in methods.of_type(&(module, name.clone()), &member) {
                        add(to, format!("{name}::{member}"), line);
                    }
                }
                add(module, name, line);
            }
        };
        for import in modules[from].imports.iter().chain(&names.local_imports[from]) {
            if let Some(target) = names.resolve(from, &import.path) {
                add_target(target, import.line);
            }
        }
        for path in &references.paths {
            let written = own_type(references, path.within, &path.segments);
            let is_hidden = written.len() == 1
                && (references.bindings.contains(&written[0]) || names.is_imported_by_name(from, &written[0]));
            if let Some(target) = names.resolve(from, &written).filter(|_| !is_hidden) {
                add_target(target, path.line);
            }
        }
        for call in &references.calls {
            for (to, name) in methods.called(&names, references, from, call, elsewhere) {
                add(to, name, call.line);
            }
        }
    }
    edges
}

/// A path with the type of its `impl` block in place of `Self`.
fn own_type(references: &References, within: Option<usize>, path: &[String]) -> Vec<String> {
    match (path.first().map(String::as_str), within) {
        (Some("Self"), Some(block)) => [&references.impls[block].self_type, &path[1..]].concat(),
        _ => path.to_vec(),
    }
}

impl Methods {
    fn of(names: &Names<'_>, references: &[References]) -> Self {
        let mut methods = Self::default();
        for (module, references) in references.iter().enumerate() {
            methods.of_traits.extend(references.trait_methods.iter().cloned());
            for block in &references.impls {
                if block.is_trait {
                    methods.of_traits.extend(block.methods.iter().cloned());
                    continue;
                }
                let Some(Target::Item { module: defining, name, .. }) = names.resolve(module, &block.self_type) else {
                    continue;
                };
                for method in &block.methods {
                    let key = ((defining, name.clone()), method.clone());
                    methods.of_type.entry(key).or_default().insert(module);
                    methods.by_name.entry(method.clone()).or_default().insert(module);
                }
            }
        }
        methods
    }

    fn of_type(&self, of: &Type, method: &str) -> impl Iterator<Item = usize> + use<'_> {
        self.of_type.get(&(of.clone(), method.to_owned())).into_iter().flatten().copied()
    }

    /// The modules whose `impl` blocks have the method that is called, each with the name to report.
    fn called(
        &self,
        names: &Names<'_>,
        references: &References,
        from: usize,
        call: &MethodCall,
        elsewhere: &BTreeSet<String>,
    ) -> Vec<(usize, String)> {
        if let Some(block) = call.on_self {
            let target = names.resolve(from, &references.impls[block].self_type);
            if let Some(Target::Item { module, name, .. }) = target {
                let reported = format!("{name}::{}", call.name);
                return self.of_type(&(module, name), &call.name).map(|to| (to, reported.clone())).collect();
            }
        }
        let name = call.name.as_str();
        if self.of_traits.contains(name) || elsewhere.contains(name) || STD_METHODS.contains(&name) {
            return Vec::new();
        }
        match self.by_name.get(name) {
            Some(modules) if modules.len() == 1 => modules.iter().map(|to| (*to, format!(".{name}()"))).collect(),
            _ => Vec::new(),
        }
    }
}
