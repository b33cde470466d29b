//! The modules of one target of a crate, read from its sources: what each defines, imports and contains.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use proc_macro2::Ident;
use syn::{Attribute, Item, ItemMod, UseTree};

use super::cfg_test;

/// The sources of a crate by their path from the crate's folder, with `/`.
pub(super) type Files = BTreeMap<String, String>;

/// A name that a `use` brings into a module.
#[derive(Clone)]
pub(super) struct Import {
    /// The path as written, a trailing `self` left out.
    pub(super) path: Vec<String>,
    /// The name in this module; none for a glob.
    pub(super) name: Option<String>,
    pub(super) line: usize,
}

/// A module with what stands directly in it.
pub(super) struct Module {
    /// The last part of its path, `crate` for the root.
    pub(super) name: String,
    pub(super) file: String,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    /// Names that it defines itself.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// Everything but modules, imports and tests.
    pub(super) contents: Vec<Item>,
}

/// Where the modules of a file are looked for.
#[derive(Clone)]
struct RunningStore {
    file: String,
    /// The folder of its child modules, with a slash at the end.
    children: String,
}

/// All modules below the root file, such as `src/lib.rs`; the root is the first.
pub(super) fn read(files: &Files, root: &str) -> Result<Vec<Module>> {
    let mut modules = Vec::new();
    let folder = folder_of(root).to_owned();
    read_file(files, &RunningStore { file: root.to_owned(), children: folder }, "crate", None, &mut modules)?;
    Ok(modules)
}

fn folder_of(file: &str) -> &str {
    file.rfind('/').map_or("", |slash| &file[..=slash])
}

fn read_file(
    files: &Files,
    place: &RunningStore,
    name: &str,
    parent: Option<usize>,
    modules: &mut Vec<Module>,
) -> Result<Option<usize>> {
    let text = files.get(&place.file).with_context(|| format!("{} does not exist", place.file))?;
    let file = syn::parse_file(text).with_context(|| format!("cannot parse {}", place.file))?;
    if cfg_test::is_test_only(&file.attrs) {
        return Ok(None);
    }
    add(files, place, (name, parent), file.items, modules).map(Some)
}

fn add(
    files: &Files,
    place: &RunningStore,
    (name, parent): (&str, Option<usize>),
    items: Vec<Item>,
    modules: &mut Vec<Module>,
) -> Result<usize> {
    let index = modules.len();
    modules.push(Module {
        name: name.to_owned(),
        file: place.file.clone(),
        parent,
        children: BTreeMap::new(),
        items: BTreeSet::new(),
        imports: Vec::new(),
        contents: Vec::new(),
    });
    for item in items {
        if cfg_test::is_test_only(cfg_test::attributes(&item)) {
            continue;
        }
        match item {
            Item::Mod(child) => {
                let child_name = plain(&child.ident);
                if let Some(child) = add_child(files, place, index, child, modules)? {
                    modules[index].children.insert(child_name, child);
                }
            }
            Item::Use(import) => modules[index].imports.extend(imports_of(&import)),
            item => {
                modules[index].items.extend(defined_name(&item));
                modules[index].contents.push(item);
            }
        }
    }
    Ok(index)
}

fn add_child(
    files: &Files,
    place: &RunningStore,
    parent: usize,
    child: ItemMod,
    modules: &mut Vec<Module>,
) -> Result<Option<usize>> {
    let name = plain(&child.ident);
    if let Some((_, items)) = child.content {
        let inside = RunningStore { file: place.file.clone(), children: format!("{}{name}/", place.children) };
        return add(files, &inside, (&name, Some(parent)), items, modules).map(Some);
    }
    let below = format!("{}{name}/", place.children);
    if let Some(path) = path_attribute(&child.attrs) {
        let file = normal(&format!("{}{path}", folder_of(&place.file)));
        let inside = RunningStore { children: folder_of(&file).to_owned(), file };
        // A file of another crate's folder is that crate's.
        return if files.contains_key(&inside.file) {
            read_file(files, &inside, &name, Some(parent), modules)
        } else {
            Ok(None)
        };
    }
    let flat = format!("{}{name}.rs", place.children);
    let file = if files.contains_key(&flat) { flat } else { format!("{below}mod.rs") };
    read_file(files, &RunningStore { file, children: below }, &name, Some(parent), modules)
}

/// `a/b/../c` as `a/c`.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// An identifier without `r#`.
pub(super) fn plain(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(plain(ident))
}

/// Each name that a `use` item brings.
pub(super) fn imports_of(item: &syn::ItemUse) -> Vec<Import> {
    let mut imports = Vec::new();
    if item.leading_colon.is_none() {
        flatten(&item.tree, &mut Vec::new(), &mut imports);
    }
    imports
}

fn flatten(tree: &UseTree, before: &mut Vec<String>, imports: &mut Vec<Import>) {
    let line = |ident: &Ident| ident.span().start().line;
    match tree {
        UseTree::Path(path) => {
            before.push(plain(&path.ident));
            flatten(&path.tree, before, imports);
            before.pop();
        }
        UseTree::Name(name) => imports.push(import(before, &plain(&name.ident), None, line(&name.ident))),
        UseTree::Rename(rename) => {
            imports.push(import(before, &plain(&rename.ident), Some(plain(&rename.rename)), line(&rename.ident)));
        }
        UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            imports.push(Import { path: before.clone(), name: None, line });
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, imports)),
    }
}

fn import(before: &[String], last: &str, rename: Option<String>, line: usize) -> Import {
    let mut path = before.to_vec();
    if last != "self" || path.is_empty() {
        path.push(last.to_owned());
    }
    let name = rename.or_else(|| path.last().cloned());
    Import { path, name, line }
}
