//! Each way to plant a cycle is found, and clean samples stay clean.

use super::*;

/// The reports on a crate of two modules, `a` and `b`, and more files.
fn of(files: &[(&str, &str)]) -> Vec<String> {
    let mut all = Files::from([("src/lib.rs".to_owned(), "mod a;\nmod b;\n".to_owned())]);
    all.extend(files.iter().map(|(path, text)| (format!("src/{path}"), (*text).to_owned())));
    reports_of(&all, &BTreeSet::from(["known_elsewhere".to_owned()])).unwrap()
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
        "use crate::b::*;\npub struct A;",
        "use crate::b;\npub struct A;",
        "pub struct A(crate::b::B);",
        "pub struct A;\nfn f() { super::b::B; }",
        "pub struct A;\nfn f() { use super::b::B; }",
        "pub struct A;\nfn f(x: Option<&crate::b::B>) {}",
        "pub struct A;\nimpl Into<crate::b::B> for A {}",
        "pub struct A;\nfn f() { assert!(1 == x(crate::b::B)); }",
        "pub struct A;\nmacro_rules! m { () => { $crate::b::B } }",
        "#[serde(with = \"crate::b::B\")]\npub struct A;",
        "#[value(parser = crate::b::B)]\npub struct A;",
        "pub use crate::b::B;\npub struct A;",
        "#[cfg(any(test, feature = \"x\"))]\nuse crate::b::B;\npub struct A;",
    ] {
        let reports = of_two(a, USES_A);
        assert_eq!(reports.len(), 1, "{a}");
        assert!(reports[0].starts_with("src/lib.rs: import cycle of 2 modules: "), "{}", reports[0]);
        assert!(reports[0].contains("src/b.rs -> src/a.rs: A (1)"), "{}", reports[0]);
    }
}

#[test]
fn what_names_no_sibling_is_clean() {
    for a in [
        "pub struct A;",
        "//! crate::b::B\npub struct A;",
        "pub struct A;\nfn f() { \"crate::b::B\"; }",
        "use other::b::B;\npub struct A;",
        "use ::b::B;\npub struct A;",
        "pub struct A;\nfn f(b: u8) { b; }",
        "pub struct A;\nfn f() { A.b(); }",
        "#[cfg(test)]\nuse crate::b::B;\npub struct A;",
        "#[cfg(all(test, unix))]\nmod tests { use crate::b::B; }\npub struct A;",
        "#[cfg(test)]\nmod tests;\npub struct A;",
        "pub struct A;\nimpl A { #[cfg(test)]\nfn f() { crate::b::B; } }",
        "pub(in crate::b) struct A;",
    ] {
        assert_eq!(of_two(a, USES_A), Vec::<String>::new(), "{a}");
    }
}

#[test]
fn a_re_export_counts_as_an_import_from_the_module_that_defines() {
    let c = ("c.rs", "pub use crate::a::A;\npub use crate::b::B;\n");
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n");
    let b = ("b.rs", "use crate::A;\npub struct B;\n");
    assert_eq!(of(&[lib, c, b, ("a.rs", "use crate::c::B;\npub struct A;")]).len(), 1);
    assert_eq!(of(&[lib, c, b, ("a.rs", "use crate::c::*;\npub struct A(B);")]).len(), 1);
    assert_eq!(of(&[lib, c, b, ("a.rs", "pub struct A;")]), Vec::<String>::new());
    // A re-export of itself leads nowhere.
    let circular = ("c.rs", "pub use crate::d::*;\npub use crate::b::B;\n");
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;\n");
    let d = ("d.rs", "pub use crate::c::*;\n");
    let reports = of(&[lib, circular, d, b, ("a.rs", "pub struct A(crate::c::Nothing);")]);
    assert_eq!(reports.len(), 1, "c and d: {reports:?}");
}

#[test]
fn a_macro_call_counts() {
    let a = "pub struct A;\nfn f() { crate::b::call!(); }";
    assert_eq!(of_two(a, "macro_rules! call { () => { crate::a::A } }").len(), 1);
    assert_eq!(of_two("pub struct A;", "macro_rules! call { () => { crate::a::A } }"), Vec::<String>::new());
}

