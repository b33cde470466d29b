//! Valid and invalid JSON, with the offset of the first fault, compared with a reader that builds documents.

use limits::JSON_DEPTH_MAX;
use proptest::prelude::*;

use super::testing::json_text;
use super::*;

fn fault(text: impl AsRef<[u8]>) -> (usize, JsonErrorKind) {
    let error = check(text.as_ref()).unwrap_err();
    (error.offset, error.kind)
}

#[test]
fn values_pass_without_surrounding_whitespace() {
    for value in
        ["{}", "[]", "\"\"", "null", "true", "false", "0", "-0.5e-9", "1e400", "{\"a\":[1,{\"b\":\"\\u00e9\"}]}"]
    {
        assert_eq!(check(value.as_bytes()), Ok(value));
        assert_eq!(check(format!(" \t\r\n{value}\n ").as_bytes()), Ok(value));
    }
    let digits = "1234567890".repeat(4);
    assert_eq!(check(digits.as_bytes()), Ok(digits.as_str()), "forty digits");
    assert!(check(br#"{"a":1,"a":2}"#).is_ok(), "members of the same name");
    assert!(check(br#""\u0000\ud83d\ude00\\ud800""#).is_ok(), "NUL, a whole pair, no escape at all");
}

#[test]
fn a_fault_of_syntax_has_its_byte() {
    for (text, offset) in [
        ("", 0),
        (" \n ", 3),
        ("x", 0),
        ("\u{feff}{}", 0),
        (" \u{feff}{}", 1),
        ("{} x", 3),
        ("[1,]", 3),
        ("[,", 1),
        ("[1 2]", 3),
        ("{1:2}", 1),
        ("{\"a\" 1}", 5),
        ("nulx", 3),
        ("nul", 3),
        ("[\n1,\n\n  x]", 8),
        ("{\n\"a\": \"b\nc\"}", 9),
        ("\"a\tb\"", 2),
        ("\"\u{1}\"", 1),
        ("\"a", 2),
        ("[1", 2),
        ("  [1 ", 4),
        (r#""\x""#, 2),
        (r#""\u12x4""#, 5),
        (r#""\\u12\x""#, 7),
        (r#""\u12"#, 5),
        (r#""\u12""#, 5),
        (r#""\u1x"#, 4),
        (r#""\\u1"#, 5),
        ("01", 1),
        ("-", 1),
        ("-x", 1),
        ("1.", 2),
        ("1.x", 2),
        ("1.-", 2),
        ("[1.e0]", 3),
        ("1e", 2),
        ("1e+", 3),
        ("1e++", 3),
        ("[-]", 2),
    ] {
        assert_eq!(fault(text), (offset, JsonErrorKind::Syntax), "{text:?}");
        let base = format!("\r\n {text}");
        let moved = if text.is_empty() { base.len() } else { offset + 3 };
        assert_eq!(fault(&base), (moved, JsonErrorKind::Syntax), "{base:?}");
    }
}

#[test]
fn message_names_the_fault_without_its_place() {
    for (text, words) in [
        ("[1", "the text ends within an array, before its closing `]`"),
        ("{} x", "more text follows the end of the value; JSON expects one value"),
        ("", "the text is empty"),
        ("\"\\u1x", crate::words::ESCAPE),
        ("\u{feff}1", "the text begins with a byte order mark, which JSON doesn't allow: remove it"),
    ] {
        assert_eq!(check(text.as_bytes()).unwrap_err().detail, words, "{text:?}");
    }
    assert_eq!(check(b"[1").unwrap_err().to_string(), "the text ends within an array, before its closing `]` (byte 2)");
}

#[test]
fn invalid_utf8_is_rejected() {
    assert_eq!(fault(b"\"\xff\""), (1, JsonErrorKind::Utf8));
    assert_eq!(fault(b" [\"\xed\xa0\x80\"]"), (3, JsonErrorKind::Utf8), "a surrogate as three bytes");
    assert_eq!(fault(b"\"\xc3"), (1, JsonErrorKind::Utf8), "cut within a character");
}

#[test]
fn depth_is_counted_outside_strings() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(check(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
    assert_eq!(fault(nested(JSON_DEPTH_MAX + 1)), (JSON_DEPTH_MAX, JsonErrorKind::Depth));
    let objects = "{\"a\":".repeat(JSON_DEPTH_MAX + 1) + "1" + &"}".repeat(JSON_DEPTH_MAX + 1);
    assert_eq!(fault(objects), (5 * JSON_DEPTH_MAX, JsonErrorKind::Depth));
    for padding in 0..130 {
        let text = format!("[{}{}]", " ".repeat(padding), nested(JSON_DEPTH_MAX));
        assert_eq!(fault(text), (padding + JSON_DEPTH_MAX, JsonErrorKind::Depth), "wherever the strides begin");
    }
    let side_by_side = format!("[{}[]]", "[],".repeat(1_000));
    assert!(check(side_by_side.as_bytes()).is_ok());
    let in_strings = format!("[\"\\\"{}\",\"\\\\\"]", "[{".repeat(1_000));
    assert!(check(in_strings.as_bytes()).is_ok());
    let endless = "[".repeat(1_000_000);
    assert_eq!(fault(&endless), (endless.len(), JsonErrorKind::Syntax), "no stack overflow");
}

#[test]
fn half_a_surrogate_pair_is_rejected() {
    for (text, offset) in [
        (r#""\ud800""#, 1),
        (r#""\uDFFF""#, 1),
        (r#""ab\ud800\u0041""#, 3),
        (r#""\ud83d\ude00\ud83d""#, 13),
        (r#""\ud800\ud800\udc00""#, 1),
        (r#""\\\udc00""#, 3),
        (r#"{"\uD800x":1}"#, 2),
    ] {
        assert_eq!(fault(text), (offset, JsonErrorKind::Surrogate), "{text}");
    }
}

#[test]
fn faults_are_reported_in_documented_order() {
    let deep = "[".repeat(JSON_DEPTH_MAX + 1);
    let closed = deep.clone() + "\"\\ud800\"" + &"]".repeat(JSON_DEPTH_MAX + 1);
    assert_eq!(fault(&closed).1, JsonErrorKind::Depth);
    assert_eq!(fault(closed.clone() + "x").1, JsonErrorKind::Syntax);
    assert_eq!(fault([closed.as_bytes(), b"x\xff"].concat()).1, JsonErrorKind::Utf8);
}

/// A reader that builds a document must agree, except on what `docs/reference/json.md` lists: numbers that no float holds, depth, and lone
/// surrogates.
fn agrees_with_the_oracle(text: &[u8]) -> Result<(), TestCaseError> {
    let ours = check(text);
    let theirs = serde_json::from_slice::<serde_json::Value>(text);
    let too_big = theirs.as_ref().is_err_and(|error| error.to_string().starts_with("number out of range"));
    if !too_big {
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "serde_json: {:?} ours: {:?}", theirs, ours);
    }
    Ok(())
}

/// The byte at the offset is the first that no other text could follow: the text before it can be continued.
fn offset_is_the_first_bad_byte(text: &[u8]) -> Result<(), TestCaseError> {
    let Err(error) = check(text) else { return Ok(()) };
    prop_assert!(error.offset <= text.len());
    if error.kind != JsonErrorKind::Syntax || text.starts_with(b"\xef\xbb\xbf") {
        return Ok(());
    }
    if error.offset < text.len()
        && let Ok(text) = std::str::from_utf8(text)
    {
        let (with, _) = text.split_at(text.ceil_char_boundary(error.offset + 1));
        let is_blank = text[error.offset..].bytes().all(is_whitespace);
        prop_assert!(is_blank || check(with.as_bytes()).is_err_and(|with| with.offset == error.offset));
    }
    let before = &text[..error.offset];
    if let Err(early) = check(before) {
        let goes_on = early.kind != JsonErrorKind::Syntax || early.offset >= trim(before).len();
        prop_assert!(goes_on, "{:?}", early);
    }
    Ok(())
}

#[test]
fn offset_is_right_after_half_a_pair() {
    let text = br#""\ud83d"ude0a""#;
    assert_eq!(fault(text), (8, JsonErrorKind::Syntax));
    offset_is_the_first_bad_byte(text).unwrap();
}

proptest! {
    #[test]
    fn generated_values_pass(text in json_text()) {
        prop_assert_eq!(check(text.as_bytes()), Ok(text.as_str()));
        agrees_with_the_oracle(text.as_bytes())?;
    }

    #[test]
    fn mutated_values_get_the_oracles_verdict(
        text in json_text(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            any::<u8>(), prop::sample::select(br#"[]{}",:\u0d8e.-+tn"#.to_vec())
        ], 0..3_u8), 1..4),
    ) {
        let mut text = text.into_bytes();
        for (at, byte, edit) in edits {
            let at = at.index(text.len().max(1)).min(text.len().saturating_sub(1));
            match edit {
                0 if !text.is_empty() => text[at] = byte,
                1 if !text.is_empty() => text.truncate(at),
                _ => text.insert(at, byte),
            }
        }
        agrees_with_the_oracle(&text)?;
        offset_is_the_first_bad_byte(&text)?;
    }

    #[test]
    fn no_bytes_panic(text: Vec<u8>) {
        agrees_with_the_oracle(&text)?;
        offset_is_the_first_bad_byte(&text)?;
    }
}
