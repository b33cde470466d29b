//! What a module names: paths, calls of methods, and paths in the tokens of macros and attributes.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item};

use super::cfg_test;
use super::modules::{Import, imports_of, plain};

/// A path as written, `Self` and `$crate` included.
pub(super) struct NamedPath {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
    /// The `impl` block around it, as an index into [`References::impls`].
    pub(super) within: Option<usize>,
}

/// A call of a method.
pub(super) struct MethodCall {
    pub(super) name: String,
    pub(super) line: usize,
    /// The `impl` block whose `self` is the receiver, if it is.
    pub(super) on_self: Option<usize>,
}

/// An `impl` block.
pub(super) struct ImplBlock {
    /// The type's path; empty for what isn't a path.
    pub(super) self_type: Vec<String>,
    pub(super) is_trait: bool,
    pub(super) methods: Vec<String>,
}

/// Everything that the contents of one module name.
#[derive(Default)]
pub(super) struct References {
    pub(super) paths: Vec<NamedPath>,
    pub(super) calls: Vec<MethodCall>,
    pub(super) impls: Vec<ImplBlock>,
    /// Imports within functions.
    pub(super) imports: Vec<Import>,
    /// Names of variables, which hide names from globs.
    pub(super) bindings: BTreeSet<String>,
    /// Methods of the traits defined here.
    pub(super) trait_methods: Vec<String>,
    within: Option<usize>,
}

impl References {
    pub(super) fn of(contents: &[Item]) -> Self {
        let mut references = Self::default();
        contents.iter().for_each(|item| references.visit_item(item));
        references
    }

    fn add(&mut self, segments: Vec<String>, line: usize) {
        self.paths.push(NamedPath { segments, line, within: self.within });
    }

    /// Paths among the tokens, as no parser knows what they mean.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: usize, text: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == text);
        let mut at = 0;
        while at < tokens.len() {
            let begin = at;
            at += 1;
            match &tokens[begin] {
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Ident(ident) => {
                    let mut segments = vec![plain(ident)];
                    while is(at, ':') && is(at + 1, ':') {
                        let Some(TokenTree::Ident(next)) = tokens.get(at + 2) else { break };
                        segments.push(plain(next));
                        at += 3;
                    }
                    let line = ident.span().start().line;
                    let after_dot = begin > 0 && is(begin - 1, '.');
                    let is_absolute = begin > 1 && is(begin - 1, ':') && is(begin - 2, ':');
                    let is_called = matches!(tokens.get(at), Some(TokenTree::Group(_)));
                    if after_dot && is_called {
                        let on_self = begin == 2 || begin > 2 && !is(begin - 3, '.');
                        let on_self = on_self && matches!(&tokens[begin - 2], TokenTree::Ident(i) if i == "self");
                        let on_self = self.within.filter(|_| on_self);
                        self.calls.push(MethodCall { name: segments.swap_remove(0), line, on_self });
                    } else if !after_dot && !is_absolute {
                        self.add(segments, line);
                    }
                }
                _ => {}
            }
        }
    }
}

fn path_of(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| plain(&segment.ident)).collect()
}

fn line_of(path: &syn::Path) -> usize {
    path.segments.first().map_or(0, |segment| segment.ident.span().start().line)
}

impl<'ast> Visit<'ast> for References {
    fn visit_item(&mut self, item: &'ast Item) {
        if cfg_test::is_test_only(cfg_test::attributes(item)) {
            return;
        }
        match item {
            Item::Use(import) => self.imports.extend(imports_of(import)),
            Item::Trait(definition) => {
                let methods = definition.items.iter().filter_map(|item| match item {
                    syn::TraitItem::Fn(method) => Some(plain(&method.sig.ident)),
                    _ => None,
                });
                self.trait_methods.extend(methods);
                visit::visit_item(self, item);
            }
            item => visit::visit_item(self, item),
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let self_type = match item.self_ty.as_ref() {
            syn::Type::Path(path) if path.qself.is_none() => path_of(&path.path),
            _ => Vec::new(),
        };
        let methods = item.items.iter().filter(|item| !cfg_test::is_test_only(cfg_test::impl_attributes(item)));
        let methods = methods.filter_map(|item| match item {
            syn::ImplItem::Fn(method) => Some(plain(&method.sig.ident)),
            syn::ImplItem::Const(constant) => Some(plain(&constant.ident)),
            _ => None,
        });
        let block = ImplBlock { self_type, is_trait: item.trait_.is_some(), methods: methods.collect() };
        let before = self.within.replace(self.impls.len());
        self.impls.push(block);
        visit::visit_item_impl(self, item);
        self.within = before;
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        if !cfg_test::is_test_only(cfg_test::impl_attributes(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        if !cfg_test::is_test_only(cfg_test::trait_attributes(item)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !cfg_test::is_test_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !cfg_test::is_test_only(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !cfg_test::is_test_only(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !cfg_test::is_test_only(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !cfg_test::is_test_only(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.add(path_of(path), line_of(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let on_self = match call.receiver.as_ref() {
            syn::Expr::Path(path) if path.path.is_ident("self") => self.within,
            _ => None,
        };
        let line = call.method.span().start().line;
        self.calls.push(MethodCall { name: plain(&call.method), line, on_self });
        visit::visit_expr_method_call(self, call);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.bindings.insert(plain(&pattern.ident));
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.scan(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            syn::Meta::List(list) if !list.path.is_ident("cfg") => {
                self.scan(list.tokens.clone());
                self.scan_texts(list.tokens.clone());
            }
            _ => {}
        }
    }

    /// It names ancestors only.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

impl References {
    /// Paths in strings, as in `#[serde(with = "crate::seconds")]`.
    fn scan_texts(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.scan_texts(group.stream()),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let path = text.trim_matches('"').split("::").map(str::to_owned).collect::<Vec<_>>();
                    let is_word = |part: &String| {
                        !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
                    };
                    if path.len() > 1 && path.iter().all(is_word) {
                        self.add(path, literal.span().start().line);
                    }
                }
                _ => {}
            }
        }
    }
}
