//! Forms (`application/x-www-form-urlencoded`) as JSON.

use std::collections::HashMap;

use json::text::write_string;

use crate::{Problem, ProblemKind, form_decoded};

/// Parameters of a form. More are an error: each takes more memory than it has bytes.
const PARAMETERS_MAX: usize = 2_000;
/// Bytes of memory of a parameter in addition to its texts.
const PARAMETER_BYTES: usize = 128;
/// The parameter that has JSON in it.
const PAYLOAD: &str = "payload";

/// A name and a value.
pub(super) type Pair = (String, String);

/// Bytes of memory that reading a form of this length needs.
pub(super) const fn needed_bytes(length: usize) -> usize {
    // The pairs, and the text for the signature or the JSON.
    4 * length + PARAMETERS_MAX * PARAMETER_BYTES
}

/// The parameters of a form, in order.
///
/// # Errors
/// There are too many.
pub(super) fn pairs(body: &[u8]) -> Result<Vec<Pair>, Problem> {
    let text = String::from_utf8_lossy(body.trim_ascii());
    let parts = text.split('&').filter(|part| !part.is_empty());
    let mut pairs = Vec::new();
    for part in parts {
        if pairs.len() == PARAMETERS_MAX {
            let detail = format!("the form has more than {PARAMETERS_MAX} parameters: send fewer, or JSON");
            return Err(Problem { kind: ProblemKind::TooLarge, code: "too_large", detail: detail.into() });
        }
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        pairs.push((form_decoded(name), form_decoded(value)));
    }
    Ok(pairs)
}

/// The text that Twilio signs: names and values by name, each different value of a name once.
pub(super) fn sorted(pairs: &[Pair]) -> String {
    let mut sorted: Vec<&Pair> = pairs.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.into_iter().flat_map(|(name, value)| [name.as_str(), value]).collect()
}

/// The JSON of a form: an object, with an array for a repeated name. A lone parameter `payload` that has JSON in it is that JSON.
pub(super) fn json(pairs: Vec<Pair>) -> String {
    if let [(name, value)] = pairs.as_slice()
        && name == PAYLOAD
        && let Ok(inner) = json::check(value.as_bytes())
    {
        return inner.to_owned();
    }
    object(&pairs)
}

fn object(pairs: &[Pair]) -> String {
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(pairs.len());
    let mut members: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, value) in pairs {
        let place = *places.entry(name).or_insert(members.len());
        match members.get_mut(place) {
            Some((_, values)) => values.push(value),
            None => members.push((name, vec![value])),
        }
    }
    let mut text = String::from("{");
    for (name, values) in &members {
        if text.len() > 1 {
            text.push(',');
        }
        write_string(name, &mut text);
        text.push(':');
        write_values(values, &mut text);
    }
    text.push('}');
    text
}

fn write_values(values: &[&str], text: &mut String) {
    if let [value] = values {
        return write_string(value, text);
    }
    for (index, value) in values.iter().enumerate() {
        text.push(if index == 0 { '[' } else { ',' });
        write_string(value, text);
    }
    text.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_become_json() {
        for (form, expected) in [
            ("a=1&b=x+y%21&a=%C3%A9&flag&", r#"{"a":["1","é"],"b":"x y!","flag":""}"#),
            ("payload=%7B%22a%22%3A1%7D\n", r#"{"a":1}"#),
            ("payload=%7B", r#"{"payload":"{"}"#),
            ("payload=1&x=2", r#"{"payload":"1","x":"2"}"#),
            ("", "{}"),
        ] {
            assert_eq!(json(pairs(form.as_bytes()).unwrap()), expected, "{form}");
        }
    }

    #[test]
    fn long_forms_are_rejected() {
        let of = |count: usize| pairs("a&".repeat(count).as_bytes()).map(|pairs| pairs.len());
        assert_eq!(of(PARAMETERS_MAX), Ok(PARAMETERS_MAX));
        assert_eq!(of(PARAMETERS_MAX + 1).unwrap_err().status(), 413);
    }
}