#[test]
fn an_inherent_method_counts_as_the_module_of_its_impl() {
    let lib = ("lib.rs", "mod a;\nmod b;\nmod t;\n");
    let t = ("t.rs", "pub struct T;\nimpl T { pub fn plain(&self) {} }\n");
    let b =
        ("b.rs", "use crate::t::T;\nuse crate::a::A;\nimpl T { pub fn special(&self) {} pub fn make() -> T { T } }\n");
    for (call, cycles) in [
        ("fn f(x: &crate::t::T) { x.special() }", 1),
        ("fn f(x: &crate::t::T) { assert!(x.special()) }", 1),
        ("fn f() { crate::t::T::make() }", 1),
        ("impl crate::t::T { fn f(&self) { self.special() } }", 1),
        ("impl crate::t::T { fn f() { Self::make() } }", 1),
        ("fn f(x: &crate::t::T) { x.plain() }", 0),
        ("impl A { fn f(&self) { self.special() } }", 0),
        ("trait Other { fn special(&self); }\nfn f(x: &crate::t::T) { x.special() }", 0),
    ] {
        let a = format!("pub struct A;\n{call}");
        assert_eq!(of(&[lib, t, b, ("a.rs", &a)]).len(), cycles, "{call}");
    }
    // A name that two modules define, another crate defines, or the standard library has, says nothing.
    let others = "impl A { fn special(&self) {} }\nfn f(x: &crate::t::T) { x.special() }";
    assert_eq!(of(&[lib, t, b, ("a.rs", &format!("pub struct A;\n{others}"))]), Vec::<String>::new());
    for name in ["known_elsewhere", "len"] {
        let b = format!("use crate::a::A;\nimpl crate::t::T {{ pub fn {name}(&self) {{}} }}\n");
        let a = format!("pub struct A;\nfn f(x: &crate::t::T) {{ x.{name}() }}\n");
        assert_eq!(of(&[lib, t, ("b.rs", &b), ("a.rs", &a)]), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn siblings_count_with_all_below_them_at_every_level() {
    let b = ("b.rs", USES_A);
    // A child of `a` names `b`.
    let deep = ("a/deep.rs", "use crate::b::B;\n");
    let reports = of(&[b, ("a.rs", "mod deep;\npub struct A;"), deep]);
    assert_eq!(reports.len(), 1);
    assert!(reports[0].contains("src/a/deep.rs -> src/b.rs: B (1)"), "{}", reports[0]);
    // Two children of `a`, in files, in folders and inline.
    for file in ["a/x.rs", "a/x/mod.rs"] {
        let x = (file, "use super::y::Y;\npub struct X;");
        let y = ("a/y.rs", "pub struct Y(super::x::X);");
        let reports = of(&[b, ("a/mod.rs", "mod x;\nmod y;\npub struct A;"), x, y]);
        assert_eq!(reports.len(), 1);
        assert!(reports[0].starts_with("src/a/mod.rs: import cycle of 2 modules"), "{}", reports[0]);
    }
    let inline = "mod x { use super::y::Y; pub struct X; }\nmod y { pub struct Y(super::x::X); }\npub struct A;";
    assert_eq!(of_two(inline, USES_A).len(), 1);
    let renamed = ("a/other.rs", "use crate::b::B;\n");
    assert_eq!(of(&[b, ("a.rs", "#[path = \"a/other.rs\"]\nmod deep;\npub struct A;"), renamed]).len(), 1);
}

#[test]
fn ancestors_and_children_may_name_one_another() {
    let a = ("a/mod.rs", "mod x;\npub use x::X;\npub struct A(X);");
    let x = ("a/x.rs", "use super::A;\npub struct X(Option<crate::Root>, crate::a::A);");
    let lib = ("lib.rs", "mod a;\nmod b;\npub struct Root(a::A, b::B);");
    assert_eq!(of(&[lib, a, x, ("b.rs", USES_A)]), Vec::<String>::new());
}

#[test]
fn each_target_of_a_crate_is_looked_at() {
    let main = ("main.rs", "mod x { pub struct X(super::y::Y); }\nmod y { pub struct Y(super::x::X); }");
    assert_eq!(of(&[("a.rs", "pub struct A;"), ("b.rs", ""), main]).len(), 1);
    assert_eq!(of(&[("a.rs", "pub struct A;"), ("b.rs", ""), ("bin/tool.rs", main.1)]).len(), 1);
}

#[test]
fn functions_of_other_crates_are_known_by_name() {
    let mut names = BTreeSet::new();
    function_names("pub fn one<T>() {} // fn two()\nasync fn three(", &mut names);
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["one", "three"]);
}
