//! Generated JSON texts, for the tests of this crate and of those that read JSON.

use proptest::prelude::*;

/// JSON texts of any kind, with every kind of whitespace that is allowed between the tokens.
pub fn json_text() -> impl Strategy<Value = String> {
    let space = prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\n\t"), 1 => Just("\r\n ")];
    let number = "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?";
    let string = "\"([ !#-\\[\\]-~é日😀\u{7f}]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-cA-C][0-9a-fA-F]{3}|\\\\ud83d\\\\ude0[0-9a-f]){0,9}\"";
    let scalar =
        prop_oneof![Just("null".to_owned()), Just("true".to_owned()), Just("false".to_owned()), number, string];
    scalar.prop_recursive(5, 40, 5, move |inner| {
        let items = prop::collection::vec((space.clone(), string, space.clone(), inner, space.clone()), 0..5);
        (items, any::<bool>()).prop_map(|(items, is_object)| {
            let write = |(a, key, b, value, c): &(&str, String, &str, String, &str)| {
                if is_object { format!("{a}{key}{b}:{c}{value}{b}") } else { format!("{a}{value}{c}") }
            };
            let inner = items.iter().map(write).collect::<Vec<_>>().join(",");
            if is_object { format!("{{{inner}}}") } else { format!("[{inner}]") }
        })
    })
}
