//! Each way to plant a cycle is found, and clean samples stay clean.

use super::*;

/// The findings in a crate of two modules, `a` and `b`, and more files.
fn of(files: &[(&str, &str)]) -> Vec<String> {
    let mut all = BTreeMap::from([("lib.rs", "mod a;\nmod b;\n")]);
    all.extend(files.iter().copied());
    let source = |(path, text): (&str, &str)| Source::new(&format!("crates/x/src/{path}"), text.to_owned());
    let sources: Vec<Source> = all.into_iter().map(source).collect();
    import_cycles(&sources).unwrap().iter().map(ToString::to_string).collect()
}

fn of_two(a: &str, b: &str) -> Vec<String> {
    of(&[("a.rs", a), ("b.rs", b)])
}

/// A module that names `A` of module `a`.
const USES_A: &str = "use crate::a::A;\npub struct B;\n";

#[test]
fn each_way_to_import_closes_a_cycle() {
    for a in [
        "use crate::b::B;\npub struct A;",
        "use super::{b::{B as Other}};\npub struct A;",
        "use super::b::{self};\npub struct A;",
        "use crate::b::*;\npub struct A;",
        "use crate::b;\npub struct A;",
        "pub struct A(crate::b::B);",
        "pub struct A;\nfn f() { super::b::B; }",
        "pub struct A;\nfn f() { use super::b::B; }",
        "pub struct A;\nfn f(x: Option<&crate::b::B>) -> impl Fn() + use<'_> {}",
        "pub struct A;\nfn g() -> impl Fn() + use<'_> { super::b::B }",
        "pub struct A;\nimpl Into<crate::b::B> for A {}",
        "pub struct A;\nfn f() { assert!(1 == x(crate::b::B)); }",
        "#[serde(with = \"crate::b::B\")]\npub struct A;",
        "#[value(parser = crate::b::B)]\npub struct A;",
        "pub use crate::b::B;\npub struct A;",
        "#[cfg(any(test, feature = \"x\"))]\nuse crate::b::B;\npub struct A;",
    ] {
        let found = of_two(a, USES_A);
        assert_eq!(found.len(), 1, "{a}");
        assert!(found[0].starts_with("crates/x/src/lib.rs: import cycle of a, b:\n"), "{}", found[0]);
        assert!(found[0].contains("crates/x/src/b.rs:1 imports crate::a::A"), "{}", found[0]);
    }
}

#[test]
fn other_paths_are_clean() {
    for a in [
        "pub struct A;",
        "//! crate::b::B\npub struct A;",
        "pub struct A;\nfn f() { \"crate::b::B\"; }",
        "use other::b::B;\npub struct A;",
        "use ::b::B;\npub struct A;",
        "pub struct A;\nfn f(b: u8) { b; }",
        "pub struct A;\nfn f() { A.b(); }",
        "pub(in crate::b) struct A;",
    ] {
        assert_eq!(of_two(a, USES_A), Vec::<String>::new(), "{a}");
    }
}

#[test]
fn tests_do_not_count() {
    for a in [
        "#[cfg(test)]\nuse crate::b::B;\npub struct A;",
        "#[cfg(all(test, unix))]\nmod tests { use crate::b::B; }\npub struct A;",
        "#[cfg(test)]\nmod tests;\npub struct A;",
        "pub struct A;\nimpl A { #[cfg(test)]\n#[allow(x)]\nfn f<T, U>() { crate::b::B; } }",
        "pub struct A { #[cfg(test)] b: crate::b::B }",
        "pub struct A;\n#[test]\nfn f() { crate::b::B; }",
    ] {
        assert_eq!(of_two(a, USES_A), Vec::<String>::new(), "{a}");
    }
    // The item after it counts.
    assert_eq!(of_two("pub struct A { #[cfg(test)] a: u8, b: crate::b::B }", USES_A).len(), 1);
}

#[test]
fn reexport_counts_as_import_from_its_module() {
    let c = ("c.rs", "pub use crate::a::A;\npub use crate::b::B;\n");
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n");
    let b = ("b.rs", "use crate::A;\npub struct B;\n");
    let found = of(&[lib, c, b, ("a.rs", "use crate::c::B;\npub struct A;")]);
    assert!(found.len() == 1 && found[0].contains("import cycle of a, b:"), "{found:?}");
    assert_eq!(of(&[lib, c, b, ("a.rs", "pub struct A;")]), Vec::<String>::new());
    // A circle of re-exports has an end.
    let circle = [("c.rs", "pub use crate::d::X;\n"), ("d.rs", "pub use crate::c::X;\n")];
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;\n");
    assert!(of(&[lib, circle[0], circle[1], b, ("a.rs", "pub struct A(crate::c::X);")]).len() <= 1);
}

#[test]
fn siblings_count_with_all_modules_below_them() {
    let b = ("b.rs", USES_A);
    // A child of `a` names `b`.
    let deep = ("a/deep.rs", "use crate::b::B;\n");
    let found = of(&[b, ("a.rs", "mod deep;\npub struct A;"), deep]);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("crates/x/src/a/deep.rs:1 imports crate::b::B"), "{}", found[0]);
    // Two children of `a`, in files, in folders and inline.
    for file in ["a/x.rs", "a/x/mod.rs"] {
        let x = (file, "use super::y::Y;\npub struct X;");
        let y = ("a/y.rs", "pub struct Y(super::x::X);");
        let found = of(&[b, ("a/mod.rs", "mod x;\nmod y;\npub struct A;"), x, y]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/x/src/a/mod.rs: import cycle of x, y"), "{}", found[0]);
    }
    let inline = "mod x { use super::y::Y; pub struct X; }\nmod y { pub struct Y(super::x::X); }\npub struct A;";
    assert_eq!(of_two(inline, USES_A).len(), 1);
}

#[test]
fn ancestors_and_children_may_name_one_another() {
    let a = ("a/mod.rs", "mod x;\npub use x::X;\npub struct A(X);");
    let x = ("a/x.rs", "use super::A;\npub struct X(Option<crate::Root>, crate::a::A);");
    let lib = ("lib.rs", "mod a;\nmod b;\npub struct Root(a::A, b::B);");
    assert_eq!(of(&[lib, a, x, ("b.rs", USES_A)]), Vec::<String>::new());
}

#[test]
fn each_target_of_a_crate_is_checked() {
    let main = "mod x { pub struct X(super::y::Y); }\nmod y { pub struct Y(super::x::X); }";
    for file in ["main.rs", "bin/tool.rs"] {
        assert_eq!(of(&[("a.rs", "pub struct A;"), ("b.rs", ""), (file, main)]).len(), 1, "{file}");
    }
}
