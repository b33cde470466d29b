//! Pointers are parsed and resolved as in RFC 6901.

use limits::JSON_DEPTH_MAX;
use proptest::prelude::*;

use super::*;
use crate::text::scalar_text;

fn at<'a>(pointer: &str, json: &'a str) -> Option<&'a str> {
    pointer.parse::<JsonPointer>().unwrap().lookup(json)
}

#[test]
fn the_examples_of_the_rfc_hold() {
    let json = r#"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8}"#;
    for (pointer, found) in [
        ("", json),
        ("/foo", r#"["bar", "baz"]"#),
        ("/foo/0", "\"bar\""),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/e^f", "3"),
        ("/g|h", "4"),
        ("/i\\j", "5"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/m~0n", "8"),
    ] {
        assert_eq!(at(pointer, json), Some(found), "{pointer}");
    }
    for nothing in ["/foo/2", "/foo/-", "/foo/00", "/foo/+1", "/foo/bar", "/fo", "/foo/0/x", "//x"] {
        assert_eq!(at(nothing, json), None, "{nothing}");
    }
}

#[test]
fn wrong_pointers_say_where() {
    for (text, why) in [
        ("a", InvalidPointer::NoSlash),
        ("#/a", InvalidPointer::NoSlash),
        ("/a~", InvalidPointer::Tilde(2)),
        ("/é~0~2", InvalidPointer::Tilde(5)),
    ] {
        assert_eq!(text.parse::<JsonPointer>(), Err(why), "{text}");
    }
    assert!("/a".repeat(JSON_DEPTH_MAX).parse::<JsonPointer>().is_ok());
    assert_eq!("/a".repeat(JSON_DEPTH_MAX + 1).parse::<JsonPointer>(), Err(InvalidPointer::TooDeep));
}

#[test]
fn last_of_equal_names_counts() {
    assert_eq!(at("/a", r#"{"a":1,"\u0061":2,"b":{"a":3}}"#), Some("2"));
    assert_eq!(at("/a/b", r#"{"a":{"b":1},"a":{"c":2}}"#), None, "as if the first weren't there");
    assert_eq!(at("/😀", r#"{"\ud83d\ude00":true}"#), Some("true"));
    assert_eq!(at("/~01", r#"{"~1":1,"/":2}"#), Some("1"));
}

#[test]
fn the_deepest_value_is_reached() {
    let json = "{\"a\":".repeat(JSON_DEPTH_MAX) + "1e999" + &"}".repeat(JSON_DEPTH_MAX);
    assert!(crate::check(json.as_bytes()).is_ok());
    assert_eq!(at(&"/a".repeat(JSON_DEPTH_MAX), &json), Some("1e999"));
}

#[test]
fn scalars_have_a_text() {
    for (raw, text) in [
        (r#""""#, Some("")),
        (r#""a b""#, Some("a b")),
        (r#""\u00e9\n\"""#, Some("é\n\"")),
        ("-1.50e400", Some("-1.50e400")),
        ("0", Some("0")),
        ("true", None),
        ("null", None),
        ("{}", None),
        ("[1]", None),
        ("", None),
    ] {
        assert_eq!(scalar_text(raw).as_deref(), text, "{raw}");
    }
}

proptest! {
    #[test]
    fn any_member_is_found_by_its_escaped_name(names in prop::collection::vec("\\PC{0,6}|[~/]{0,3}", 1..6)) {
        let mut json = String::from("0");
        for name in &names {
            json = format!("{{\"other\":[1],{}: {json} }}", serde_json::to_string(name).unwrap());
        }
        let pointer: String =
            names.iter().rev().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
        prop_assert_eq!(at(&pointer, &json), Some("0"));
    }

    #[test]
    fn no_pointer_and_no_text_panic(pointer in "(/([~01]|\\PC){0,3}){0,4}", json in "([\\[\\]{}\",:0\\\\]|\\PC){0,20}") {
        if let Ok(pointer) = pointer.parse::<JsonPointer>() {
            let _ = pointer.lookup(&json);
        }
        let _ = scalar_text(&json);
    }
}
