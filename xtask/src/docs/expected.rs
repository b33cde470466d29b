//! Compares what commands print with what a page shows. Times, durations and ids differ from run to run, so each equals any other.

use serde_json::Value;

/// Any text of a line; alone on a line, any lines.
const ANY: &str = "…";

/// Whether the output is what the page shows.
pub(super) fn is_as_shown(shown: &str, printed: &str, is_json: bool) -> bool {
    if is_json {
        // One value, or a value a line.
        let parsed =
            |text: &str| serde_json::Deserializer::from_str(text).into_iter().collect::<Result<Vec<Value>, _>>();
        let [Ok(shown), Ok(printed)] = [shown, printed].map(parsed) else { return false };
        return is_same_value(&Value::Array(shown), &Value::Array(printed));
    }
    let lines = |text: &str| text.trim_end().lines().map(plain).collect::<Vec<_>>();
    are_lines_as_shown(&lines(shown), &lines(printed))
}

fn are_lines_as_shown(shown: &[String], printed: &[String]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == ANY => {
            (0..=printed.len()).any(|skipped| are_lines_as_shown(rest, &printed[skipped..]))
        }
        (Some((shown, other_shown)), Some((printed, other_printed))) => {
            is_line_as_shown(shown, printed) && are_lines_as_shown(other_shown, other_printed)
        }
        _ => false,
    }
}

fn is_line_as_shown(shown: &str, printed: &str) -> bool {
    let Some((begin, rest)) = shown.split_once(ANY) else { return shown == printed };
    let Some(mut left) = printed.strip_prefix(begin) else { return false };
    let mut parts = rest.split(ANY).peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    true
}

fn is_same_value(shown: &Value, printed: &Value) -> bool {
    match (shown, printed) {
        (Value::String(shown), Value::String(printed)) => is_line_as_shown(&plain(shown), &plain(printed)),
        (Value::Array(shown), Value::Array(printed)) => {
            shown.len() == printed.len()
                && shown.iter().zip(printed).all(|(shown, printed)| is_same_value(shown, printed))
        }
        (Value::Object(shown), Value::Object(printed)) => {
            let is_member = |(name, value)| printed.get(name).is_some_and(|printed| is_same_value(value, printed));
            shown.len() == printed.len() && shown.iter().all(is_member)
        }
        _ => shown == printed,
    }
}

/// A line with one space between words, and the same mark for each time, duration and id.
fn plain(line: &str) -> String {
    if line.to_ascii_lowercase().starts_with("date: ") {
        return "date: TIME".to_owned();
    }
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_inside = |c: char| c.is_ascii_alphanumeric() || ".:+-µ".contains(c);
    let mut plain = String::new();
    let mut rest = line.as_str();
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_inside(c) != is_inside(first)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        // The page shows the beginning of an id.
        if let Some(after) = after
            .strip_prefix(ANY)
            .filter(|_| part.len() >= 4 && part.chars().all(|c| c.is_ascii_hexdigit() || c == '-'))
        {
            plain.push_str("ID");
            rest = after;
            continue;
        }
        let word = part.trim_end_matches(['.', ':', '-']);
        match kind(word) {
            Some(kind) => plain.extend([kind, &part[word.len()..]]),
            None => plain.push_str(part),
        }
        rest = after;
    }
    plain
}

/// What a word is, if it differs from run to run.
fn kind(word: &str) -> Option<&'static str> {
    let is_digit = |at: usize| word.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    if word.get(10..11) == Some("T") && is_digit(0) && is_digit(9) && is_digit(11) {
        return Some("TIME");
    }
    let hex = word.chars().filter(char::is_ascii_hexdigit).count();
    if hex >= 16
        && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        && word.contains(|c: char| c.is_ascii_digit())
    {
        return Some("ID");
    }
    let number = word.trim_end_matches(|c: char| !c.is_ascii_digit());
    let is_number = is_digit(0) && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    (is_number && ["µs", "ms", "s", "m", "h", "d"].contains(&&word[number.len()..])).then_some("DURATION")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_differs_in_times_and_ids_only() {
        for (shown, printed, expected) in [
            ("a b\n", "a   b", true),
            ("a b", "a c", false),
            ("a", "a\nb", false),
            ("a\n…\nd", "a\nb\nc\nd\n", true),
            ("a\n…\nd", "a\nb\nc\n", false),
            ("…\nd", "d", true),
            ("stored …, … left", "stored 5, none left", true),
            ("stored …, … left", "stored 5, none", false),
            ("2m x 0.5s", "13s  x 12ms", true),
            ("2m x", "13 x", false),
            ("v0.1.0 up", "v0.1.1 up", false),
            (
                "{\"id\":\"2651fa94-4d60-8482-855f-ec6e00000007\",\"n\":1}",
                "{\"id\":\"00000000-4d60-8482-855f-ec6e00000001\",\"n\":1}",
                true,
            ),
            ("2026-11-26T02:10:31.402Z INFO", "2027-01-01T00:00:00.1Z INFO", true),
            ("2026-11-26T02:10:31.402Z INFO", "yesterday INFO", false),
            ("Date: now\nContent-Length: 5", "date: Fri, 27 Nov 2026 01:18:33 GMT\nContent-Length: 5", true),
            ("id 01a2… x", "id 01a21abc-20fc-7000-8179-1058d73a0000 x", true),
            ("id 01a2… x", "id 01a2 x", false),
            ("ffffffffffffffff", "ffffffffffffffff", true),
        ] {
            assert_eq!(is_as_shown(shown, printed, false), expected, "{shown:?} {printed:?}");
        }
    }

    #[test]
    fn json_is_compared_by_value() {
        for (shown, printed, expected) in [
            ("{\n \"a\": [1, \"x…\"]\n}", "{\"a\":[1,\"xyz\"]}\n", true),
            ("{\"a\": 1}", "{\"a\":1,\"b\":2}", false),
            ("{\"a\": 1}", "{\"a\":2}", false),
            ("{\"at\": \"2026-11-26T02:10:31Z\"}", "{\"at\":\"2027-11-26T02:10:31Z\"}", true),
            ("{\"a\": 1}\n{\"b\": 2}", "{\"a\":1}\n{\"b\":2}\n", true),
            ("{\"a\": 1}\n{\"b\": 2}", "{\"a\":1}\n", false),
            ("{}", "not JSON", false),
        ] {
            assert_eq!(is_as_shown(shown, printed, true), expected, "{shown:?} {printed:?}");
        }
    }
}
