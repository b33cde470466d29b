//! The language: precedence, rejected expressions and their places, limits.

use std::time::{Duration, Instant};

use limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX};
use proptest::prelude::*;

use super::*;
use json::testing::json_text;

/// The value as JSON, or the error.
fn value(expression: &str, document: &str) -> String {
    assert!(json::check(document.as_bytes()).is_ok(), "{document}");
    let expression: Expression = expression.parse().unwrap_or_else(|error| panic!("{error}"));
    match expression.evaluate(document) {
        Ok(value) => value.to_json().map_or_else(|error| error.to_string(), |json| json.into_owned()),
        Err(error) => error.to_string(),
    }
}

fn values(cases: &[(&str, &str)], document: &str) {
    for (expression, expected) in cases {
        assert_eq!(value(expression, document), *expected, "{expression}");
    }
}

fn refusal(text: &str) -> String {
    text.parse::<Expression>().err().map_or_else(|| panic!("{text} is taken"), |error| error.to_string())
}

#[test]
fn operators_bind_as_in_cel() {
    let cases = [
        ("1 + 2 * 3 - 4 / 2 % 3", "5"),
        ("10 - 3 - 2", "5"),
        ("100 / 10 / 5", "2"),
        ("-2 * -(3)", "6"),
        ("- -2", "2"),
        ("1 + 1 == 2 && 3 > 2 || false", "true"),
        ("true || true && false", "true"),
        ("!true || !false", "true"),
        ("!!true", "true"),
        ("true ? 1 : false ? 2 : 3", "1"),
        ("false ? 1 : false ? 2 : 3", "3"),
        ("1 in [1] == true", "true"),
        ("1 < 2 == true", "true"),
        ("[1, 2,][1]", "2"),
        ("[[1], [2]][1][0]", "2"),
        ("'a' + \"b\" + r'\\n'", r#""ab\\n""#),
        ("1 // one\n + 1", "2"),
        ("\t(\r\n1\n)", "1"),
        ("[]", "[]"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
    ];
    values(&cases, "{}");
}

#[test]
fn literals_are_those_of_cel() {
    let cases = [
        ("0x1F + 0Xf", "46"),
        ("12u", "12"),
        (".5 + 1.25e1", "13.0"),
        ("1e3", "1000.0"),
        ("1.0", "1.0"),
        (r#""\a\b\f\n\r\t\v\\\?\"\'\`" == "\x07\x08\x0c\x0a\x0D\X09\u000b\\?\"'\140""#, "true"),
        (r"'é\U0001F600'", "\"é😀\""),
        ("'''it's\n'''", r#""it's\n""#),
        (r#""""a"b""""#, r#""a\"b""#),
        ("R\"\"\"\\d\"\"\"", r#""\\d""#),
        ("size('日本')", "2"),
    ];
    values(&cases, "{}");
}

#[test]
fn absent_value_is_null() {
    let document =
        r#"{"a":{"b":[1,{"c":null}]},"s":"text","import":1,"a":{"b":[1,{"c":null}]},"\u0078":2,"payload":3}"#;
    let cases = [
        ("nope", "null"),
        ("nope.nope.nope", "null"),
        ("nope[0]", "null"),
        ("s.size", "null"),
        ("s[0]", "null"),
        ("a.b[1].c", "null"),
        ("a.b[2]", "null"),
        ("a.b[-1]", "null"),
        ("a.b['0']", "null"),
        ("a['b'][0]", "1"),
        ("[1][1]", "null"),
        ("x", "2"),
        ("payload.import", "1"),
        ("payload.payload", "3"),
        ("has(a.b)", "true"),
        ("has(a.c)", "false"),
        ("has(a.b[1].c)", "true"),
        ("has(nope)", "false"),
        ("has(s)", "true"),
        ("null == nope", "true"),
        ("null in [nope]", "true"),
        ("nope in [1]", "false"),
    ];
    values(&cases, document);
    for document in ["[1,2]", "null", "3", "\"x\""] {
        assert_eq!(value("a == null && payload.a == null", document), "true");
        assert_eq!(value("payload", document), document);
    }
}

#[test]
fn numbers_are_exact_up_to_documented_bounds() {
    let document = r#"{"u":18446744073709551615,"big":123456789012345678901234567890,"huge":1e400,"long":0.10000000000000000001,
        "wide":1234567890123456789012345678901234567890,"one":1.0,"max":9223372036854775807,"zero":-0}"#;
    let cases = [
        ("u", "18446744073709551615"),
        ("u + 1", "18446744073709551616"),
        ("max + 1", "9223372036854775808"),
        ("big == 123456789012345678901234567891", "false"),
        ("big + 1", "123456789012345678901234567891"),
        ("long", "0.10000000000000000001"),
        ("long == 0.1", "true"),
        ("wide", "1234567890123456789012345678901234567890"),
        ("wide > big", "true"),
        ("wide == 1.2345678901234568e39", "true"),
        ("huge", "1e400"),
        ("huge > 1e308", "true"),
        ("huge + 1", "JSON can't represent the number inf"),
        ("0.0 / 0.0", "JSON can't represent the number NaN"),
        ("0.0 / 0.0 == 0.0 / 0.0 || 0.0 / 0.0 < 1 || 0.0 / 0.0 >= 1", "false"),
        ("one == 1 && 1 == one && one in [1]", "true"),
        ("zero == 0", "true"),
        ("max < 9223372036854775808.0", "true"),
        ("9007199254740993 > 9007199254740992.0", "true"),
        ("9007199254740993.0 == 9007199254740992", "true"),
        ("-1 > -1.5 && -1 < -0.5 && 1 < 1.5", "true"),
        ("1 < 1e300 && 1 > -1e300", "true"),
        ("1 + 1.5", "2.5"),
        ("1.5 % 1", "`1.5 % 1`: % can't be applied to a double and an int"),
        ("1 / 0", "`1 / 0`: division by zero"),
        ("1 % 0", "`1 % 0`: division by zero"),
        ("1.0 / 0 > 1e308", "true"),
        (
            "170141183460469231731687303715884105727 + 1",
            "`170141183460469231731687303715884105727 + 1`: the result is an integer of more than 128 bits",
        ),
        (
            "(-170141183460469231731687303715884105727 - 1) / -1",
            "`(-170141183460469231731687303715884105727 - 1) / -1`: the result is an integer of more than 128 bits",
        ),
        ("int(-1.9)", "-1"),
        ("int(1e39)", "`int(1e39)`: int() can't convert this value"),
        ("int('0x1')", "`int('0x1')`: int() can't convert this value"),
        ("double('1.5') + double(1)", "2.5"),
        ("string(1) + string(1.5) + string(true) + string('x')", "\"11.5truex\""),
        ("bool('true')", "true"),
        ("bool(1)", "`bool(1)`: bool can't be applied to an int"),
    ];
    values(&cases, document);
}

#[test]
fn strings_lists_and_objects() {
    let document = r#"{"l":[1,"two",[3],{"k":1.0}],"o":{"b":1,"a":[2]},"s":" Straße \u0041","e":[]}"#;
    let cases = [
        ("l == [1, 'two', [3], payload.l[3]]", "true"),
        ("o == payload.o && o != l && l != o", "true"),
        ("[3] in l", "true"),
        ("'a' in o && !('c' in o) && !(1 in o)", "true"),
        ("l + [true]", r#"[1,"two",[3],{"k":1.0},true]"#),
        ("size(l) + l.size() + size(o) + size(e)", "10"),
        ("s.trim().upperAscii()", "\"STRAßE A\""),
        ("s.lowerAscii().contains('straße a')", "true"),
        ("s.startsWith(' ') && s.endsWith('A')", "true"),
        ("s < 'a' && 'a' < 'b' && 'ab' > 'a' && 'Z' < 'ä'", "true"),
        ("s.matches('^ \\\\w+ A$')", "true"),
        ("o.map(name, name)", r#"["a","b"]"#),
        ("o.all(name, size(name) == 1)", "true"),
        ("l.map(x, x == 1, [x, x])", "[[1,1]]"),
        ("[1, 2, 3].filter(x, x > 1).map(x, x * x)", "[4,9]"),
        ("[1, 2].exists_one(x, x == 2) && [1, 2].existsOne(x, x == 2)", "true"),
        ("[2, 2].exists_one(x, x == 2)", "false"),
        ("e.all(x, false) && !e.exists(x, true)", "true"),
        ("[1, 2].map(x, [10].map(y, x + y))", "[[11],[12]]"),
        ("[1].map(x, [2].map(x, x))[0]", "[2]"),
        ("[1].map(payload, payload)", "[1]"),
        ("[[1], [2]].exists(l, l == [2])", "true"),
        (
            "nope.exists(x, true)",
            "`nope.exists(x, true)`: exists can't be applied to null; a member that is absent is null: write `x != null && …`",
        ),
        (
            "1 in nope",
            "`1 in nope`: in can't be applied to an int and null; a member that is absent is null: write `x != null && …`",
        ),
        ("l[true]", "`l[true]`: [] can't be applied to a list and a bool"),
    ];
    values(&cases, document);
}

/// As in CEL, a deciding value counts on either side of one without a value.
#[test]
fn part_without_a_value_counts_unless_another_decides() {
    let cases = [
        ("false && nope > 1", "false"),
        ("nope > 1 && false", "false"),
        ("true || nope > 1", "true"),
        ("nope > 1 || true", "true"),
        ("[null, 2].exists(x, x > 1)", "true"),
        ("[null, 0].all(x, x > 1)", "false"),
        ("nope && false", "false"),
        ("has(nope) ? nope + 1 : 0", "0"),
    ];
    values(&cases, "{}");
    for failing in
        ["nope > 1 && true", "nope > 1 || false", "[null, 0].exists(x, x > 1)", "nope ? 1 : 2", "!nope", "-nope"]
    {
        assert!(value(failing, "{}").contains("absent is null"), "{failing}");
    }
}

#[test]
fn only_true_and_false_are_conditions() {
    let holds = |text: &str, document| {
        let expression: Expression = text.parse().unwrap();
        expression.holds(document).map_err(|error| error.to_string())
    };
    assert_eq!(holds("a", r#"{"a":true}"#), Ok(true));
    assert_eq!(holds("a", r#"{"a":false}"#), Ok(false));
    assert_eq!(holds(" a ", r#"{"a":1}"#), Err("`a`: the result is an int, but should be true or false".into()));
    assert!(holds("a", "{}").unwrap_err().contains("the result is null"));
}

#[test]
fn lists_of_three_hundred_can_be_compared() {
    let expression: Expression = "a.exists(x, b.exists(y, x == y))".parse().unwrap();
    let document = |length: u32| {
        let (a, b): (Vec<_>, Vec<_>) = (0..length).map(|number| (number, number + length)).unzip();
        format!("{{\"a\":{a:?},\"b\":{b:?}}}")
    };
    assert_eq!(expression.holds(&document(300)).ok(), Some(false));
    assert!(expression.holds(&document(1_000)).is_err());
}

#[test]
fn faults_are_shown_with_their_place() {
    for (text, message, caret) in [
        ("status >= ", "expected a value", "          ^"),
        ("status = 1", "to compare, write `==`", "       ^"),
        ("a and b", "for `and`, write `&&`", "  ^^^"),
        ("a or b", "for `or`, write `||`", "  ^^"),
        ("not a", "expected an operator or the end", "    ^"),
        ("a & b", "for `and`, write `&&`", "  ^"),
        ("a b", "expected an operator or the end", "  ^"),
        ("(1", "expected `)`", "  ^"),
        ("[1 2]", "expected `]`", "   ^"),
        ("", "expected a value", "^"),
        ("5x", "this is not a number", "^^"),
        ("'a", "this string isn't closed with '", "^"),
        (r"'\z'", r"this is not an escape: write a backslash as \\", " ^"),
        ("import == 1", "write `payload.import` to read the member", "^^^^^^"),
        ("é == 1", "this character is only allowed in quotes", "^"),
        ("'é' == é", "this character is only allowed", "       ^"),
        ("{'a': 1}", "an expression can read maps", "^"),
        ("nope(1)", "there is no function nope(); known are size, int, double, string, bool, has", "^^^^"),
        ("a.nope(1)", "there is no function nope(); known are size, contains, startsWith", "  ^^^^"),
        ("a.size(1)", "size() takes 0 arguments in its brackets, and here it has 1", "  ^^^^"),
        ("contains(a, b)", "x.contains(…)", "^^^^^^^^"),
        ("a.int()", "int(x)", "  ^^^"),
        ("a.matches(b)", "takes a pattern in quotes", "          ^"),
        ("a.matches('(')", "this is not a regular expression: unclosed group, at character 1 (`(`)", "          ^^^"),
        ("a.matches('(a{500}){500}')", "this regular expression is too large", "          ^"),
        ("a.all(1, true)", "the name of a variable", "      ^"),
        ("a.all(x)", "expected `,`", "       ^"),
        ("has(1)", "has() takes a member: has(a.b)", "    ^"),
        ("1e999", "too large for a double", "^^^^^"),
        ("1234567890123456789012345678901234567890", "more than 127 bits", "^"),
    ] {
        let shown = refusal(text);
        assert!(shown.contains(message), "{text}: {shown}");
        let last = shown.lines().last().unwrap_or("");
        assert!(last.starts_with(&format!("  {caret}")), "{text}:\n{shown}");
    }
    assert_eq!(refusal("1 +\n 2 +\t= 3"), "to compare, write `==`\n   2 + = 3\n       ^");
    let long = format!("{}$ {}", "a + ".repeat(20), "b".repeat(100));
    assert!(refusal(&long).lines().all(|line| line.chars().count() <= 130), "{}", refusal(&long));
}

#[test]
fn size_and_depth_are_limited() {
    let nested = |open: &str, close: &str, depth| format!("{}true{}", open.repeat(depth), close.repeat(depth));
    for (open, close) in [("(", ")"), ("[", "]"), ("!", ""), ("[0].all(x, ", ")"), ("has(payload.a) && (", ")")] {
        assert!(nested(open, close, 40).parse::<Expression>().is_ok(), "{open}");
        let depth = (EXPRESSION_BYTES_MAX - 4) / (open.len() + close.len());
        assert!(refusal(&nested(open, close, depth)).contains("levels"), "{open}");
    }
    for chain in ["1+", "1-", "1*", "1<"] {
        assert!(format!("{}1", chain.repeat(EXPRESSION_DEPTH_MAX - 1)).parse::<Expression>().is_ok());
        assert!(refusal(&format!("{}1", chain.repeat(EXPRESSION_DEPTH_MAX))).contains("levels"), "{chain}");
    }
    assert!(refusal(&format!("a{}", ".b".repeat(EXPRESSION_DEPTH_MAX))).contains("levels"));
    let long = format!("{}a", "a||".repeat(2_000));
    assert_eq!(value(&long, r#"{"a":false}"#), "false");
    assert!(refusal(&" ".repeat(EXPRESSION_BYTES_MAX + 1)).contains("at most 8192 bytes"));
}

/// Nested macros over long lists, texts that double, patterns that thrash: each ends with an error, soon.
#[test]
fn hostile_expressions_are_stopped() {
    let list = format!("{{\"l\":[{}0],\"s\":\"{}\"}}", "1,".repeat(10_000), "01".repeat(200_000));
    let double = (0..30).fold("s".to_owned(), |text, _| format!("[{text}].map(x, x + x)[0]"));
    let pattern = "l.exists(a, s.matches('[01]*1[01]{200}x'))";
    for hostile in [
        "l.map(a, l.map(b, l.map(c, a + b + c)))",
        "l.all(a, l.all(b, a == b || l.exists(c, c != a)))",
        "l.all(a, l.all(b, a > b || b > a || true))",
        "l.map(a, l)  == l.map(b, l)",
        "l.map(a, s + s)",
        "l.exists(a, l in [l, l, l] && l == l && false)",
        "l.exists(a, size(payload.l) == 1)",
        "l.exists(a, payload.l[9999] == 2)",
        "l.exists(a, s.contains('00'))",
        &double,
        pattern,
    ] {
        let begun = Instant::now();
        assert!(value(hostile, &list).contains("too many steps"), "{hostile}");
        // Generous: it must not depend on the machine. Without the limit it would be hours.
        assert!(begun.elapsed() < Duration::from_secs(60), "{hostile}");
    }
    assert_eq!(value("l.exists(a, a == 2)", &list), "false");
    assert_eq!(value("l.filter(a, a == 0).size()", &list), "1");
}

/// A list may hold one value many times: only as text it would be large.
#[test]
fn a_result_is_no_longer_than_an_event() {
    let shared = (0..30).fold("[0]".to_owned(), |text, _| format!("[{text}].map(x, [x, x])[0]"));
    assert_eq!(value(&shared, "{}"), "the result has more than 1048576 bytes");
    let document = format!("[{}0]", "1,".repeat(2_000));
    assert_eq!(value("payload.map(x, payload)", &document), "the result has more than 1048576 bytes");
    assert_eq!(value(&format!("({shared}) == 1"), "{}"), "false");
}

/// Texts that are mostly expressions.
fn soup() -> impl Strategy<Value = String> {
    let words = [
        "a",
        "b",
        "payload",
        "x",
        "1",
        "2.5",
        "'t'",
        "null",
        "true",
        "false",
        "(",
        ")",
        "[",
        "]",
        ".",
        ",",
        "?",
        ":",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "<",
        "<=",
        "==",
        "!=",
        "in",
        "&&",
        "||",
        "size(",
        ".size()",
        ".all(x,",
        ".map(x,",
        ".filter(x,",
        ".exists(x,",
        "has(a.b)",
        ".contains('t')",
        ".matches('t')",
        "int(",
        "string(",
        "r'",
        "\"",
        "\\",
        "é",
        "9e9",
        "//",
        "\n",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..20).prop_map(|words| words.join(" "))
}

/// Valid expressions.
fn valid() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "payload",
        "a.b",
        "payload[0]",
        "a['b']",
        "1",
        "0",
        "2.5",
        "'t'",
        "null",
        "true",
        "false",
        "[]",
        "-1",
        "9223372036854775807",
        "1e308",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(6, 60, 3, |inner| {
        let operators = vec!["+", "-", "*", "/", "%", "<", ">=", "==", "!=", "in", "&&", "||"];
        let macros = vec!["all", "exists", "exists_one", "filter", "map"];
        prop_oneof![
            (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(l, o, r)| format!("({l} {o} {r})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(c, t, e)| format!("({c} ? {t} : {e})")),
            (inner.clone(), prop::sample::select(macros), inner.clone())
                .prop_map(|(l, m, r)| format!("{l}.{m}(x, {r})")),
            (inner.clone(), inner.clone()).prop_map(|(l, r)| format!("[{l}, {r}, x]")),
            (inner.clone(), inner.clone()).prop_map(|(l, r)| format!("{l}[{r}]")),
            (prop::sample::select(vec!["!", "-"]), inner.clone()).prop_map(|(o, e)| format!("{o}({e})")),
            (prop::sample::select(vec!["size", "int", "double", "string", "bool"]), inner)
                .prop_map(|(f, e)| format!("{f}({e})")),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_panics(text: String) {
        let _ = text.parse::<Expression>().map_err(|error| error.to_string());
    }

    #[test]
    fn no_soup_panics(text in soup(), document in json_text()) {
        if let Ok(expression) = text.parse::<Expression>() {
            let _ = expression.holds(&document).map_err(|error| error.to_string());
        }
    }

    #[test]
    fn valid_expressions_compile_and_return_json(text in valid(), document in json_text()) {
        // Not all: some are too deep.
        if let Ok(expression) = text.parse::<Expression>()
            && let Ok(value) = expression.evaluate(&document)
            && let Ok(made) = value.to_json()
        {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&made).is_ok(), "{} on {} gives {}", text, document, made);
        }
    }

    #[test]
    fn untouched_values_stay_unchanged(document in json_text()) {
        let document = json::check(document.as_bytes()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let expression: Expression = "payload".parse().map_err(|error: InvalidExpression| TestCaseError::fail(error.to_string()))?;
        let value = expression.evaluate(document).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let json = value.to_json();
        prop_assert_eq!(json.as_deref().ok(), Some(document));
    }

    /// Against the exact order, by whole and fraction, of numbers that a double holds.
    #[test]
    fn an_int_and_a_double_are_compared_exactly(int in any::<i64>(), near in -3_i64..3, eighths in 0_i64..8) {
        let double = int.wrapping_add(near) as f64 + eighths as f64 / 8.0;
        #[allow(clippy::cast_possible_truncation, reason = "it is within the range, and has no fraction")]
        let exact = |double: f64| (double.floor() as i128, double - double.floor());
        let expected = (i128::from(int), 0.0).partial_cmp(&exact(double));
        let found = number::compare(&Computed::Int(int.into()), &Computed::Double(double));
        prop_assert_eq!(found, Some(expected));
        let reverse = number::compare(&Computed::Double(double), &Computed::Int(int.into()));
        prop_assert_eq!(reverse, Some(expected.map(std::cmp::Ordering::reverse)));
    }
}
